"""Which rule sets apply when: weekly hours in a time zone, and one-off periods that win over them.

Every day on which weekly hours begin is a period of its own, also where the hours are left out. Several weekly
periods at once all apply, as do several one-off ones; while a one-off period lasts no weekly one does.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any, Final, NamedTuple

from rota.errors import BadInput
from rota.plan.language.weekly_hours import Weekly, parse_date, parse_weekly
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


class Piece(NamedTuple):
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
        self._pieces: list[Piece] = []
        self._starts: list[int] = []

    def periods(self, start: float, end: float) -> list[Period]:
        """Periods that cover [start, end) completely, in order; where no set applies `sets` is empty."""
        found = []
        for piece in self.pieces(moment(start), moment(end)):
            sets = tuple(dict.fromkeys(occurrence.set for occurrence in piece.occurrences))
            found.append(Period(max(start, piece.start / SECOND), min(end, piece.end / SECOND), sets))
        return found

    def pieces(self, start: int, end: int) -> list[Piece]:
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


def _cut(occurrences: list[Occurrence], start: int, end: int) -> list[Piece]:
    """Pieces that cover [start, end), cut wherever an occurrence begins or ends."""
    begin: dict[int, list[Occurrence]] = {}
    finish: dict[int, list[Occurrence]] = {}
    for occurrence in occurrences:
        for begins, ends in occurrence.parts:
            if begins < end and ends > start:
                begin.setdefault(max(begins, start), []).append(occurrence)
                finish.setdefault(ends, []).append(occurrence)
    edges = sorted({start, *begin, *(edge for edge in finish if edge < end)})
    pieces: list[Piece] = []
    now: tuple[Occurrence, ...] = ()
    for edge, following in zip(edges, [*edges[1:], end], strict=True):
        ended = finish.get(edge, [])
        now = (*(occurrence for occurrence in now if occurrence not in ended), *begin.get(edge, []))
        pieces.append(Piece(edge, following, now))
    return pieces


_FIELDS: Final = ("periodical", "oneshot", "sets")


class CalendarParts(NamedTuple):
    """A document of a calendar, taken apart; the rows may have a description as their last part."""

    weekly: list[list[str]]  #: period, rule set
    oneshot: list[list[str]]  #: start, end, rule set
    sets: dict[str, dict[str, Any]]  #: rule set → rule → limits


def parse_calendar(found: object, clock: Clock) -> Calendar:
    """A calendar as it stands in JSON: `periodical`, `oneshot` and `sets`. Raises `BadInput`."""
    parts = calendar_parts(found)
    weekly = [(parse_weekly(row[0]), row[1]) for row in parts.weekly]
    oneshot = []
    for row in parts.oneshot:
        start, end = _local(row[0], clock), _local(row[1], clock)
        if start >= end:
            raise BadInput(f"one-off period of the calendar ends at {row[1]}, not after its start {row[0]}")
        oneshot.append((start, end, row[2]))
    return Calendar(clock, weekly=weekly, oneshot=oneshot, sets=parts.sets)


def calendar_parts(found: object) -> CalendarParts:
    """Periods whose rule sets are there, and these sets. Raises `BadInput`.

    As in a file of OAR, a period may have a description behind its rule set, and rule sets may stand beside the
    periods under their own names.
    """
    if not isinstance(found, dict):
        raise BadInput("calendar is not an object", hint='write {"periodical": […], "oneshot": […], "sets": {…}}')
    sets = found.get("sets", {})
    beside = {key: value for key, value in found.items() if key not in _FIELDS}
    if unknown := sorted(str(key) for key, value in beside.items() if not isinstance(value, dict)):
        raise BadInput(f"calendar has no field '{unknown[0]}'", hint="its fields are periodical, oneshot and sets")
    if not isinstance(sets, dict) or not all(isinstance(rules, dict) for rules in sets.values()):
        raise BadInput("sets of the calendar do not name rules", hint='write {"day": {"*,*,*,/": [8, -1, -1]}}')
    if twice := sorted(sets.keys() & beside.keys()):
        raise BadInput(
            f"calendar has rule set '{twice[0]}' twice", hint="write it under sets, or beside the periods"
        )
    sets = {**sets, **beside}
    weekly = _rows(found, "periodical", ("period", "set"), '["08:00-19:00 mon-fri", "day"]')
    oneshot = _rows(found, "oneshot", ("start", "end", "set"), '["2026-01-06T00:00", "2026-01-07T00:00", "day"]')
    for name in (*(row[1] for row in weekly), *(row[2] for row in oneshot)):
        _known(name, sets)
    return CalendarParts(weekly, oneshot, sets)


def _rows(found: Mapping[str, object], name: str, parts: tuple[str, ...], example: str) -> list[list[str]]:
    """The rows of a field; each may have a description as its last part, which says nothing to us."""
    rows = found.get(name, [])
    if not isinstance(rows, list):
        raise BadInput(f"{name} of the calendar is not a list", hint=f"write [{example}]")
    for number, row in enumerate(rows, 1):
        fits = isinstance(row, list) and len(parts) <= len(row) <= len(parts) + 1
        if not fits or not all(isinstance(part, str) for part in row):
            raise BadInput(
                f"{name} of the calendar, entry {number}: {row!r} is not [{', '.join(parts)}]",
                hint=f"write {example}",
            )
    return rows


def _known(name: str, sets: Mapping[str, object]) -> None:
    if name not in sets:
        known = ", ".join(sets) or "none"
        raise BadInput(f"calendar names rule set '{name}', which is not under sets", hint=f"sets has: {known}")


def _local(text: str, clock: Clock) -> int:
    try:
        return clock.moment(parse_date(text))
    except (ValueError, OverflowError) as error:
        raise BadInput(
            f"calendar: '{text}' is not a date and time", hint="write it like 2026-01-06T00:00:00"
        ) from error
