"""What the library that ``neap run`` loads into a program says of itself.

That library is in the process before Python is, and exports one C function, which gives JSON. Whether the function is
there is the whole test of whether the program runs under neap.
"""

from __future__ import annotations

import ctypes
import json
from typing import Optional, TypedDict, cast

_FUNCTION = "neap_hook_stats"  # const char *(void): the text is the calling thread's until its next call


class DeviceStats(TypedDict, total=False):
    """One device. Sizes are bytes, and ``None`` is what is not known (yet).

    A field may be missing: the library may be of another version than this module.
    """

    device: str  # "cuda:0"
    ordinal: int  # of the device, as the driver counts
    pid: int
    rank: Optional[int]  # of several processes of one job, as torchrun says
    state: str  # "observe", "detect", "plan swaps", "plan pool", "run" or "leave"
    aside: Optional[str]  # why neap has stepped aside; None: it has not
    seconds: float  # since the device was first used

    live: int  # of blocks that are alive now, as asked for
    held: int  # of device memory held now
    peak_live: int
    peak_held: int
    peak_load: Optional[int]  # what is alive at once in an iteration, as planned from
    footprint: Optional[int]  # the most that was held since the first plan became active
    planned_footprint: Optional[int]
    ratio: Optional[float]  # of what was held at most to the peak load; below 1 with swapping
    limit: Optional[int]
    limit_asked: Optional[int]  # in bytes
    share_asked: Optional[float]  # or as a share of the peak load: the limit is None until it is in force
    caching_bytes: Optional[int]  # what PyTorch's caching allocator would have held
    side_bytes: int  # held for small blocks, which take no part in the plan
    side_live: int
    held_fixed: int  # of blocks that never leave the device
    peak_fixed: int  # the most of them at once

    bytes_out: int  # copied to the host so far
    bytes_in: int
    host_bytes: int  # host memory held for blocks that are away
    waits: int  # times that the program's work waited for a copy
    giving_ns: int  # host time in which plans' copies and waits were given, by the program's threads

    n_events: int
    n_iterations: int  # served from a plan from begin to end
    n_patterns: int  # that have a plan
    n_branches: int  # times that an iteration turned out to be of another kind, whose plan was followed then
    is_limit_unplanned: bool  # the limit is held, but no plan was followed yet: blocks move when work needs them: slow
    n_beside: int  # pieces of work that are in no plan, and need none: a loss that is logged
    n_visits: int  # kernels for which a block that was away came, and went again
    n_departures: int  # times that the program left its plan, and why:
    departures_malloc: int  # an allocation that was not planned
    departures_size: int  # an allocation of another size
    departures_free: int  # a free that was not planned
    departures_exec: int  # work that was not planned
    departures_uses: int  # work on other blocks than planned
    departures_absent: int  # work on a block that is not there
    departures_stream: int  # work on another stream than planned
    departures_blind: int  # a call whose accesses cannot be seen
    departures_failed: int  # a copy or an allocation of the device failed

    overhead: Optional[float]  # measured, a share of the undisturbed iteration: 0.01 is one per cent
    plan_overhead: Optional[float]  # as planned
    iteration_ns: Optional[float]  # the undisturbed one
    pool_iteration: Optional[int]  # iterations seen before the first plan was followed
    pool_seconds: Optional[float]  # until then
    swap_seconds: Optional[float]  # until the first plan with swaps
    plan_was_loaded: bool  # from the plan cache
    is_planning: bool  # a plan is being made, or others are being tried: what is active may not be the last
    metadata_bytes: int  # of the plans, for each event of their periods

    n_launches: int  # kernels, copies, memsets and graphs seen
    n_quick: int  # of them, that were just what the plan expected
    n_rests: int  # times that work was no longer looked at, as none of it mattered
    n_strays: int  # copies by threads that do nothing else: no plan counts them
    n_words: int  # of their parameters, scanned
    scan_ns: int  # for all of them
    n_unknown: int  # driver calls of a kind that is not known
    n_doubtful: int  # uses that were not planned, of blocks that were there
    is_learning: bool  # the planner's thread is at work
    is_verified: bool  # neap verify has passed for this program


def _text() -> Optional[bytes]:
    """The library's answer; ``None`` where the library is not loaded."""
    try:
        function = getattr(ctypes.CDLL(None), _FUNCTION)
    except (AttributeError, OSError):
        return None
    function.argtypes = []
    function.restype = ctypes.c_char_p
    return function() or b"[]"


def stats() -> Optional[list[DeviceStats]]:
    """The devices that this process has used through neap, in the order of their first use.

    ``None`` where the program does not run under ``neap run``; an empty list where it does, and has not used a device
    yet. May be called from any thread, and often: it takes some microseconds.
    """
    text = _text()
    if text is None:
        return None
    return cast("list[DeviceStats]", json.loads(text.decode("utf-8", errors="replace")))
