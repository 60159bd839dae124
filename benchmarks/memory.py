"""Peak memory of a call."""

from __future__ import annotations

import contextlib
import gc
import resource
import sys
from pathlib import Path
from time import perf_counter


def peak_mib(work) -> tuple[object, float, float]:
    """Run; the result, the seconds, and MiB that the process grew by at its peak."""
    gc.collect()
    reset_peak()
    before = resident_mib()
    start = perf_counter()
    result = work()
    seconds = perf_counter() - start
    return result, seconds, peak_resident_mib() - before


def reset_peak() -> None:
    """Make Linux forget the peak so far; elsewhere a higher one may hide that of the call."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _status(name: str) -> float | None:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((float(x.split()[1]) / 1024 for x in lines if x.startswith(f"{name}:")), None)


def peak_resident_mib() -> float:
    peak = _status("VmHWM")
    if peak is not None:
        return peak
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def resident_mib() -> float:
    now = _status("VmRSS")
    return peak_resident_mib() if now is None else now
