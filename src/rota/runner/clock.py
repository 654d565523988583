"""The runner's own time: the wall clock when it started, plus the time that has passed since.

Steps of the wall clock do not matter, so no attempt ends before it began. The runner sends this time when it
joins, and the manager corrects for the difference. `CLOCK_BOOTTIME` also advances while the machine is suspended,
unlike `CLOCK_MONOTONIC`: the end of a job on a laptop that slept is then the time on the wall. (Walltimes are
monotonic: time during which a job could not run does not count.)
"""

from __future__ import annotations

import time
from typing import Final

from rota.boot import since_boot
from rota.launcher import procfs

_BOOTED: Final = time.time() - since_boot()


def now() -> float:
    """Seconds since 1970."""
    return _BOOTED + time.clock_gettime(time.CLOCK_BOOTTIME)


def passed_since(start_time: int) -> float:
    """Seconds since a process was started (`procfs.start_time_now`), on this boot of the machine."""
    return max(0.0, since_boot() - start_time / procfs.TICKS_PER_S)
