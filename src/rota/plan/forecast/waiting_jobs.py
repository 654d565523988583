"""When waiting jobs begin and end, planned or not, if they run as long as such jobs do.

Jobs that ask for the same and wait in a row are one `Line`, whatever their number; a job that the plan has a place
for is a `Firm`. The plan keeps the site's rules; what comes here beside it are capacities, limits and hours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from typing import Final, NamedTuple

from rota.plan.forecast.free_capacity import Gap, Room
from rota.plan.forecast.pace import Pace

#: Further ahead nothing can be foreseen (nor written as a date).
FAR_S: Final = 10 * 365 * 86_400.0
#: A line is followed through so many openings of its hours.
_MOST_OPENINGS: Final = 400

#: Lines open at no more moments than this or twice as many; others open with those before them.
_MOST_MOMENTS: Final = 32
#: So many jobs of a line are put before a wide one that waits.
_MOST_BETWEEN: Final = 64

#: The queue, priority and order of a job, then its id: smaller goes first.
Key = tuple[float, ...]
#: From when on, beginning with this moment, jobs may start, and until when.
Hours = Callable[[float], tuple[float, float]]


class Firm(NamedTuple):
    """A job with a place in the plan."""

    job: int
    start: float  #: as planned
    span: float  #: for which the plan holds its resources
    length: float | None  #: how long it is expected to run; None: nobody knows
    mask: int
    key: Key
    fixed: bool = False  #: a reservation: it begins then, whatever else
    bound: bool = False  #: not before its planned start: something else than others' ends decided that
    evicts: bool = False  #: besteffort jobs on its resources are ended for it


class Line(NamedTuple):
    """Waiting jobs that ask for the same, in the order of their turn."""

    jobs: Sequence[int]
    key: Key  #: of the first
    width: int  #: of the room
    length: float | None  #: how long each is expected to run; None: nobody knows
    uses: tuple[tuple[str, int], ...] = ()  #: units of limits
    hours: Hours | None = None
    after: float = 0.0  #: none begins before
    since: float = 0.0  #: when the first that asks for the same is planned: whoever is planned earlier passes


class Stretch(NamedTuple):
    """Some jobs of a line that follow each other."""

    first: int  #: its number in the line
    pace: Pace


class Foreseen:
    """Who begins when. Lines and planned jobs are added in the order of their turn."""

    def __init__(self, now: float, room: Room, limits: dict[str, Room]) -> None:
        self.now = now
        self._room = room
        self._limits = limits
        self.firm: dict[int, tuple[float, float | None]] = {}  #: job → start, length

    def run(self, firm: Iterable[Firm], lines: Sequence[Line]) -> list[list[Stretch]]:
        """Place all of these; the answers are those of the lines, in their order.

        Time passes from one planned start, or opening of a line, to the next. Until then those that may begin do,
        the best in rank first; a reservation, and whoever could not begin before, takes nothing from them.
        """
        found: list[list[Stretch]] = [[] for _ in lines]
        left = [0] * len(lines)  #: the number of the first job of each that has no place yet
        opening = sorted((self._opens(line), at) for at, line in enumerate(lines))
        events: list[tuple[float, Key, Firm | None, list[int]]] = []
        for moment, some in _together(opening):
            events.append((moment, (), None, some))
        events += [(each.start, each.key, each, []) for each in firm]
        waiting: list[int] = []  #: lines whose turn it is, best first

        def flush(better: Key | None, before: float, start: float = inf) -> list[int]:
            """Place the lines that are better than this, and were to begin by then; those that are left."""
            kept: list[int] = []
            for place, at in enumerate(waiting):
                line = lines[at]
                if better is not None and line.key > better:
                    return [*kept, *waiting[place:]]
                if better is None or line.since <= start:
                    found[at] += self.place(line, left[at], since=_last_start(found[at]), before=before)
                    left[at] = sum(stretch.pace.number for stretch in found[at])
                    if left[at] >= len(line.jobs) or before == inf:
                        continue
                kept.append(at)
            return kept

        for moment, key, each, some in sorted(events, key=lambda event: event[:2]):
            waiting = flush(None, moment) if each is None or each.fixed else flush(key, inf, moment)
            if each is not None:
                self._hold(each)
            if some:
                waiting = sorted([*waiting, *some], key=lambda at: lines[at].key)
        flush(None, inf)
        return found

    def _opens(self, line: Line) -> float:
        """When a line may begin, whoever is before it: in its hours, and when its limits have units."""
        moment = max(self.now, line.after, *(self._limits[name].first(units) for name, units in line.uses))
        return line.hours(moment)[0] if line.hours is not None and moment < inf else moment

    def _hold(self, each: Firm) -> None:
        """A planned job has the resources that the plan gives it, as soon as those before it there have ended."""
        length = each.span if each.length is None else each.length
        if each.fixed:
            start = max(self.now, each.start)
        else:
            start = max(self.now, self._room.free_at(each.mask), each.start if each.bound else 0.0)
            start = each.start if start == inf else start
        self.firm[each.job] = (start, each.length)
        if each.mask:
            self._room.hold(each.mask, start + length)

    def place(self, line: Line, first: int = 0, *, since: float = 0.0, before: float = inf) -> list[Stretch]:
        """Give the jobs of a line, from this one on, the places that are free first between these moments."""
        after = max(self.now, line.after, since)
        found = self._between(line, first, after, before) if line.hours is None and not line.uses else []
        first += len(found)
        for _ in range(_MOST_OPENINGS):
            number = len(line.jobs) - first
            if not number:
                break
            until = before
            if line.hours is not None:
                after, closes = line.hours(after)
                until = min(before, closes)
            if after - self.now > FAR_S or after >= before:
                break
            stretch = self._fill(line, number, after=after, until=until)
            if stretch is None:
                break
            if stretch.number:
                found.append(Stretch(first, stretch))
                first += stretch.number
            if until >= before or line.hours is None:
                break
            after = until
        return found

    def _between(self, line: Line, first: int, after: float, before: float) -> list[Stretch]:
        """Short jobs begin while a wide one that is before them waits for the rest of its room."""
        found: list[Stretch] = []
        if line.length is None:
            return found
        gaps = self._room.gaps
        before = min(before, max(after, self._room.first(line.width)) if gaps else before)
        for at, gap in enumerate(gaps):
            start, amount = max(after, gap.free), gap.amount
            if start + line.length > gap.until or start >= before:
                continue
            while amount >= line.width and first < len(line.jobs) and len(found) < _MOST_BETWEEN:
                found.append(Stretch(first, Pace([start], line.length, 1)))
                first += 1
                amount -= line.width
            gaps[at] = Gap(gap.free, gap.until, amount)
        if found:
            self._room.gaps = [gap for gap in gaps if gap.amount]
            base = found[0].first
            found.sort(key=lambda stretch: stretch.pace.start(0))
            found = [Stretch(base + number, stretch.pace) for number, stretch in enumerate(found)]
        return found

    def _fill(self, line: Line, number: int, *, after: float, until: float) -> Pace | None:
        """So many jobs of a line, none of which begins before or after these moments; None: nothing ever fits."""
        rooms = [(self._room, line.width), *((self._limits[name], units) for name, units in line.uses)]
        taken = [room.take(width, number) for room, width in rooms]
        most = min(map(len, taken))
        for (room, _width), places in zip(rooms, taken, strict=True):
            room.give(places[most:])
        if not most:
            return None
        free = [max(after, *(places[at].free for places in taken)) for at in range(most)]
        pace = Pace(free, inf if line.length is None else line.length, number)
        if until < inf:
            pace.number = pace.begun_before(until)
        later = pace.free_after(free, pace.number)
        for (room, _width), places in zip(rooms, taken, strict=True):
            room.give(
                [
                    place._replace(free=moment) if moment != was else place
                    for place, was, moment in zip(places[:most], free, later, strict=True)
                ]
            )
        return pace


def _last_start(stretches: list[Stretch]) -> float:
    """When the last of these jobs begins; the jobs behind it begin no earlier, even if a gap was overlooked."""
    if not stretches:
        return 0.0
    pace = stretches[-1].pace
    start = pace.start(pace.number - 1)
    return start if start < inf else 0.0


def _together(opening: list[tuple[float, int]]) -> Iterator[tuple[float, list[int]]]:
    """Lines by the moment of their opening; of many moments, those that are near each other as one."""
    step = max(1, len({moment for moment, _at in opening}) // _MOST_MOMENTS)
    by_moment: dict[float, list[int]] = {}
    for moment, at in opening:
        by_moment.setdefault(moment, []).append(at)
    moments = list(by_moment)
    for first in range(0, len(moments), step):
        yield moments[first], [at for moment in moments[first : first + step] for at in by_moment[moment]]
