"""Expected times of equal jobs that wait one after the other, computed by position instead of one by one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from heapq import merge
from itertools import pairwise
from math import inf
from operator import attrgetter
from typing import Final

from rota.core.forecast.capacity import CORELESS, core_width, limit_units, most_at_once, units
from rota.core.forecast.expectation import (
    AHEAD,
    ELSEWHERE,
    FAR,
    NO_ESTIMATE,
    Expected,
    ForecastSnapshot,
    Unknown,
)
from rota.core.forecast.job_durations import JobDurations
from rota.core.jobs.job import Job
from rota.core.site.limits import openings
from rota.core.states import State
from rota.plan.forecast.waiting_jobs import FAR_S, Commitment, EqualJobs, Key, Stretch
from rota.plan.placement.explanation import Waiting
from rota.plan.size import CORE, Size
from rota.pool_names import is_delegated

#: A job class with several report groups is cut into at most this many runs.
_MOST_RUNS: Final = 16
#: Jobs of a run whose duration is looked up.
_SAMPLES: Final = 8
#: For longer jobs the rate follows from their duration; for shorter ones it is measured.
_SHORT_S: Final = 5.0
#: Wider than any capacity.
_TOO_WIDE: Final = 1 << 62
#: Jobs handled in one step, during which no other thread can run.
_SLICE: Final = 1 << 14
_GROUP: Final = attrgetter("spec.group")


class PlacedJobs:
    """A run of equal jobs and their expected times."""

    __slots__ = ("_firsts", "_stretches", "_wall", "equal", "last", "possible", "trouble")

    def __init__(self, equal: EqualJobs, trouble: Unknown, last: dict[str, int], *, possible: bool = True) -> None:
        self.equal = equal
        self.trouble = trouble
        self.last = last  #: report group → position of its last job
        self.possible = possible
        self._stretches: list[Stretch] = []
        self._firsts: list[int] = []
        self._wall = 0.0

    def take(self, stretches: list[Stretch], wall: float) -> None:
        self._stretches, self._wall = stretches, wall
        self._firsts = [stretch.first for stretch in stretches]

    def of(self, id: int) -> Expected | None:
        place = bisect_left(self.equal.jobs, id)
        if place >= len(self.equal.jobs) or self.equal.jobs[place] != id:
            return None
        return self.at(place)

    def at(self, place: int) -> Expected:
        """The expected times of the job at this position."""
        stage = bisect_left(self._firsts, place + 1) - 1
        if stage < 0 or not self.possible:
            return Expected(unknown=self.trouble)
        stretch = self._stretches[stage]
        if place - stretch.first >= stretch.pace.number:
            return Expected(unknown=FAR)
        start = stretch.pace.start(place - stretch.first)
        if start == inf:
            return Expected(unknown=self.trouble if self.equal.length is not None else NO_ESTIMATE)
        if start - self._wall > FAR_S:
            return Expected(unknown=FAR)
        if self.equal.length is None:
            return Expected(start, None, NO_ESTIMATE)
        return Expected(start, start + self.equal.length)


class EqualJobRuns:
    """Makes runs of equal jobs out of waiting jobs."""

    def __init__(
        self,
        taken: ForecastSnapshot,
        jobs: Mapping[int, Job],
        *,
        durations: JobDurations,
        running: Mapping[str, int],
    ) -> None:
        """`running`: report group → number of its jobs with a lease."""
        self._taken = taken
        self._jobs = jobs
        self._durations = durations
        self._running = running

    def cut(self, job_class: Waiting, but: set[int], like: Commitment | None = None) -> list[PlacedJobs]:
        """Cut a job class into runs of jobs that are of one report group and follow each other."""
        ids = _ordered(job_class.jobs)
        if job_class.gone or but:
            ids = [id for id in ids if id not in job_class.gone and id not in but]
        jobs: list[Job] = []
        groups: list[str] = []
        for begin in range(0, len(ids), _SLICE):
            some = list(filter(None, map(self._jobs.get, ids[begin : begin + _SLICE])))
            jobs += some
            groups += map(_GROUP, some)
        if not jobs:
            return []
        if len(jobs) < len(ids):
            ids = [job.id for job in jobs]  # some have ended since
        bounds: list[int] = []
        if len(set(groups)) > 1:
            bounds = [at for at, (one, other) in enumerate(pairwise(groups), 1) if one != other]
        if len(bounds) >= _MOST_RUNS:
            step = -(-len(groups) // _MOST_RUNS)
            bounds = list(range(step, len(groups), step))
        runs = []
        first = (-job_class.priority,) if like is None else like.key[:-1]
        for begin, stop in zip([0, *bounds], [*bounds, len(jobs)], strict=True):
            whole = {groups[0]: stop - 1}
            last = {group: at for at, group in enumerate(groups[begin:stop])} if bounds else whole
            placed = self._run(job_class, ids[begin:stop], jobs[begin:stop], last, first)
            if like is not None:
                placed.equal = placed.equal._replace(since=like.start)
            runs.append(placed)
        return runs

    def delayed(self, *, plan: bool) -> list[PlacedJobs]:
        """Delayed jobs: each waits for capacity from a moment of its own."""
        found = []
        for due, id in self._taken.delayed:
            job = self._jobs.get(id)
            if job is not None and job.state is State.DELAYED and job.due_at == due and self.plans(job) == plan:
                found.append(self.later(job, due))
        return found

    def plans(self, job: Job) -> bool:
        """Would the job be in the plan if it were ready?"""
        return self._taken.plan is not None and (job.size.cpus > 0 or job.spec.on_terms)

    def later(self, job: Job, after: float) -> PlacedJobs:
        """Place a job that waits for capacity from some moment on."""
        width = max(1, -(-job.size.cpus // CORE)) if self.plans(job) else 0
        job_class = Waiting(job.spec.priority, job.need, [job.id], frozenset(), width)
        placed = self._run(job_class, [job.id], [job], {job.spec.group: 0}, (-job.spec.priority,))
        placed.equal = placed.equal._replace(after=after)
        return placed

    def _run(
        self, job_class: Waiting, ids: list[int], jobs: Sequence[Job], last: dict[str, int], first: Key
    ) -> PlacedJobs:
        need = job_class.need
        width, trouble = (job_class.width, None) if job_class.width else core_width(self._taken, need.size)
        if is_delegated(need.pool):
            trouble = ELSEWHERE
        uses = []
        for use in need.limits:
            limit = self._taken.limits.get(use.name)
            most = limit_units(limit)
            if most is not None:
                takes = units(limit, use.units, use.exclusive)
                uses.append((use.name, takes))
                if takes > most:
                    trouble = Unknown("limit", f"limit '{use.name}' has fewer units than it needs")
        if not width:
            uses.append((CORELESS, 1))
        windows = [
            limit.window for use in need.limits if (limit := self._taken.limits.get(use.name)) and limit.window
        ]
        hours = openings(self._taken.world.zone, windows) if windows else None
        length = self._duration(jobs, last, need.size)
        equal = EqualJobs(
            ids, (*first, ids[0]), width if trouble is None else _TOO_WIDE, length, tuple(uses), hours
        )
        return PlacedJobs(equal, trouble or AHEAD, last, possible=trouble is None)

    def _duration(self, jobs: Sequence[Job], last: Mapping[str, int], size: Size) -> float | None:
        """The average duration of a run's jobs; for short ones including the cost of starting them."""
        step = max(1, len(jobs) // _SAMPLES)
        lengths = [self._durations.whole_s(job) for job in jobs[::step]]
        known = [length for length in lengths if length is not None]
        usual = sum(known) / len(known) if len(known) == len(lengths) else None
        group = next(iter(last))
        rate = self._taken.rates.get(group) if len(last) == 1 else None
        if rate and (usual is None or usual < _SHORT_S):
            at_once = min(self._running.get(group, 0), most_at_once(self._taken, size))
            if at_once:
                return max(usual or 0.0, at_once / rate)
        return usual


def _ordered(ids: list[int]) -> list[int]:
    """Sort in slices, so that other threads can run in between."""
    if len(ids) <= _SLICE:
        return sorted(ids)
    return list(merge(*(sorted(ids[at : at + _SLICE]) for at in range(0, len(ids), _SLICE))))
