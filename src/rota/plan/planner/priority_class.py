"""Queues of one priority: their waiting jobs are planned together, in order of rank."""

from __future__ import annotations

from bisect import bisect_left, insort

from rota.plan.planner.entry import Entry, by_rank


class PriorityClass:
    """Queues of one priority, planned together: their waiting jobs in order of rank."""

    def __init__(self, priority: float, backfill: str) -> None:
        self.priority = priority
        self.backfill = backfill
        self.line: list[Entry] = []
        self.head: Entry | None = None  #: who has a reservation, where only the first gets one
        self.hope: tuple[float, int] | None = None  #: when and where the first could begin, where nobody gets one
        self.freed: list[tuple[float, float]] = []  #: what became free since everybody was looked at

    def add(self, entry: Entry) -> None:
        if self.line and entry.rank < self.line[-1].rank:
            insort(self.line, entry, key=by_rank)
        else:
            self.line.append(entry)

    def discard(self, entry: Entry) -> None:
        at = bisect_left(self.line, entry.rank, key=by_rank)
        if at < len(self.line) and self.line[at] is entry:
            del self.line[at]
        elif entry in self.line:
            self.line.remove(entry)
        if self.head is entry:
            self.head = None
