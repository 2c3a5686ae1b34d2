"""The figures of a run, in words. A figure that is not known has no words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

from ._stats import DeviceStats, stats

_ABSENT = "neap: this program does not run under neap (neap run -- PROGRAM)"
_UNUSED = "neap: no device has been used yet"


def _size(n_bytes: float) -> str:
    """12.3 GB: powers of ten, as everywhere in neap."""
    if n_bytes < 1000:
        return f"{n_bytes:.0f} bytes"
    for unit in ("kB", "MB", "GB"):
        n_bytes /= 1000
        if round(n_bytes, 1) < 1000:
            return f"{n_bytes:.1f} {unit}"
    return f"{n_bytes / 1000:.1f} TB"


def _count(n: int, one: str, more: str) -> str:
    return f"{n:,} {one if n == 1 else more}"


def _way(device: DeviceStats) -> str:
    """Where the device stands, and how it came there."""
    words = [device.get("state") or "state not known"]
    if device.get("n_iterations"):
        words.append(_count(device["n_iterations"], "iteration", "iterations") + " on the plan")
    if device.get("n_departures"):
        words.append("left it " + _count(device["n_departures"], "time", "times"))
    return ", ".join(words)


def _held(device: DeviceStats) -> int:
    return device.get("footprint") or device.get("peak_held") or 0


def _memory(device: DeviceStats) -> Optional[str]:
    held = _held(device)
    if not held:
        return None
    text = f"held {_size(held)}"
    load = device.get("peak_load") or device.get("peak_live")
    if load:
        text += f", x {held / load:.4f} of the peak load, {_size(load)}"
    limit = device.get("limit")
    if limit:
        text += f"; limit {_size(limit)}"
    return text


def _without(device: DeviceStats) -> Optional[str]:
    """What the program's own allocator would have held for the same requests."""
    caching = device.get("caching_bytes")
    held = _held(device)
    if not caching or not held:
        return None
    return f"PyTorch's own allocator would have held {_size(caching)}: neap saves {100 * (1 - held / caching):.1f} %"


def _swapped(device: DeviceStats) -> Optional[str]:
    if not device.get("bytes_out") and not device.get("bytes_in"):
        return None
    text = f"{_size(device.get('bytes_out', 0))} out, {_size(device.get('bytes_in', 0))} in"
    if device.get("host_bytes"):
        text += f"; host memory {_size(device['host_bytes'])}"
    return text


def _overhead(device: DeviceStats) -> Optional[str]:
    measured = device.get("overhead")
    if measured is None or not device.get("n_iterations"):
        return None
    return f"{100 * measured:.2f} % of an iteration"


def _lines(device: DeviceStats) -> Iterator[str]:
    yield f"neap: {device.get('device', 'a device')}: {_way(device)}"
    for name, text in (
        ("memory", _memory(device)),
        ("without", _without(device)),
        ("swapped", _swapped(device)),
        ("overhead", _overhead(device)),
        ("aside", device.get("aside")),
    ):
        if text:
            yield f"  {name:<9} {text}"


def summary() -> str:
    """Some lines on every device, without a newline at their end; one line where there is nothing to tell."""
    devices = stats()
    if devices is None:
        return _ABSENT
    return "\n".join(line for device in devices for line in _lines(device)) or _UNUSED
