"""Queues of one priority: their waiting jobs are planned together, in order of rank."""

from __future__ import annotations

from bisect import bisect_left, insort

from rota.plan.schedule.plan_entry import PlanEntry, by_rank
from rota.plan.snapshot import state


@state
class PriorityClass:
    """Queues of one priority, planned together: their waiting jobs in order of rank."""

    priority: float
    backfill: str
    jobs: list[PlanEntry]
    head: PlanEntry | None  #: with EASY, the job that has a reservation
    prospect: tuple[float, int] | None  #: with strict FCFS, when and where the first job could begin
    freed: list[tuple[float, float]]  #: the spans that became free since all jobs were tried

    def __init__(self, priority: float, backfill: str) -> None:
        self.priority = priority
        self.backfill = backfill
        self.jobs, self.freed = [], []
        self.head = self.prospect = None

    def add(self, entry: PlanEntry) -> None:
        if self.jobs and entry.rank < self.jobs[-1].rank:
            insort(self.jobs, entry, key=by_rank)
        else:
            self.jobs.append(entry)

    def discard(self, entry: PlanEntry) -> None:
        at = bisect_left(self.jobs, entry.rank, key=by_rank)
        if at < len(self.jobs) and self.jobs[at] is entry:
            del self.jobs[at]
        elif entry in self.jobs:
            self.jobs.remove(entry)
        if self.head is entry:
            self.head = None
