"""Packs jobs onto hosts by priority, then age, never over what a host has.

Waiting jobs stand in *lanes*, one per (priority, size), so a million equal jobs are one entry to
look at. When the first in rank does not fit, the moment it will fit is estimated and only jobs that
do not delay it may pass.
"""

from __future__ import annotations

from bisect import insort
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count
from math import exp

from rota.plan.placement import Capacity, Chosen, Opened
from rota.plan.size import CORE, Size

#: Leases are sent ahead for about this many seconds of work, and no more than this many.
AHEAD_S = 0.08
AHEAD_MAX = 256
#: Lanes up to this length are counted to tell how many jobs are before one.
_COUNTED = 100_000
_RATE_WINDOW_S = 0.1


class _Lane:
    """Jobs of one priority and size, oldest first."""

    __slots__ = ("gone", "heap", "highest", "priority", "size")

    def __init__(self, priority: int, size: Size) -> None:
        self.priority = priority
        self.size = size
        self.heap: list[int] = []
        self.highest = 0
        self.gone: set[int] = set()  # withdrawn, not yet popped

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

    def rank(self) -> tuple[int, int]:
        """Of its first job, which must exist: lowest first."""
        return -self.priority, self.heap[0]

    def __len__(self) -> int:
        return len(self.heap) - len(self.gone)


class _Seat:
    __slots__ = ("host", "since", "size")

    def __init__(self, host: _Host, size: Size, since: float) -> None:
        self.host = host
        self.size = size
        self.since = since

    def expected_end(self, now: float) -> float:
        end = self.since + self.size.time_s
        return end if end >= now else now + max(60.0, (now - self.since) / 4)


class _Flow:
    """Leases and seats of one size at one host, and how fast its jobs end lately."""

    __slots__ = ("leases", "level", "level_at", "seats")

    def __init__(self) -> None:
        self.seats = 0
        self.leases = 0
        self.level = 0.0
        self.level_at = 0.0

    def ended(self, now: float) -> None:
        self.level = self.level * exp((self.level_at - now) / _RATE_WINDOW_S) + 1 if self.level else 1.0
        self.level_at = now

    def ahead(self, now: float) -> int:
        """How many leases beyond the seats are worth sending: none unless jobs end quickly."""
        if not self.level:
            return 0
        rate = self.level * exp((self.level_at - now) / _RATE_WINDOW_S) / _RATE_WINDOW_S
        return min(AHEAD_MAX, int(rate * AHEAD_S))


class _Host:
    __slots__ = ("capacity", "flows", "free", "name", "seats", "usable")

    def __init__(self, name: str, capacity: Capacity) -> None:
        self.name = name
        self.capacity = capacity
        self.free = _amounts(capacity)
        self.usable = False
        self.flows: dict[Size, _Flow] = {}
        self.seats: dict[int, _Seat] = {}

    def resize(self, capacity: Capacity) -> None:
        before, after = _amounts(self.capacity), _amounts(capacity)
        self.capacity = capacity
        self.free = [free - b + a for free, b, a in zip(self.free, before, after, strict=True)]

    def flow(self, size: Size) -> _Flow:
        found = self.flows.get(size)
        if found is None:
            self.flows = {each: flow for each, flow in self.flows.items() if flow.seats or flow.leases}
            found = self.flows[size] = _Flow()
        return found


def _amounts(capacity: Capacity) -> list[int]:
    return [capacity.cpus, capacity.mem, capacity.disk, capacity.gpus, capacity.zero_cpu_jobs]


def _needs(size: Size) -> tuple[int, int, int, int, int]:
    return size.cpus, size.mem, size.disk, size.gpus, 0 if size.cpus else 1


def _fits(size: Size, free: list[int]) -> bool:
    return all(need <= have or need == 0 for need, have in zip(_needs(size), free, strict=True))


class Packing:
    """A `Placement` without a future: it decides about now, and protects only the first that waits."""

    def __init__(self, *, first_seat: int = 1) -> None:
        self._hosts: dict[str, _Host] = {}
        self._lanes: dict[tuple[int, Size], _Lane] = {}
        self._seats: dict[int, _Seat] = {}
        self._ids = count(first_seat)

    # -- hosts

    def host_known(self, host: str, capacity: Capacity) -> None:
        found = self._hosts.get(host)
        if found is None:
            self._hosts[host] = _Host(host, capacity)
        else:
            found.resize(capacity)

    def host_usable(self, host: str, usable: bool) -> None:
        self._hosts[host].usable = usable

    def refusal(self, size: Size) -> str | None:
        if not self._hosts:
            return None
        for host in self._hosts.values():
            if _fits(size, _amounts(host.capacity)):
                return None
        caps = [host.capacity for host in self._hosts.values()]
        shown = (
            ("cpus", size.cpus / CORE, max(cap.cpus for cap in caps) / CORE, ""),
            ("mem", size.mem / 2**20, max(cap.mem for cap in caps) / 2**20, "M"),
            ("disk", size.disk / 2**20, max(cap.disk for cap in caps) / 2**20, "M"),
            ("gpus", size.gpus, max(cap.gpus for cap in caps), ""),
        )
        for name, asked, largest, unit in shown:
            if asked > largest:
                return f"never fits: asked {asked:g}{unit} {name}, largest host has {largest:g}{unit}"
        return "never fits: no single host has all of what was asked"

    # -- the queue

    def offer(self, size: Size, *, priority: int, jobs: list[int]) -> None:
        lane = self._lanes.get((priority, size))
        if lane is None:
            lane = self._lanes[priority, size] = _Lane(priority, size)
        lane.add(jobs)

    def withdraw(self, size: Size, *, priority: int, job: int) -> None:
        lane = self._lanes[priority, size]
        lane.gone.add(job)
        if not len(lane):
            del self._lanes[priority, size]

    def place(self, now: float) -> tuple[list[Opened], list[Chosen]]:
        opened: list[Opened] = []
        chosen: list[Chosen] = []
        lanes = self._ranked()
        while lanes:
            first = lanes[0]
            if not self._runnable(first.size):
                lanes.pop(0)  # it must not hold up the others
                continue
            room = self._fill(first, now, opened, chosen, until=lanes[1:2])
            if not room:
                self._send_ahead(first, now, chosen, until=lanes[1:2])
                if first.head() is not None and (len(lanes) == 1 or first.rank() < lanes[1].rank()):
                    self._backfill(lanes, now, opened, chosen)
                    break
            lanes.pop(0)
            if first.head() is not None:
                insort(lanes, first, key=_Lane.rank)
        return opened, chosen

    def _runnable(self, size: Size) -> bool:
        """Could a host that is there now run this, were it empty?"""
        return any(host.usable and _fits(size, _amounts(host.capacity)) for host in self._hosts.values())

    def _ranked(self) -> list[_Lane]:
        """Lanes in order of their first job."""
        lanes = []
        for key, lane in list(self._lanes.items()):
            if lane.head() is None:
                del self._lanes[key]
            else:
                lanes.append(lane)
        if len(lanes) > 1:
            lanes.sort(key=_Lane.rank)
        return lanes

    def _fill(
        self, lane: _Lane, now: float, opened: list[Opened], chosen: list[Chosen], *, until: list[_Lane]
    ) -> bool:
        """Open seats for the first lane while they fit and it stays first. False if room ran out."""
        while (job := lane.head()) is not None:
            if until and lane.rank() > until[0].rank():
                return True
            host = self._room(lane.size)
            if host is None:
                return False
            heappop(lane.heap)
            self._open(host, lane.size, now, opened)
            host.flow(lane.size).leases += 1
            chosen.append(Chosen(job, host.name))
        return True

    def _send_ahead(self, lane: _Lane, now: float, chosen: list[Chosen], *, until: list[_Lane]) -> None:
        """Lease jobs that will take over a seat of their own size when its job ends.

        Only from the lane whose turn it is, so nobody is overtaken; only while jobs end so quickly that
        a seat would stand idle during the round trip to the manager.
        """
        for host in self._hosts.values():
            flow = host.flows.get(lane.size)
            if not host.usable or flow is None or not flow.seats:
                continue
            room = flow.seats + flow.ahead(now) - flow.leases
            while room > 0 and (job := lane.head()) is not None:
                if until and lane.rank() > until[0].rank():
                    return
                heappop(lane.heap)
                flow.leases += 1
                chosen.append(Chosen(job, host.name))
                room -= 1

    def _backfill(self, lanes: list[_Lane], now: float, opened: list[Opened], chosen: list[Chosen]) -> None:
        """Let later lanes, in order of rank, use what the first one cannot, without delaying its start."""
        first = lanes[0]
        for host in self._hosts.values():
            if not host.usable:
                continue
            queue = [
                (lane.rank(), lane)
                for lane in lanes[1:]
                if lane.head() is not None and _fits(lane.size, host.free)
            ]
            if not queue:
                continue
            heapify(queue)  # what was taken at an earlier host may have changed the ranks
            shadow, spare = self._shadow(host, first.size, now)
            while queue:
                (_priority, job), lane = queue[0]
                ends_before = now + lane.size.time_s <= shadow
                if not _fits(lane.size, host.free) or not (ends_before or _fits(lane.size, spare)):
                    heappop(queue)
                    continue
                if not ends_before:
                    spare = [s - n for s, n in zip(spare, _needs(lane.size), strict=True)]
                heappop(lane.heap)
                self._open(host, lane.size, now, opened)
                host.flow(lane.size).leases += 1
                chosen.append(Chosen(job, host.name))
                if lane.head() is None:
                    heappop(queue)
                else:
                    heapreplace(queue, (lane.rank(), lane))

    def _shadow(self, host: _Host, size: Size, now: float) -> tuple[float, list[int]]:
        """When this size will fit on the host, and what is then left beside it."""
        if not _fits(size, _amounts(host.capacity)):
            return float("inf"), list(host.free)
        free = list(host.free)
        when = now
        for seat in sorted(host.seats.values(), key=lambda seat: seat.expected_end(now)):
            if _fits(size, free):
                break
            free = [f + n for f, n in zip(free, _needs(seat.size), strict=True)]
            when = seat.expected_end(now)
        return when, [f - n for f, n in zip(free, _needs(size), strict=True)]

    def _room(self, size: Size) -> _Host | None:
        for host in self._hosts.values():
            if host.usable and _fits(size, host.free):
                return host
        return None

    # -- seats

    def _open(self, host: _Host, size: Size, now: float, opened: list[Opened]) -> None:
        seat = next(self._ids)
        self._take(seat, host, size, now)
        opened.append(Opened(seat, host.name, size))

    def _take(self, seat: int, host: _Host, size: Size, now: float) -> None:
        host.free = [f - n for f, n in zip(host.free, _needs(size), strict=True)]
        host.seats[seat] = self._seats[seat] = _Seat(host, size, now)
        host.flow(size).seats += 1

    def seat(self, host: str, size: Size, now: float) -> Opened | None:
        where = self._hosts[host]
        if not where.usable or not _fits(size, where.free):
            return None
        opened: list[Opened] = []
        self._open(where, size, now, opened)
        return opened[0]

    def started(self, seat: int, now: float) -> None:
        found = self._seats.get(seat)
        if found is not None:
            found.since = now

    def released(self, host: str, size: Size, *, ended_at: float | None) -> None:
        flow = self._hosts[host].flow(size)
        flow.leases -= 1
        if ended_at is not None:
            flow.ended(ended_at)

    def adopt(self, seat: int, host: str, size: Size, *, leases: int) -> None:
        where = self._hosts[host]
        if seat and seat not in self._seats:
            self._take(seat, where, size, 0.0)
        where.flow(size).leases += leases

    def close(self, seat: int) -> None:
        found = self._seats.pop(seat, None)
        if found is None:
            return
        host = found.host
        del host.seats[seat]
        host.free = [f + n for f, n in zip(host.free, _needs(found.size), strict=True)]
        host.flow(found.size).seats -= 1

    # -- explanations

    def why(self, size: Size, *, priority: int, job: int) -> tuple[str, str]:
        refusal = self.refusal(size)
        if refusal:
            return "unsatisfiable", refusal
        if not any(host.usable for host in self._hosts.values()):
            return "no_resources", "no runner is connected yet"
        before = 0
        for lane in self._ranked():
            if lane.priority > priority:
                before += len(lane)
            elif lane.priority == priority and len(lane) <= _COUNTED:
                before += sum(1 for other in lane.heap if other < job and other not in lane.gone)
            elif lane.priority == priority and lane.heap[0] < job:
                return "resources", "waiting for room; many jobs are before it"
        if before:
            return "resources", f"waiting for room; {before} jobs are before it"
        return "resources", "waiting for room; it is the next in rank"
