"""What time it is for the manager: a clock that nobody can set by years without being asked twice.

The wall clock as it was when the manager began, and from then on the time that really passed (`CLOCK_BOOTTIME`,
which goes on while the machine sleeps). Corrections of up to a minute are followed at once. A larger one is a
step: nothing happened in the years that it claims, so nothing is pruned, expires or fails for it. It is followed
when a second reading, an hour of real time later, agrees with the first; until then the manager goes on with its
own time. See docs/adr/0028-clock-steps.md.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from rota.boot import boot_id, since_boot
from rota.units import about_duration

log = logging.getLogger("rota.manager")

#: The key of `Reading.text` among the facts of the deployment.
CLOCK: Final = "clock"
#: Corrections of this size are made all the time, by hand and by NTP.
FOLLOWED_S: Final = 60.0
#: A step is followed when it is still there after so long.
CONFIRMED_AFTER_S: Final = 3600.0
#: A machine that was off for longer has to wait for the second reading, if something is at stake.
FAR_S: Final = 30 * 86_400.0


class ClockStep(Struct, frozen=True):
    """The wall clock says something else than it should."""

    by: float
    seen_at: float  #: since boot


class Reading(Struct, frozen=True):
    """What time it was, and in which life of the machine at which moment."""

    boot_id: str
    since_boot: float
    at: float

    def text(self) -> str:
        return f"{self.boot_id} {self.since_boot:.3f} {self.at:.3f}"


def reading_of(text: str | None) -> Reading | None:
    """The opposite of `Reading.text`; None: there is none that can be read."""
    try:
        boot, since, at = (text or "").split(" ")
        return Reading(boot, float(since), float(at))
    except ValueError:
        return None


class SteadyClock:
    """The wall clock, unless it was set."""

    def __init__(
        self,
        *,
        begin: float | None = None,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = since_boot,
    ) -> None:
        self._wall, self._steady = wall, steady
        self._booted = (wall() if begin is None else begin) - steady()
        self.step: ClockStep | None = None  #: that is not followed yet
        self.look()

    def now(self) -> float:
        """Seconds since 1970."""
        return self._booted + self._steady()

    def look(self) -> None:
        """Compare with the wall clock; to be called now and then."""
        at = self._steady()
        by = self._wall() - self._booted - at
        if abs(by) <= FOLLOWED_S:
            self._booted += by
            if self.step is not None:
                log.info("the clock is right again")
                self.step = None
        elif self.step is None or abs(by - self.step.by) > FOLLOWED_S:
            self.step = ClockStep(by, at)
            way = "forward" if by > 0 else "back"
            log.warning(
                "the clock was set %s by %s: followed if it still says so in an hour", way, about_duration(abs(by))
            )

    @property
    def confirmed(self) -> bool:
        """Does a second reading agree with a step, long enough after the first?"""
        step = self.step
        if step is None or self._steady() - step.seen_at < CONFIRMED_AFTER_S:
            return False
        self.look()
        return self.step is step

    def follow(self) -> float:
        """Follow a step that was confirmed; by how much that was."""
        by = self._wall() - self.now()
        self._booted += by
        self.step = None
        log.warning("the clock was moved by %+.0f s, as an hour ago: followed", by)
        return by


def starting_time(known: Reading | None, *, newest: float, at_stake: bool, now: Reading) -> float:
    """What time it is for a manager that starts: what the wall clock says (`now.at`), unless that cannot be.

    `known` is what the last manager wrote down, `newest` the newest time in the database. In the same life of the
    machine, what passed since is known. After a restart of the machine nobody knows for how long it was off: time
    has not gone back, and if it went on by more than a month, whoever waits should not pay for a wrong clock.
    """
    wall = now.at
    if known is not None and known.boot_id and known.boot_id == now.boot_id and known.since_boot <= now.since_boot:
        expected = known.at + now.since_boot - known.since_boot
        return wall if abs(wall - expected) <= FOLLOWED_S else expected
    newest = max(newest, known.at if known is not None else 0.0)
    if wall < newest - FOLLOWED_S or (at_stake and wall > newest + FAR_S and newest):
        return newest
    return wall


_clock = SteadyClock()


def begin(at: float) -> None:
    """It is this time now, whatever the wall clock says."""
    global _clock
    _clock = SteadyClock(begin=at)


def steady() -> SteadyClock:
    """The one clock of this process."""
    return _clock


def now() -> float:
    """Seconds since 1970, by the one clock of this process."""
    return _clock.now()


def reading() -> Reading:
    """What to write down for the next manager."""
    return Reading(boot_id(), since_boot(), now())
