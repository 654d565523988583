"""Waiting jobs in order: lanes of jobs with equal priority and need, racks of lanes with equal size, lines of
lanes that wait for the same limit."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from heapq import heappop, heappush, heapreplace

from rota.plan.need import Need
from rota.plan.size import Size

#: Lowest first: higher priority, then lower id.
Rank = tuple[int, int]


class Lane:
    """Jobs of one priority and need, oldest first."""

    __slots__ = ("at", "gone", "heap", "highest", "need", "priority", "since", "stopped")

    def __init__(self, priority: int, need: Need, since: int = 0) -> None:
        self.priority = priority
        self.need = need
        self.heap: list[int] = []
        self.highest = 0
        self.gone: set[int] = set()  #: withdrawn, not yet popped
        self.at: str | None = None  #: the limit that it is parked at
        self.stopped = False  #: and that no end of a job can open
        self.since = since  #: when the needs of those in it were asked for, or earlier; in changes of sizes

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

    def take(self, most: int, until: Rank | None) -> list[int]:
        """Take so many jobs from the front, but none of worse rank than this."""
        taken: list[int] = []
        below = -self.priority
        while len(taken) < most and (job := self.head()) is not None and (until is None or (below, job) <= until):
            taken.append(heappop(self.heap))
        return taken

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

    __slots__ = ("_heap", "listed", "out", "size")

    def __init__(self, size: Size) -> None:
        self.size = size
        self.listed: Rank | None = None  #: under which `Racks` has it
        self.out = False  #: taken out of `Racks` for the moment
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

    def has_only(self, lane: Lane) -> bool:
        """Is no other lane in it?"""
        return len(self._heap) == 1 and self._heap[0][1] is lane

    def lanes(self) -> Iterator[Lane]:
        """Those that may have a job waiting."""
        return (lane for _rank, lane in self._heap if lane.at is None and lane.head() is not None)

    def __lt__(self, other: Rack) -> bool:
        return id(self) < id(other)


class Racks:
    """All racks, by size and by the rank of their first job.

    A rack is listed under the rank that it had, or a better one; which is put right when its turn comes.
    So a job that comes or goes costs the same however many sizes there are.
    """

    __slots__ = ("_forgotten", "_heap", "_least", "_racks")

    def __init__(self) -> None:
        self._racks: dict[Size, Rack] = {}
        self._heap: list[tuple[Rank, Rack]] = []
        self._least: dict[bool, Size] = {}  #: with processors or not → no rack has less of anything
        self._forgotten = 0  #: racks, since that was worked out

    def put(self, lane: Lane) -> None:
        """The lane waits for room, and has a (new) first job."""
        size = lane.need.size
        rack = self._racks.get(size)
        if rack is None:
            rack = self._racks[size] = Rack(size)
            self._lower(size)
        rack.put(lane)
        if not rack.out and (rack.listed is None or lane.rank() < rack.listed):
            self._list(rack, lane.rank())

    def _list(self, rack: Rack, rank: Rank) -> None:
        rack.listed = rank
        heappush(self._heap, (rank, rack))

    def waits(self, size: Size) -> bool:
        """Does anybody of this size wait for room?"""
        rack = self._racks.get(size)
        return rack is not None and rack.best() is not None

    def first_rank(self) -> Rank | None:
        """The best of all that are listed."""
        heap = self._heap
        while heap:
            rank, rack = heap[0]
            if rack.listed != rank:
                heappop(heap)
                continue
            lane = rack.best()
            if lane is None:
                heappop(heap)
                self._forget(rack)
            elif lane.rank() != rank:
                rack.listed = lane.rank()
                heapreplace(heap, (rack.listed, rack))
            else:
                return rank
        return None

    def take(self) -> Rack | None:
        """The first rack, which is not listed until it is put back."""
        if self.first_rank() is None:
            return None
        rack = heappop(self._heap)[1]
        rack.listed, rack.out = None, True
        return rack

    def put_back(self, rack: Rack) -> None:
        rack.out = False
        lane = rack.best()
        if lane is None:
            self._forget(rack)
        else:
            self._list(rack, lane.rank())

    def _forget(self, rack: Rack) -> None:
        rack.listed = None
        del self._racks[rack.size]
        self._forgotten += 1
        if self._forgotten > len(self._racks):
            self._forgotten = 0
            self._least = {}
            for size in self._racks:
                self._lower(size)

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

    def listed(self) -> Iterator[Rack]:
        """Those that are not taken out, in no order."""
        return (rack for rack in self._racks.values() if not rack.out)

    def least(self) -> Collection[Size]:
        """Where none of these fits no rack does."""
        return self._least.values()


class Line:
    """Lanes that wait for one limit, by size and then by rank."""

    __slots__ = ("_heaps", "_ranks")

    def __init__(self) -> None:
        self._ranks: dict[Lane, Rank] = {}
        self._heaps: dict[Size, list[tuple[Rank, Lane]]] = {}  #: entries that are out of date are passed over

    def put(self, lane: Lane) -> None:
        """The lane stands here, or has another first job than before."""
        rank = lane.rank()
        if self._ranks.get(lane) != rank:
            self._ranks[lane] = rank
            heappush(self._heaps.setdefault(lane.need.size, []), (rank, lane))

    def discard(self, lane: Lane) -> None:
        self._ranks.pop(lane, None)

    def firsts(self, passed: Collection[Lane] = ()) -> list[tuple[Rank, Lane]]:
        """The first lane of each size, and its rank, but for those that are to be passed over."""
        found = []
        for size, heap in list(self._heaps.items()):
            while heap and self._ranks.get(heap[0][1]) != heap[0][0]:
                heappop(heap)
            if not heap:
                del self._heaps[size]
            elif heap[0][1] not in passed:
                found.append(heap[0])
            else:
                rest = (each for each in heap if each[1] not in passed and self._ranks.get(each[1]) == each[0])
                found += [first] if (first := min(rest, default=None)) is not None else []
        return found

    def before(self, rank: Rank) -> Iterator[Lane]:
        """All of better rank than this, in no order. Of the others hardly any is looked at."""
        for _rank, first in self.firsts():
            heap = self._heaps[first.need.size]
            places = [0]
            while places:
                place = places.pop()
                if place < len(heap) and heap[place][0] < rank:
                    if self._ranks.get(heap[place][1]) == heap[place][0]:
                        yield heap[place][1]
                    places += (2 * place + 1, 2 * place + 2)

    def __contains__(self, lane: Lane) -> bool:
        return lane in self._ranks

    def __bool__(self) -> bool:
        return bool(self._ranks)
