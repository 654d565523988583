"""Waiting jobs in order. A job class holds jobs of equal rank key and need, a size class the job classes of one
size, a limit queue the job classes that wait for one limit.

Only classes are compared, never single jobs: a million equal jobs cost as much as one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from heapq import heappop, heappush, heapreplace

from rota.plan.need import Need
from rota.plan.placement.queue import Rank, RankKey, rank_at
from rota.plan.size import Size

#: What room is looked for together: a size, anywhere or in one pool.
RoomKey = Size | tuple[Size, str]


def room_key(need: Need) -> RoomKey:
    """What kind of room jobs of this need wait for."""
    return (need.size, need.pool) if need.pool else need.size


class JobClass:
    """Jobs of one rank key and need, oldest first."""

    __slots__ = ("at", "gone", "heap", "highest", "key", "need", "since", "stopped")

    def __init__(self, key: RankKey, need: Need, since: int = 0) -> None:
        self.key = key
        self.need = need
        self.heap: list[int] = []
        self.highest = 0
        self.gone: set[int] = set()  #: withdrawn, not yet popped
        self.at: str | None = None  #: the limit that it waits for
        self.stopped = False  #: no end of a job can help: only a change of that limit
        self.since = since  #: its needs are at least as new as this change of sizes

    def add(self, jobs: list[int]) -> None:
        """Jobs, ids ascending, wait (again)."""
        gone, heap = self.gone, self.heap
        if gone:
            back = gone.intersection(jobs)
            gone -= back
            jobs = [job for job in jobs if job not in back]
        if not jobs:
            return
        if jobs[0] > self.highest or not heap:
            # Appending ascending ids above all others keeps the heap order.
            heap.extend(jobs)
        else:
            for job in jobs:
                heappush(heap, job)
        self.highest = max(self.highest, jobs[-1])

    def head(self) -> int | None:
        """The first job; None if no job waits."""
        heap, gone = self.heap, self.gone
        while heap and heap[0] in gone:
            gone.discard(heappop(heap))
        return heap[0] if heap else None

    def pop(self) -> int:
        """Take the first job, which must exist."""
        return heappop(self.heap)

    def take(self, most: int, until: Rank | None) -> list[int]:
        """Take up to `most` jobs from the front, none of worse rank than `until`."""
        taken: list[int] = []
        while (
            len(taken) < most
            and (job := self.head()) is not None
            and (until is None or rank_at(self.key, job) <= until)
        ):
            taken.append(heappop(self.heap))
        return taken

    def drop(self) -> None:
        """Forget all jobs."""
        self.heap.clear()
        self.gone.clear()

    def rank(self) -> Rank:
        """The rank of the first job, which must exist."""
        key = self.key
        return rank_at(key, self.heap[0]) if key.session else (key, self.heap[0])

    def jobs(self) -> list[int]:
        """All waiting jobs, in no order."""
        return [job for job in self.heap if job not in self.gone]

    def __len__(self) -> int:
        return len(self.heap) - len(self.gone)

    def __lt__(self, other: JobClass) -> bool:
        return id(self) < id(other)  # heaps compare it only where ranks are equal


class SizeClass:
    """Job classes of one size, and of one pool if they name it, that wait for room, best rank first."""

    __slots__ = ("_heap", "listed", "out", "pool", "size")

    def __init__(self, size: Size, pool: str = "") -> None:
        self.size = size
        self.pool = pool
        self.listed: Rank | None = None  #: its rank in the heap of `SizeClasses`
        self.out = False  #: taken out of that heap for the moment
        self._heap: list[tuple[Rank, JobClass]] = []  #: stale entries are skipped

    def put(self, job_class: JobClass) -> None:
        """Enter a job class under the rank of its present first job."""
        heap = self._heap
        if len(heap) == 1 and heap[0][1] is job_class:
            heap[0] = (job_class.rank(), job_class)
        else:
            heappush(heap, (job_class.rank(), job_class))

    def best(self) -> JobClass | None:
        """The job class with the first job of all; None if no job waits."""
        heap = self._heap
        while heap:
            rank, job_class = heap[0]
            if job_class.at is None and job_class.head() is not None and job_class.rank() == rank:
                return job_class
            heappop(heap)
        return None

    def has_only(self, job_class: JobClass) -> bool:
        """Is this its only job class?"""
        return len(self._heap) == 1 and self._heap[0][1] is job_class

    def job_classes(self) -> Iterator[JobClass]:
        """Job classes with a job that waits for room; one may come twice."""
        return (
            job_class for _rank, job_class in self._heap if job_class.at is None and job_class.head() is not None
        )

    def __lt__(self, other: SizeClass) -> bool:
        return id(self) < id(other)


class SizeClasses:
    """All size classes, by size and by the rank of their first job.

    A size class may be listed under a better rank than it has; that is corrected when it comes to the top of the
    heap. So the cost of a job that comes or goes does not depend on the number of sizes.
    """

    __slots__ = ("_forgotten", "_heap", "_least", "_size_classes")

    def __init__(self) -> None:
        self._size_classes: dict[RoomKey, SizeClass] = {}
        self._heap: list[tuple[Rank, SizeClass]] = []
        #: with processors or not → a lower bound of all sizes
        self._least: dict[bool, Size] = {}
        self._forgotten = 0  #: size classes that ended since `_least` was computed from all

    def put(self, job_class: JobClass) -> None:
        """The job class waits for room, under the rank of its present first job."""
        key = room_key(job_class.need)
        size_class = self._size_classes.get(key)
        if size_class is None:
            need = job_class.need
            size_class = self._size_classes[key] = SizeClass(need.size, need.pool)
            self._lower(need.size)
        size_class.put(job_class)
        if not size_class.out and (size_class.listed is None or job_class.rank() < size_class.listed):
            self._list(size_class, job_class.rank())

    def _list(self, size_class: SizeClass, rank: Rank) -> None:
        size_class.listed = rank
        heappush(self._heap, (rank, size_class))

    def waits(self, need: Need) -> bool:
        """Does a job wait for the same kind of room?"""
        size_class = self._size_classes.get(room_key(need))
        return size_class is not None and size_class.best() is not None

    def of(self, size: Size, pool: str) -> Iterator[JobClass]:
        """Job classes that wait for room of this size in this pool; one may come twice."""
        size_class = self._size_classes.get((size, pool) if pool else size)
        return size_class.job_classes() if size_class is not None else iter(())

    def first_rank(self) -> Rank | None:
        """The best rank of all listed size classes."""
        heap = self._heap
        while heap:
            rank, size_class = heap[0]
            if size_class.listed != rank:
                heappop(heap)
                continue
            job_class = size_class.best()
            if job_class is None:
                heappop(heap)
                self._forget(size_class)
            elif job_class.rank() != rank:
                size_class.listed = job_class.rank()
                heapreplace(heap, (size_class.listed, size_class))
            else:
                return rank
        return None

    def take(self) -> SizeClass | None:
        """Take the first size class out of the list until `put_back`."""
        if self.first_rank() is None:
            return None
        size_class = heappop(self._heap)[1]
        size_class.listed, size_class.out = None, True
        return size_class

    def put_back(self, size_class: SizeClass) -> None:
        size_class.out = False
        job_class = size_class.best()
        if job_class is None:
            self._forget(size_class)
        else:
            self._list(size_class, job_class.rank())

    def _forget(self, size_class: SizeClass) -> None:
        size_class.listed = None
        del self._size_classes[(size_class.size, size_class.pool) if size_class.pool else size_class.size]
        self._forgotten += 1
        if self._forgotten > len(self._size_classes):
            self._forgotten = 0
            self._least = {}
            for each in self._size_classes.values():
                self._lower(each.size)

    def _lower(self, size: Size) -> None:
        kind = bool(size.cpus)
        least = self._least.get(kind, size)
        self._least[kind] = Size(
            min(size.cpus, least.cpus),
            min(size.mem, least.mem),
            min(size.disk, least.disk),
            0.0,
            min(size.gpus, least.gpus),
        )

    def listed(self) -> Iterator[SizeClass]:
        """The size classes that are not taken out, in no order."""
        return (size_class for size_class in self._size_classes.values() if not size_class.out)

    def least(self) -> Collection[Size]:
        """Lower bounds of all sizes: where none of them fits, no size does."""
        return self._least.values()


class LimitQueue:
    """Job classes that wait for one limit, by the kind of room that they need and then by rank."""

    __slots__ = ("_heaps", "_ranks")

    def __init__(self) -> None:
        self._ranks: dict[JobClass, Rank] = {}
        self._heaps: dict[RoomKey, list[tuple[Rank, JobClass]]] = {}  #: stale entries are skipped

    def put(self, job_class: JobClass) -> None:
        """Enter a job class, or update the rank of its first job."""
        rank = job_class.rank()
        if self._ranks.get(job_class) != rank:
            self._ranks[job_class] = rank
            heappush(self._heaps.setdefault(room_key(job_class.need), []), (rank, job_class))

    def discard(self, job_class: JobClass) -> None:
        self._ranks.pop(job_class, None)

    def firsts(self, passed: Collection[JobClass] = ()) -> list[tuple[Rank, JobClass]]:
        """The first job class for each kind of room that is not in `passed`, with its rank."""
        found = []
        for key, heap in list(self._heaps.items()):
            while heap and self._ranks.get(heap[0][1]) != heap[0][0]:
                heappop(heap)
            if not heap:
                del self._heaps[key]
            elif heap[0][1] not in passed:
                found.append(heap[0])
            else:
                rest = (each for each in heap if each[1] not in passed and self._ranks.get(each[1]) == each[0])
                found += [first] if (first := min(rest, default=None)) is not None else []
        return found

    def before(self, rank: Rank) -> Iterator[JobClass]:
        """All job classes of better rank, in no order. The heap order prunes almost all others."""
        for _rank, first in self.firsts():
            heap = self._heaps[room_key(first.need)]
            places = [0]
            while places:
                place = places.pop()
                if place < len(heap) and heap[place][0] < rank:
                    if self._ranks.get(heap[place][1]) == heap[place][0]:
                        yield heap[place][1]
                    places += (2 * place + 1, 2 * place + 2)

    def __contains__(self, job_class: JobClass) -> bool:
        return job_class in self._ranks

    def __bool__(self) -> bool:
        return bool(self._ranks)
