"""Conversion between the planner's seconds and local time in one zone, daylight saving included.

The planner counts seconds from an epoch: Unix time in production, any local time in a trace. Moments are whole
microseconds, so that their sums and differences are exact. Nothing here reads the system clock.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from rota.errors import BadInput
from rota.plan.snapshot import Unchanging

SECOND: Final = 1_000_000  #: a second, in the microseconds of moments

_UNIX: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def moment(seconds: float) -> int:
    """Seconds as whole microseconds. Order and equality are kept."""
    return round(seconds * SECOND)


def find_zone(name: str) -> ZoneInfo:
    """The time zone of this name. Raises `BadInput`."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise BadInput(
            f"'{name}' is not a time zone this machine knows", hint="write a name such as Europe/Paris or UTC"
        ) from error


class Clock(Unchanging):
    """Converts moments of the planner to local time and back."""

    def __init__(self, zone: tzinfo, epoch: datetime | None = None) -> None:
        """`epoch` is the moment 0; without an offset it is a local time of the zone. None: Unix time."""
        self.zone = zone
        self._origin = 0
        if epoch is not None:
            self._origin = self.moment(epoch)

    def wall(self, moment: int) -> datetime:
        """The local time at a moment."""
        try:
            return (_UNIX + timedelta(microseconds=moment + self._origin)).astimezone(self.zone)
        except OverflowError as error:
            raise BadInput(
                f"{moment / SECOND:g} s is not within the years of a calendar",
                hint="give times nearer to the epoch",
            ) from error

    def moment(self, wall: datetime) -> int:
        """The moment of a local time.

        A time that occurs twice, in autumn, means the first; a time that is skipped, in spring, means the change.
        So consecutive local hours are always consecutive moments.
        """
        if wall.tzinfo is None:
            wall = self._absolute(wall)
        return (wall - _UNIX) // _MICROSECOND - self._origin

    def _absolute(self, wall: datetime) -> datetime:
        first = wall.replace(tzinfo=self.zone, fold=0)
        before, after = first.utcoffset(), first.replace(fold=1).utcoffset()
        if before is None or after is None or before >= after:
            return first.astimezone(UTC)
        early, late = (wall - after).replace(tzinfo=UTC), (wall - before).replace(tzinfo=UTC)
        while late - early > _MICROSECOND:
            middle = early + (late - early) // 2
            if middle.astimezone(self.zone).utcoffset() == after:
                late = middle
            else:
                early = middle
        return late
