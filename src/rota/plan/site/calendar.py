"""Calendars: which rule sets apply when. Weekly hours in a time zone, and one-off periods that override them.

Weekly hours make one period for each day on which they begin. Overlapping weekly periods all apply, and so do
overlapping one-off periods; during a one-off period no weekly one applies.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import Final, NamedTuple

from msgspec import Struct

from rota.plan.language.weekly_hours import Weekly
from rota.plan.site.clock import SECOND, Clock, moment
from rota.plan.snapshot import state

_DAY: Final = timedelta(days=1)
#: Periods are computed this far beyond what was asked for.
_AHEAD: Final = 60 * 86400 * SECOND
#: A question further away than this drops the periods computed before.
_APART: Final = 3 * 365 * 86400 * SECOND

Rules = Mapping[str, Sequence[float | str]]


class Occurrence(Struct, frozen=True, eq=False):
    """One period of a rule set, such as the hours of one Monday. Times are moments of `rota.plan.site.clock`."""

    set: str
    parts: tuple[tuple[int, int], ...]  #: more than one if a one-off period cuts it

    def overlap(self, start: int, end: int) -> int:
        """How much of [start, end) lies within it."""
        total = 0
        for begins, ends in self.parts:
            shared = min(end, ends) - max(start, begins)
            if shared > 0:
                total += shared
        return total


class CalendarPiece(NamedTuple):
    """A span in which the same occurrences apply."""

    start: int
    end: int
    occurrences: tuple[Occurrence, ...]


class Period(NamedTuple):
    """A span in seconds of the planner, and the rule sets that apply in all of it."""

    start: float
    end: float
    sets: tuple[str, ...]


@state
class Calendar:
    """Periods and the rule sets that they name. Computed periods are cached."""

    clock: Clock
    sets: Mapping[str, Rules]
    _weekly: tuple[tuple[Weekly, str], ...]
    _oneshot: tuple[Occurrence, ...]
    _days: dict[date, tuple[Occurrence, ...]]  #: quotas count by the identity of these periods
    _pieces: list[CalendarPiece]
    _starts: list[int]

    def __init__(
        self,
        clock: Clock,
        *,
        weekly: Sequence[tuple[Weekly, str]] = (),
        oneshot: Sequence[tuple[int, int, str]] = (),
        sets: Mapping[str, Rules] | None = None,
    ) -> None:
        self.clock = clock
        self.sets = dict(sets or {})
        self._weekly = tuple(weekly)
        self._oneshot = tuple(Occurrence(name, ((start, end),)) for start, end, name in sorted(oneshot))
        self._days, self._pieces, self._starts = {}, [], []

    def periods(self, start: float, end: float) -> list[Period]:
        """Periods that cover [start, end) completely, in order; where no set applies `sets` is empty."""
        found = []
        for piece in self.pieces(moment(start), moment(end)):
            sets = tuple(dict.fromkeys(occurrence.set for occurrence in piece.occurrences))
            found.append(Period(max(start, piece.start / SECOND), min(end, piece.end / SECOND), sets))
        return found

    def pieces(self, start: int, end: int) -> list[CalendarPiece]:
        """The same in moments; the first and the last piece may reach beyond."""
        if start >= end:
            return []
        pieces = self._pieces
        if not pieces or start < pieces[0].start or end > pieces[-1].end:
            self._work_out(start, end)
            pieces = self._pieces
        first = bisect_right(self._starts, start) - 1
        if pieces[first].end >= end:
            return [pieces[first]]
        return pieces[first : bisect_right(self._starts, end - 1)]

    def _work_out(self, start: int, end: int) -> None:
        early, late = start - _AHEAD, end + _AHEAD
        if self._pieces:
            known_from, known_to = self._pieces[0].start, self._pieces[-1].end
            if start < known_to + _APART and end > known_from - _APART:
                # Double the span each time, so that steady advance costs linear time in total.
                early = min(early, known_from) if start < known_from else known_from
                late = max(late, known_to + (known_to - known_from)) if end > known_to else known_to
        self._pieces = _cut(self._between(early, late), early, late)
        self._starts = [piece.start for piece in self._pieces]

    def _between(self, start: int, end: int) -> list[Occurrence]:
        found = list(self._oneshot)
        day, last = self.clock.wall(start).date() - _DAY, self.clock.wall(end).date()
        while day <= last:
            found += self._of_day(day)
            day += _DAY
        return found

    def _of_day(self, day: date) -> tuple[Occurrence, ...]:
        """The weekly periods that begin on this day."""
        known = self._days.get(day)
        if known is None:
            found = []
            midnight = datetime.combine(day, time())
            for weekly, name in self._weekly:
                if weekly.begins_on(day):
                    start = self.clock.moment(midnight + timedelta(minutes=weekly.start))
                    end = self.clock.moment(midnight + timedelta(minutes=weekly.end))
                    if parts := self._left(start, end):
                        found.append(Occurrence(name, parts))
            known = self._days[day] = tuple(found)
        return known

    def _left(self, start: int, end: int) -> tuple[tuple[int, int], ...]:
        """What one-off periods leave of a weekly one."""
        parts = []
        for oneshot in self._oneshot:
            begins, ends = oneshot.parts[0]
            if ends <= start or begins >= end:
                continue
            if begins > start:
                parts.append((start, begins))
            start = max(start, ends)
        if start < end:
            parts.append((start, end))
        return tuple(parts)


def _cut(occurrences: list[Occurrence], start: int, end: int) -> list[CalendarPiece]:
    """Pieces that cover [start, end), cut wherever an occurrence begins or ends."""
    begin: dict[int, list[Occurrence]] = {}
    finish: dict[int, list[Occurrence]] = {}
    for occurrence in occurrences:
        for begins, ends in occurrence.parts:
            if begins < end and ends > start:
                begin.setdefault(max(begins, start), []).append(occurrence)
                finish.setdefault(ends, []).append(occurrence)
    edges = sorted({start, *begin, *(edge for edge in finish if edge < end)})
    pieces: list[CalendarPiece] = []
    now: tuple[Occurrence, ...] = ()
    for edge, following in zip(edges, [*edges[1:], end], strict=True):
        ended = finish.get(edge, [])
        now = (*(occurrence for occurrence in now if occurrence not in ended), *begin.get(edge, []))
        pieces.append(CalendarPiece(edge, following, now))
    return pieces
