"""Replays a trace of jobs through the planner, from event to event, on a machine of equal processors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Final

from msgspec import Struct

from rota.plan.ask import Ask
from rota.plan.language.request import Alternative, Level, ResourceGroup
from rota.plan.planner.planner import Planner
from rota.plan.policy.policy import Policy, Queue
from rota.plan.site.resources import Resource, Site
from rota.sim.metrics import Metrics, ScheduledJob, measure, plain
from rota.sim.swf import SwfJob, SwfTrace, why_skipped

#: Value of `--policy` → backfill.
POLICIES: Final = {"fcfs": "none", "easy": "easy", "easy-sjbf": "easy-sjbf", "conservative": "conservative"}

_UNIT: Final = "core"
_QUEUE: Final = "default"
_REPORT_EVERY: Final = 200


class RanJob(Struct, frozen=True, gc=False):
    """When a job ran, and the numbers of its processors; None if they were only counted."""

    job: SwfJob
    start: float
    end: float
    processors: list[int] | None


class ReplayResult(Struct, frozen=True):
    """The result of a replay."""

    ran: list[RanJob]  #: in the order of submission
    skipped: list[tuple[SwfJob, str]]  #: with the reason
    metrics: Metrics

    def as_json(self) -> dict[str, object]:
        """As the contract of `rota simulate` has it."""
        return {
            "jobs": [
                {
                    "id": each.job.id,
                    "submit": plain(each.job.submit),
                    "start": plain(each.start),
                    "end": plain(each.end),
                }
                for each in self.ran
            ],
            "metrics": self.metrics,
            "skipped": [{"id": job.id, "reason": reason} for job, reason in self.skipped],
        }


def replay(
    trace: SwfTrace,
    *,
    processors: int,
    policy: str,
    exact: bool = False,
    counted: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> ReplayResult:
    """Run a trace on so many processors.

    `exact`: users know how long their jobs run. `counted`: only the number of processors matters, not which.
    `progress` is called from time to time with the number of started jobs and of all jobs.
    """
    jobs: list[SwfJob] = []
    skipped: list[tuple[SwfJob, str]] = []
    for job in trace.jobs:
        if reason := why_skipped(job, processors):
            skipped.append((job, reason))
        else:
            jobs.append(job)
    ran = _Replay(jobs, processors=processors, policy=policy, exact=exact, counted=counted).run(progress)
    placed = [ScheduledJob(each.job.submit, each.start, each.end, each.job.procs) for each in ran]
    return ReplayResult(ran, skipped, measure(placed, processors))


class _Replay:
    """The virtual clock, and the coming submissions and ends. Jobs are identified by their index."""

    def __init__(
        self, jobs: Sequence[SwfJob], *, processors: int, policy: str, exact: bool, counted: bool
    ) -> None:
        self._jobs = jobs
        self._exact = exact
        self._counted = counted
        self._site = Site([Resource(id=n, values={_UNIT: n}) for n in range(1, processors + 1)], levels=(_UNIT,))
        self._planner = Planner(
            self._site,
            # Every waiting job has a planned start, however long the queue.
            Policy(queues={_QUEUE: Queue(order="fifo", backfill=POLICIES[policy])}, depth=len(jobs) + 1),
            now=jobs[0].submit if jobs else 0.0,
            counted=counted,
        )
        self._ends: list[tuple[float, int, int]] = []  #: a heap of (end, number of jobs started before, index)
        self._ran: list[RanJob | None] = [None] * len(jobs)
        self._started = 0

    def run(self, progress: Callable[[int, int], None] | None) -> list[RanJob]:
        jobs, ends, planner = self._jobs, self._ends, self._planner
        submitted, reported = 0, -_REPORT_EVERY
        while (now := self._next(submitted)) is not None:
            # One instant: submissions as in the file, then ends in the order of their starts, then starts.
            while submitted < len(jobs) and jobs[submitted].submit <= now:
                planner.submit(submitted, self._ask(jobs[submitted]), now)
                submitted += 1
            while ends and ends[0][0] <= now:
                planner.ended(heappop(ends)[2], now)
            for begin in planner.begin(now):
                place = begin.entry.id
                self._begin(place, now, begin.entry.resources)
            if progress is not None and self._started >= reported + _REPORT_EVERY:
                reported = self._started
                progress(reported, len(jobs))
        return [each for each in self._ran if each is not None]

    def _next(self, submitted: int) -> float | None:
        """The time of the next event."""
        moments = []
        if submitted < len(self._jobs):
            moments.append(self._jobs[submitted].submit)
        if self._ends:
            moments.append(self._ends[0][0])
        if (planned := self._planner.next_start()) is not None:
            moments.append(planned)
        return min(moments, default=None)

    def _ask(self, job: SwfJob) -> Ask:
        group = ResourceGroup((Level(_UNIT, job.procs),))
        return Ask(alternatives=(Alternative((group,), job.run if self._exact else job.requested),), user=job.user)

    def _begin(self, place: int, now: float, resources: int) -> None:
        job = self._jobs[place]
        where = None if self._counted else self._site.ids(resources)
        self._ran[place] = RanJob(job, now, now + job.run, where)
        heappush(self._ends, (now + job.run, self._started, place))
        self._started += 1
