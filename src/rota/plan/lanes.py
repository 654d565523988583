"""Waiting jobs in order: lanes of jobs with equal priority and need, racks of lanes with equal size."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from rota.plan.need import Need
from rota.plan.size import Size

#: Lowest first: higher priority, then lower id.
Rank = tuple[int, int]


class Lane:
    """Jobs of one priority and need, oldest first."""

    __slots__ = ("at", "gone", "heap", "highest", "looked_at", "need", "priority", "stopped")

    def __init__(self, priority: int, need: Need) -> None:
        self.priority = priority
        self.need = need
        self.heap: list[int] = []
        self.highest = 0
        self.gone: set[int] = set()  #: withdrawn, not yet popped
        self.at: str | None = None  #: the limit that it is parked at
        self.stopped = False  #: and that no end of a job can open
        self.looked_at = (0, 0)  #: the job whose need was asked for last, and when

    def add(self, jobs: list[int]) -> None:
        gone, heap = self.gone, self.heap
        if gone:
            back = gone.intersection(jobs)
            gone -= back
            jobs = [job for job in jobs if job not in back]
        if not jobs:
            return
        if jobs[0] > self.highest or not heap:
            # Ascending ids that are all above what is there leave a heap a heap.
            heap.extend(jobs)
        else:
            for job in jobs:
                heappush(heap, job)
        self.highest = max(self.highest, jobs[-1])

    def head(self) -> int | None:
        heap, gone = self.heap, self.gone
        while heap and heap[0] in gone:
            gone.discard(heappop(heap))
        return heap[0] if heap else None

    def pop(self) -> int:
        """Take the first job, which must exist."""
        return heappop(self.heap)

    def drop(self) -> None:
        """Nothing of it is left."""
        self.heap.clear()
        self.gone.clear()

    def rank(self) -> Rank:
        """Of its first job, which must exist."""
        return -self.priority, self.heap[0]

    def jobs(self) -> list[int]:
        """All that wait in it, in no order."""
        return [job for job in self.heap if job not in self.gone]

    def __len__(self) -> int:
        return len(self.heap) - len(self.gone)

    def __lt__(self, other: Lane) -> bool:
        return id(self) < id(other)  # for heaps, where ranks decide first


class Rack:
    """Lanes of one size that wait for room, best rank first."""

    __slots__ = ("_heap", "size")

    def __init__(self, size: Size) -> None:
        self.size = size
        self._heap: list[tuple[Rank, Lane]] = []  #: entries that are out of date are passed over

    def put(self, lane: Lane) -> None:
        """The lane has a (new) first job."""
        heap = self._heap
        if len(heap) == 1 and heap[0][1] is lane:
            heap[0] = (lane.rank(), lane)
        else:
            heappush(heap, (lane.rank(), lane))

    def best(self) -> Lane | None:
        """The lane whose first job is the first of all."""
        heap = self._heap
        while heap:
            rank, lane = heap[0]
            if lane.at is None and lane.head() is not None and lane.rank() == rank:
                return lane
            heappop(heap)
        return None

    def lanes(self) -> Iterator[Lane]:
        """Those that may have a job waiting."""
        return (lane for _rank, lane in self._heap if lane.at is None and lane.head() is not None)

    def __lt__(self, other: Rack) -> bool:
        return id(self) < id(other)
