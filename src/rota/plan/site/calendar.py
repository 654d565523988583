"""Which rule sets apply when: weekly hours in a time zone, and one-off periods that win over them.

Every day on which weekly hours begin is a period of its own, also where the hours are left out. Several weekly
periods at once all apply, as do several one-off ones; while a one-off period lasts no weekly one does.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import Final, NamedTuple

from rota.plan.language.weekly_hours import Weekly
from rota.plan.site.clock import SECOND, Clock, moment

_DAY: Final = timedelta(days=1)
#: So far ahead of what was asked for the periods are worked out at once.
_AHEAD: Final = 60 * 86400 * SECOND
#: Two questions further apart than this do not share one stretch of worked out periods.
_APART: Final = 3 * 365 * 86400 * SECOND

Rules = Mapping[str, Sequence[float | str]]


class Occurrence:
    """One period of a rule set: this Monday's hours, say. Moments are those of `rota.plan.site.clock`."""

    __slots__ = ("parts", "set")

    def __init__(self, name: str, parts: tuple[tuple[int, int], ...]) -> None:
        self.set = name
        self.parts = parts  #: more than one where a one-off period takes its middle

    def overlap(self, start: int, end: int) -> int:
        """How much of [start, end) lies within it."""
        total = 0
        for begins, ends in self.parts:
            shared = min(end, ends) - max(start, begins)
            if shared > 0:
                total += shared
        return total


class CalendarPiece(NamedTuple):
    """A stretch in which the same occurrences apply."""

    start: int
    end: int
    occurrences: tuple[Occurrence, ...]


class Period(NamedTuple):
    """A stretch, in seconds of the planner, and the rule sets that apply in all of it."""

    start: float
    end: float
    sets: tuple[str, ...]


class Calendar:
    """Periods and the rule sets that they name. What was worked out once is kept."""

    def __init__(
        self,
        clock: Clock,
        *,
        weekly: Sequence[tuple[Weekly, str]] = (),
        oneshot: Sequence[tuple[int, int, str]] = (),
        sets: Mapping[str, Rules] | None = None,
    ) -> None:
        self.clock = clock
        self.sets: dict[str, Rules] = dict(sets or {})
        self._weekly = tuple(weekly)
        self._oneshot = [Occurrence(name, ((start, end),)) for start, end, name in sorted(oneshot)]
        self._days: dict[date, list[Occurrence]] = {}
        self._pieces: list[CalendarPiece] = []
        self._starts: list[int] = []

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
                # Twice as much each time: whoever asks on and on does not pay for all of it on and on.
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

    def _of_day(self, day: date) -> list[Occurrence]:
        """The weekly periods that begin on this day."""
        found = self._days.get(day)
        if found is None:
            found = self._days[day] = []
            midnight = datetime.combine(day, time())
            for weekly, name in self._weekly:
                if weekly.begins_on(day):
                    start = self.clock.moment(midnight + timedelta(minutes=weekly.start))
                    end = self.clock.moment(midnight + timedelta(minutes=weekly.end))
                    if parts := self._left(start, end):
                        found.append(Occurrence(name, parts))
        return found

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
