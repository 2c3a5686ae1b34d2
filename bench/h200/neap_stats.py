"""neap_stats.py: what neap says of the process it runs in, and how to find a figure in it."""

import ctypes
import json


def read():
    """neap's figures of the first device; None where the program does not run under neap, or has used no device."""
    try:
        call = ctypes.CDLL(None).neap_hook_stats
    except AttributeError:
        return None
    call.restype = ctypes.c_char_p
    devices = json.loads(call() or "[]")
    return devices[0] if devices else None


def find(stats, name, default=None):
    """A figure; the default where it is null, or there is none."""
    value = (stats or {}).get(name)
    return default if value is None else value


def is_planned(stats, wants_swaps):
    """Whether the program is on the plan it is meant to end up with."""
    if find(stats, "aside"):
        return True  # nothing more will come
    if find(stats, "state") != "run":
        return False
    return not wants_swaps or find(stats, "swap_seconds", 0) > 0 or find(stats, "bytes_out", 0) > 0


def is_planning(stats):
    """Whether another plan may follow: while one is made, the host is busy, and others that are timed then feel it."""
    return bool(find(stats, "is_planning", False)) and not find(stats, "aside")
