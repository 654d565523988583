"""Monotonic time that stands still while the manager does.

A manager that was stopped, or whose machine slept, heard nothing meanwhile. Its runners must not be taken for
silent because of that.
"""

from __future__ import annotations

import logging
import time
from typing import Final

log = logging.getLogger("rota.manager")

TICK_S: Final = 1.0
#: A longer gap between two ticks means that the manager itself stood still, not its runners.
_STALL_S: Final = 5.0


class AwakeClock:
    """Counts the time in which this process runs; needs a `tick` every `TICK_S`."""

    def __init__(self) -> None:
        self._ticked_at = time.monotonic()
        self._stalled_s = 0.0

    def now(self) -> float:
        """Monotonic time without stalls, in seconds."""
        at = time.monotonic()
        if at - self._ticked_at > _STALL_S:
            at = self._ticked_at + TICK_S  # within a stall, or before the first tick after it
        return at - self._stalled_s

    def tick(self) -> float:
        """Notice a stall, if there was one. Returns plain monotonic time."""
        at = time.monotonic()
        gap = at - self._ticked_at
        self._ticked_at = at
        if gap > _STALL_S:
            log.warning("the manager was stalled for %.1f s", gap)
            self._stalled_s += gap - TICK_S
        return at
