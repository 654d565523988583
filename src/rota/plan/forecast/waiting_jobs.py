"""When waiting jobs will start and end, planned or not, if they run as long as such jobs usually do.

Jobs in a row that ask for the same are one `EqualJobs`, however many there are. A job with a planned start is a
`Commitment`. The site's rules are the plan's business: only capacities, limits and hours are considered here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from typing import Final, NamedTuple

from rota.plan.forecast.free_capacity import FreeCapacity, Gap
from rota.plan.forecast.pace import Pace

#: No forecast reaches further (and a date could not be written).
FAR_S: Final = 10 * 365 * 86_400.0
#: Equal jobs are followed through so many periods of their hours.
_MOST_OPENINGS: Final = 400

#: Openings are merged until they are at about this many moments, at most twice as many.
_MOST_MOMENTS: Final = 32
#: At most so many of equal jobs fill the gaps before a wide job.
_MOST_BETWEEN: Final = 64

#: The queue, priority and order of a job, then its id: smaller goes first.
Key = tuple[float, ...]
#: Given a moment: the next time from which jobs may start, and until when.
Hours = Callable[[float], tuple[float, float]]


class Commitment(NamedTuple):
    """A job with a planned start."""

    job: int
    start: float  #: as planned
    span: float  #: how long the plan holds its resources
    length: float | None  #: how long it is expected to run; None: unknown
    mask: int
    key: Key
    fixed: bool = False  #: a reservation: it starts exactly then
    bound: bool = False  #: never before its planned start, because more than the ends of other jobs decided it
    evicts: bool = False  #: besteffort jobs on its resources are ended for it


class EqualJobs(NamedTuple):
    """Waiting jobs that ask for the same, in the order of their turn."""

    jobs: Sequence[int]
    key: Key  #: of the first
    width: int  #: how much of the capacity each takes
    length: float | None  #: how long each is expected to run; None: unknown
    uses: tuple[tuple[str, int], ...] = ()  #: units of limits
    hours: Hours | None = None
    after: float = 0.0  #: no job starts before
    since: float = 0.0  #: planned start of the first job that asks for the same; commitments before it pass


class Stretch(NamedTuple):
    """Some equal jobs that follow each other."""

    first: int  #: the index of the first of them
    pace: Pace


class Forecast:
    """Expected starts of jobs. Equal jobs and commitments are placed in the order of their turn."""

    def __init__(self, now: float, capacity: FreeCapacity, limits: dict[str, FreeCapacity]) -> None:
        self.now = now
        self._resources = capacity
        self._limits = limits
        self.commitments: dict[int, tuple[float, float | None]] = {}  #: job → start, length

    def run(self, commitments: Iterable[Commitment], equals: Sequence[EqualJobs]) -> list[list[Stretch]]:
        """Place all of these. Returns the stretches of each of `equals`; `commitments` gets the planned jobs.

        Time passes from one planned start, or opening of equal jobs, to the next. In between, jobs that may start
        do so, best rank first. A reservation, or a job that could not start before, takes nothing from them.
        """
        found: list[list[Stretch]] = [[] for _ in equals]
        left = [0] * len(equals)  #: of each, the index of the first job without a place
        opening = sorted((self._opens(equal), at) for at, equal in enumerate(equals))
        events: list[tuple[float, Key, Commitment | None, list[int]]] = []
        for moment, some in _together(opening):
            events.append((moment, (), None, some))
        events += [(each.start, each.key, each, []) for each in commitments]
        waiting: list[int] = []  #: indices of the equal jobs whose turn it is, best first

        def flush(better: Key | None, before: float, start: float = inf) -> list[int]:
            """Place jobs of better rank, up to `before`; returns the indices that are left."""
            kept: list[int] = []
            for place, at in enumerate(waiting):
                equal = equals[at]
                if better is not None and equal.key > better:
                    return [*kept, *waiting[place:]]
                if better is None or equal.since <= start:
                    found[at] += self.place(equal, left[at], since=_last_start(found[at]), before=before)
                    left[at] = sum(stretch.pace.number for stretch in found[at])
                    if left[at] >= len(equal.jobs) or before == inf:
                        continue
                kept.append(at)
            return kept

        for moment, key, each, some in sorted(events, key=lambda event: event[:2]):
            waiting = flush(None, moment) if each is None or each.fixed else flush(key, inf, moment)
            if each is not None:
                self._hold(each)
            if some:
                waiting = sorted([*waiting, *some], key=lambda at: equals[at].key)
        flush(None, inf)
        return found

    def _opens(self, equal: EqualJobs) -> float:
        """The earliest start if no job were before them: in their hours, and when their limits have units."""
        moment = max(self.now, equal.after, *(self._limits[name].first(units) for name, units in equal.uses))
        return equal.hours(moment)[0] if equal.hours is not None and moment < inf else moment

    def _hold(self, each: Commitment) -> None:
        """A planned job takes its resources as soon as the jobs before it there have ended."""
        length = each.span if each.length is None else each.length
        if each.fixed:
            start = max(self.now, each.start)
        else:
            start = max(self.now, self._resources.free_at(each.mask), each.start if each.bound else 0.0)
            start = each.start if start == inf else start
        self.commitments[each.job] = (start, each.length)
        if each.mask:
            self._resources.hold(each.mask, start + length)

    def place(self, equal: EqualJobs, first: int = 0, *, since: float = 0.0, before: float = inf) -> list[Stretch]:
        """Give equal jobs, from index `first` on, the places between `since` and `before` that are free first."""
        after = max(self.now, equal.after, since)
        found = self._between(equal, first, after, before) if equal.hours is None and not equal.uses else []
        first += len(found)
        for _ in range(_MOST_OPENINGS):
            number = len(equal.jobs) - first
            if not number:
                break
            until = before
            if equal.hours is not None:
                after, closes = equal.hours(after)
                until = min(before, closes)
            if after - self.now > FAR_S or after >= before:
                break
            stretch = self._fill(equal, number, after=after, until=until)
            if stretch is None:
                break
            if stretch.number:
                found.append(Stretch(first, stretch))
                first += stretch.number
            if until >= before or equal.hours is None:
                break
            after = until
        return found

    def _between(self, equal: EqualJobs, first: int, after: float, before: float) -> list[Stretch]:
        """Short jobs fill the gaps while a wide job before them waits for the rest of its resources."""
        found: list[Stretch] = []
        if equal.length is None:
            return found
        gaps = self._resources.gaps
        before = min(before, max(after, self._resources.first(equal.width)) if gaps else before)
        for at, gap in enumerate(gaps):
            start, amount = max(after, gap.free), gap.amount
            if start + equal.length > gap.until or start >= before:
                continue
            while amount >= equal.width and first < len(equal.jobs) and len(found) < _MOST_BETWEEN:
                found.append(Stretch(first, Pace([start], equal.length, 1)))
                first += 1
                amount -= equal.width
            gaps[at] = Gap(gap.free, gap.until, amount)
        if found:
            self._resources.gaps = [gap for gap in gaps if gap.amount]
            base = found[0].first
            found.sort(key=lambda stretch: stretch.pace.start(0))
            found = [Stretch(base + number, stretch.pace) for number, stretch in enumerate(found)]
        return found

    def _fill(self, equal: EqualJobs, number: int, *, after: float, until: float) -> Pace | None:
        """Place up to `number` of equal jobs with starts between these moments; None: they never fit."""
        capacities = [(self._resources, equal.width), *((self._limits[name], units) for name, units in equal.uses)]
        taken = [capacity.take(width, number) for capacity, width in capacities]
        most = min(map(len, taken))
        for (capacity, _width), places in zip(capacities, taken, strict=True):
            capacity.give(places[most:])
        if not most:
            return None
        free = [max(after, *(places[at].free for places in taken)) for at in range(most)]
        pace = Pace(free, inf if equal.length is None else equal.length, number)
        if until < inf:
            pace.number = pace.begun_before(until)
        later = pace.free_after(free, pace.number)
        for (capacity, _width), places in zip(capacities, taken, strict=True):
            capacity.give(
                [
                    place._replace(free=moment) if moment != was else place
                    for place, was, moment in zip(places[:most], free, later, strict=True)
                ]
            )
        return pace


def _last_start(stretches: list[Stretch]) -> float:
    """When the last of these jobs starts. Later jobs start no earlier, even if a gap was overlooked."""
    if not stretches:
        return 0.0
    pace = stretches[-1].pace
    start = pace.start(pace.number - 1)
    return start if start < inf else 0.0


def _together(opening: list[tuple[float, int]]) -> Iterator[tuple[float, list[int]]]:
    """Indices by the moment of their opening. Many moments are merged with their neighbours."""
    step = max(1, len({moment for moment, _at in opening}) // _MOST_MOMENTS)
    by_moment: dict[float, list[int]] = {}
    for moment, at in opening:
        by_moment.setdefault(moment, []).append(at)
    moments = list(by_moment)
    for first in range(0, len(moments), step):
        yield moments[first], [at for moment in moments[first : first + step] for at in by_moment[moment]]
