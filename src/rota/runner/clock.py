"""What time it is for this runner: the wall clock as it began, and from then on the time that really passed.

So no attempt ends before it began, and none takes years, whatever is done to the wall clock meanwhile; the
manager is told this time when the runner joins, and reckons with the difference. `CLOCK_BOOTTIME`, not
`CLOCK_MONOTONIC`: it goes on while the machine sleeps, as the clock on the wall does, so a job that slept with
a laptop ended when people say that it did. (Its walltime is monotonic: what it could not use does not count.)
"""

from __future__ import annotations

import time
from typing import Final

from rota.boot import since_boot
from rota.runner.contain import procfs

_BOOTED: Final = time.time() - since_boot()


def now() -> float:
    """Seconds since 1970."""
    return _BOOTED + time.clock_gettime(time.CLOCK_BOOTTIME)


def passed_since(start_time: int) -> float:
    """How long ago a process was started (`procfs.start_time_now`) in this life of the machine."""
    return max(0.0, since_boot() - start_time / procfs.TICKS_PER_S)
