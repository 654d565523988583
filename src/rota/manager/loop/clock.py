"""The manager's wall clock, which does not follow a large step of the system clock at once.

It starts with the system's wall clock and adds the time that really passed (`CLOCK_BOOTTIME`, which includes
sleep). Corrections of up to a minute are followed at once. A larger one is a step, and must not make anything
expire, fail or be pruned. It is followed when a second reading, an hour of real time later, agrees with the first.
See docs/adr/0028-clock-steps.md.
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
#: Corrections up to this size are normal, by hand or by NTP, and followed at once.
FOLLOWED_S: Final = 60.0
#: A step is followed if it persists for so long.
CONFIRMED_AFTER_S: Final = 3600.0
#: If a machine seems to have been off for longer, the second reading is awaited, if anything depends on it.
FAR_S: Final = 30 * 86_400.0


class ClockStep(Struct, frozen=True):
    """The system's wall clock differs from the manager's."""

    by: float
    seen_at: float  #: since boot


class Reading(Struct, frozen=True):
    """The manager's time at one moment, and the moment as boot id and seconds since boot."""

    boot_id: str
    since_boot: float
    at: float

    def text(self) -> str:
        return f"{self.boot_id} {self.since_boot:.3f} {self.at:.3f}"


def reading_of(text: str | None) -> Reading | None:
    """Parses `Reading.text`; None: there is none, or it is damaged."""
    try:
        boot, since, at = (text or "").split(" ")
        return Reading(boot, float(since), float(at))
    except ValueError:
        return None


class SteadyClock:
    """Follows the wall clock, except for unconfirmed steps."""

    def __init__(
        self,
        *,
        begin: float | None = None,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = since_boot,
    ) -> None:
        self._wall, self._steady = wall, steady
        self._booted = (wall() if begin is None else begin) - steady()
        self.step: ClockStep | None = None  #: not followed yet
        self.look()

    def now(self) -> float:
        """Seconds since 1970."""
        return self._booted + self._steady()

    def look(self) -> None:
        """Compare with the wall clock; call it regularly."""
        at = self._steady()
        by = self._wall() - self._booted - at
        if abs(by) <= FOLLOWED_S:
            self._booted += by
            if self.step is not None:
                log.info("the system clock agrees again")
                self.step = None
        elif self.step is None or abs(by - self.step.by) > FOLLOWED_S:
            self.step = ClockStep(by, at)
            way = "forward" if by > 0 else "back"
            log.warning(
                "the system clock was set %s by %s: ignored unless confirmed in an hour",
                way,
                about_duration(abs(by)),
            )

    @property
    def confirmed(self) -> bool:
        """Did a second reading agree with the step, long enough after the first?"""
        step = self.step
        if step is None or self._steady() - step.seen_at < CONFIRMED_AFTER_S:
            return False
        self.look()
        return self.step is step

    def follow(self) -> float:
        """Follow a confirmed step. Returns its size."""
        by = self._wall() - self.now()
        self._booted += by
        self.step = None
        log.warning("the step of the system clock by %+.0f s is confirmed, and followed", by)
        return by


def starting_time(known: Reading | None, *, newest: float, at_stake: bool, now: Reading) -> float:
    """The time at which a manager starts: that of the wall clock (`now.at`), unless it cannot be right.

    `known` is what the last manager wrote down, `newest` the newest time in the database. Without a reboot
    in between, the time that passed is known. After a reboot it is not. But time cannot have gone back, and a jump
    of more than a month is not believed while jobs or tokens depend on it.
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
    """Set the clock of this process."""
    global _clock
    _clock = SteadyClock(begin=at)


def steady() -> SteadyClock:
    """The one clock of this process."""
    return _clock


def now() -> float:
    """Seconds since 1970, by the one clock of this process."""
    return _clock.now()


def reading() -> Reading:
    """The present time, in the form that is stored for the next manager."""
    return Reading(boot_id(), since_boot(), now())
