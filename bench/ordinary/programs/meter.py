"""Steps of a program, timed: for ORDINARY_SECONDS, or as many as are asked for. Prints RESULT at the end."""
import ctypes
import json
import os
import time

import torch

wall, cpu, times = [], [], []
try:
    fake = ctypes.CDLL("libcuda.so.1")
    fake.fk_mark
except (OSError, AttributeError):
    fake = None  # a GPU


def mark():
    times.append((time.perf_counter(), time.process_time()))
    if fake and len(times) > 1:
        fake.fk_mark()


def goes_on(n):
    limit = float(os.environ.get("ORDINARY_SECONDS", "0"))
    return times[-1][0] - times[0][0] < limit if limit else len(times) - 1 < n


def steps(n):
    """Counts steps, for as long as the run lasts."""
    i = 0
    mark()
    while goes_on(n):
        yield i
        mark()
        i += 1


def _median(x):
    return round(sorted(x)[len(x) // 2], 3) if x else None


def done():
    torch.cuda.synchronize()
    wall = [1e3 * (b[0] - a[0]) for a, b in zip(times, times[1:])]
    cpu = [1e3 * (b[1] - a[1]) for a, b in zip(times, times[1:])]
    last = max(1, len(wall) // 3)
    print(
        "RESULT "
        + json.dumps(
            {
                "steps": len(wall),
                "ms": _median(wall[-last:]),
                "ms_mean": round(sum(wall[-last:]) / last, 3) if wall else None,
                "ms_worst": round(max(wall[-last:]), 1) if wall else None,
                "cpu_ms": _median(cpu[-last:]),
                "max_allocated": torch.cuda.max_memory_allocated(),
                "max_reserved": torch.cuda.max_memory_reserved(),
            }
        ),
        flush=True,
    )
