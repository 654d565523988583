"""Expected starts and ends of all jobs: the only place where they are computed.

Works on a snapshot, in any thread, and treats equal jobs as one. An unknown time has a code and a sentence that
say why.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping
from math import inf
from typing import Final

from rota.core.forecast.capacity import host_capacity, limit_capacity
from rota.core.forecast.equal_jobs import EqualJobRuns, PlacedJobs
from rota.core.forecast.expectation import (
    EMPTY,
    MANY,
    NEW,
    NO_ESTIMATE,
    NO_ROOM,
    RESTING,
    Expected,
    ForecastSnapshot,
    Unknown,
)
from rota.core.forecast.job_durations import JobDurations
from rota.core.jobs.dependencies import verdict
from rota.core.jobs.job import Job, Parent
from rota.core.states import LEASED, LIVE, TERMINAL, State
from rota.core.world import World
from rota.plan.forecast import planned_jobs
from rota.plan.forecast.waiting_jobs import Forecast, Stretch
from rota.plan.need import Need

#: Dependent jobs are placed one by one. Beyond this many nothing is said about them, so that an answer takes a
#: second or two at most.
MOST_DEPENDENT: Final = 20_000
#: A preempted besteffort job of this type is queued again.
_IDEMPOTENT: Final = frozenset({"idempotent"})


class Expectations:
    """The expected times of every live job at the moment of the snapshot."""

    def __init__(self, taken: ForecastSnapshot, also: Job | None = None) -> None:
        """`also`: a job that does not exist, and that is asked about."""
        self.wall = taken.wall
        self._taken = taken
        jobs = taken.world.jobs
        self._jobs: Mapping[int, Job] = jobs if also is None else ChainMap({also.id: also}, jobs)
        self._known: dict[int, Expected] = {}  #: jobs outside runs of equal jobs
        self._placed: dict[tuple[int, Need], list[PlacedJobs]] = {}
        self._running: dict[str, int] = {}  #: report group → number of its jobs with a lease
        self._durations = JobDurations(taken)
        self._runs = EqualJobRuns(taken, self._jobs, durations=self._durations, running=self._running)
        #: report group → end of its last job, without jobs that wait for a person
        self.group_end: dict[str, float] = {}
        self.group_unknown: dict[str, Unknown] = {}  #: why a report group has no such end
        self._work_out()

    # -- answers

    def of(self, job: Job) -> Expected:
        """The expected start and end of this job."""
        resting = RESTING.get(job.state)
        if resting is not None and job.id not in self._known:
            code = resting if job.reason is None else Unknown(resting.code, job.reason.message)
            return Expected(unknown=code)
        known = self._known.get(job.id)
        if known is not None:
            return known
        for placed in self._placed.get((job.spec.priority, job.need), ()):
            if (found := placed.of(job.id)) is not None:
                return found
        if job.state in LEASED:
            return self._durations.leased(job)
        if job.state not in LIVE:
            return Expected()
        return Expected(unknown=self._taken.stopped or NEW)

    def left_s(self, job: Job) -> float | None:
        """How long this job will run yet, from now or from its start; None: unknown."""
        if job.state in (State.BLOCKED, *TERMINAL):
            return 0.0  # it does not run
        if job.lease is None:
            return self._durations.whole_s(job)
        end = self._durations.leased(job).end
        return None if end is None else end - self.wall

    def end_of(self, jobs: Iterable[Job]) -> tuple[float | None, Unknown | None]:
        """The end of the last of these jobs, or why it is unknown. Jobs that wait for a person are left out."""
        latest: float | None = None
        for job in jobs:
            if job.state in RESTING or job.state not in LIVE:
                continue
            expected = self.of(job)
            if expected.end is None:
                return None, expected.unknown
            latest = expected.end if latest is None else max(latest, expected.end)
        return latest, None

    # -- working it out

    def _work_out(self) -> None:
        taken, runs = self._taken, self._runs
        ends: dict[int, float | None] = {}
        leaves = planned_jobs.evictions(taken.plan) if taken.plan is not None and taken.stopped is None else {}
        for job in taken.leased:
            resting = RESTING.get(job.state)
            expected = Expected(unknown=resting) if resting is not None else self._durations.leased(job)
            gone = leaves.get(job.id, inf)
            end = min(gone, inf if expected.end is None else expected.end)
            if resting is None:
                if end == gone < inf and not _IDEMPOTENT & set(job.spec.types):
                    # Another job takes its resources then.
                    expected = Expected(expected.start, max(gone, self.wall))
                self._known[job.id] = expected
                self._note(job.spec.group, expected)
            ends[job.id] = None if end == inf else end
            self._running[job.spec.group] = self._running.get(job.spec.group, 0) + 1
        if taken.stopped is not None:
            self._nothing_starts(taken.stopped)
            return
        limits = limit_capacity(taken, ends)
        packed = host_capacity(taken, ends, limits)
        firm_jobs: set[int] = set()
        if taken.plan is not None:
            left = {id: max(0.0, end - self.wall) for id, end in ends.items() if end is not None}
            planned = planned_jobs.forecast_of(taken.plan, self.wall, left=left.get, limits=limits)
            firm, single = planned_jobs.with_lengths(taken.plan, self._length_of)
            firm_jobs = {each.job for each in firm} | {equal.jobs[0] for equal in single}
            for id, waits in taken.plan.stuck:
                firm_jobs.add(id)
                self._known[id] = Expected(unknown=Unknown(waits.code, waits.message))
                self._note(self._group(id), self._known[id])
            first = {self._alike(each.job): each for each in sorted(firm, key=lambda one: -one.start)}
            placed = [
                each
                for job_class in taken.waiting
                if job_class.width
                for each in runs.cut(job_class, firm_jobs, first.get((job_class.priority, job_class.need)))
            ]
            placed += runs.delayed(plan=True)
            placed += [PlacedJobs(equal, NO_ROOM, {self._group(equal.jobs[0]): 0}) for equal in single]
            for each, stretches in zip(placed, planned.run(firm, [each.equal for each in placed]), strict=True):
                self._settle(each, stretches)
            for id, (start, length) in planned.commitments.items():
                self._knows(id, start, length)
        else:
            planned = packed
        packable = [job_class for job_class in taken.waiting if not job_class.width]
        placed = [each for job_class in packable for each in runs.cut(job_class, firm_jobs)]
        placed += runs.delayed(plan=False)
        for each, stretches in zip(placed, packed.run((), [each.equal for each in placed]), strict=True):
            self._settle(each, stretches)
        self._dependent(planned, packed)

    def _alike(self, id: int) -> tuple[int, Need] | None:
        job = self._jobs.get(id)
        return None if job is None else (job.spec.priority, job.need)

    def _nothing_starts(self, why: Unknown) -> None:
        """Nothing starts: only running jobs have an end."""
        for group, counts in list(self._taken.world.counts.items()):
            if counts[State.READY] or counts[State.DEPENDENT] or counts[State.DELAYED]:
                self.group_unknown[group] = why
                self.group_end.pop(group, None)

    def _group(self, id: int) -> str:
        job = self._jobs.get(id)
        return job.spec.group if job is not None else ""

    def _length_of(self, id: int) -> float | None:
        job = self._jobs.get(id)
        if job is None:
            return None
        if job.lease is None:
            return self._durations.whole_s(job)
        end = self._durations.leased(job).end  # suspended; it will be resumed
        return None if end is None else end - self.wall

    def _knows(self, id: int, start: float, length: float | None) -> None:
        job = self._jobs.get(id)
        if job is None:
            return
        start = max(start, self.wall)
        end = None if length is None else start + length
        expected = Expected(start, end, NO_ESTIMATE if end is None else None)
        self._known[id] = expected
        self._note(job.spec.group, expected)

    def _note(self, group: str, expected: Expected) -> None:
        """Add a job's end to its report group, which ends with its last job."""
        if expected.end is None:
            self.group_unknown.setdefault(group, expected.unknown or NO_ESTIMATE)
            self.group_end.pop(group, None)
        elif group not in self.group_unknown:
            self.group_end[group] = max(expected.end, self.group_end.get(group, 0.0))

    def _settle(self, placed: PlacedJobs, stretches: list[Stretch]) -> None:
        placed.take(stretches, self.wall)
        job = self._jobs.get(placed.equal.jobs[0])
        if job is not None:
            self._placed.setdefault((job.spec.priority, job.need), []).append(placed)
        for group, last in placed.last.items():
            self._note(group, placed.at(last))

    def _dependent(self, planned: Forecast, packed: Forecast) -> None:
        """Place dependent jobs: each waits for capacity from the expected end of its last parent."""
        world = self._taken.world
        ends: dict[Parent, tuple[float, Unknown | None]] = {}
        looked_at = 0
        begun: set[int] = set()  #: jobs whose parents are being placed; guards against cycles
        for root in sorted(self._taken.dependent):
            stack = [root]
            while stack:  # iterative: chains may be long
                id = stack[-1]
                job = self._jobs.get(id)
                if id in self._known or job is None or job.state is not State.DEPENDENT:
                    stack.pop()
                    continue
                missing, after, why = self._parents(world, job, ends)
                fresh = [parent for parent in missing if parent not in begun]
                if fresh:
                    begun.add(id)
                    stack += fresh
                    continue
                stack.pop()
                if why is None and (looked_at := looked_at + 1) > MOST_DEPENDENT:
                    why = MANY
                if why is not None:
                    self._known[id] = Expected(unknown=why)
                    self._note(job.spec.group, self._known[id])
                else:
                    placed = self._runs.later(job, after)
                    room = planned if placed.equal.width and self._runs.plans(job) else packed
                    self._settle(placed, room.place(placed.equal) if placed.possible else [])
                    self._known[id] = placed.at(0)

    def _parents(
        self, world: World, job: Job, ends: dict[Parent, tuple[float, Unknown | None]]
    ) -> tuple[list[int], float, Unknown | None]:
        """Return (parents not placed yet, when all parents have ended, why that is unknown)."""
        missing: list[int] = []
        after, why = self.wall, None
        for each in job.after:
            ok, _never = verdict(world, each.parent, each.condition)
            if ok:
                continue
            known = ends.get(each.parent)
            if known is None:
                members = [each.parent] if isinstance(each.parent, int) else list(world.groups[each.parent].open)
                late, cause, unready = self._last_of(members)
                if not members:
                    cause = EMPTY
                if unready:
                    missing += unready
                    continue
                known = ends[each.parent] = (late, cause)
            after = max(after, known[0])
            if (cause := known[1]) is not None and why is None:
                if cause.code == "dependency":
                    why = cause  # name the first cause in a chain, not every link
                    continue
                name = f"job {each.parent}" if isinstance(each.parent, int) else f"group '{each.parent}'"
                why = Unknown("dependency", f"{name} has no expected end: {cause.message}")
        return missing, after, why

    def _last_of(self, members: list[int]) -> tuple[float, Unknown | None, list[int]]:
        late, cause = self.wall, None
        unready = []
        for id in members:
            job = self._jobs.get(id)
            if job is None:
                continue
            if job.state is State.DEPENDENT and id not in self._known:
                unready.append(id)
                continue
            expected = self.of(job)
            if expected.end is None:
                cause = cause or expected.unknown or NEW
            else:
                late = max(late, expected.end)
        return late, cause, unready
