"""What neap does with the memory of the program that runs here.

neap lowers the high-water mark of GPU memory in programs that repeat themselves. It needs nothing from a program::

    neap run --limit 70% -- python train.py

A program that wants to know, for its own log, asks::

    import neap

    print(neap.summary())      # some lines to read
    devices = neap.stats()     # the same as data, a dictionary for each device; None where neap does not run

Importing this module changes nothing, under neap or without it.
"""

from __future__ import annotations

from ._stats import DeviceStats, stats
from ._summary import summary

__all__ = ["DeviceStats", "stats", "summary"]


def __getattr__(name: str) -> str:
    # The metadata of a package takes a while to find, and few ask.
    if name == "__version__":
        from importlib.metadata import version

        return version("neap")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
