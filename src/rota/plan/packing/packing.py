"""Packs jobs onto hosts by priority, then age, never over what a host or a limit has.

Waiting jobs stand in *lanes*, one per (priority, need), so a million equal jobs are one entry to look
at, and the lanes of one size in a *rack*, so a thousand limits are a few entries. When the first in
rank does not fit, the moment it will fit is estimated and only jobs that do not delay it may pass. A
lane that only a limit keeps from starting is parked at that limit, where those after it queue up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush

from rota.plan.need import Need
from rota.plan.packing.demand import demand, wanting
from rota.plan.packing.hosts import Host, Hosts, amounts, fits
from rota.plan.packing.lanes import Lane, Rack, Racks, Rank
from rota.plan.packing.limit_queues import Lines
from rota.plan.packing.packing_reasons import jobs_before, limit_reasons, no_room
from rota.plan.packing.shadow_time import Shadows
from rota.plan.placement import Chosen, Opened, Waiting
from rota.plan.policy.limits import Limits
from rota.plan.reasons import Waits
from rota.plan.size import Capacity, Size

#: So many jobs in a row are moved to another lane at once, when they have come to need something else.
MOVED_MAX = 16


class Packing:
    """A placement without a future: it decides about now, and protects only the first that waits."""

    def __init__(self, *, first_seat: int = 1) -> None:
        self.limits = Limits()
        self._hosts = Hosts(first_seat)
        self._racks = Racks()
        self._shadows = Shadows()
        self._lines = Lines(self.limits, self._hosts, self._racks, self._shadows)
        self._lanes: dict[tuple[int, Need], Lane] = {}
        self._sizes = 0  #: grows when jobs that wait may have come to need something else
        self.needs: Callable[[int], Need] | None = None
        self.ahead = True  #: may jobs be leased before there is a seat for them?

    # -- hosts

    def host_known(self, host: str, capacity: Capacity, only: Need | None = None) -> None:
        self._lines.roomier = True
        self._hosts.known(host, capacity, only)

    def host_gone(self, host: str) -> None:
        self._hosts.gone(host)

    def host_usable(self, host: str, usable: bool) -> None:
        self._hosts.all[host].usable = usable
        self._lines.roomier = True

    def refusal(self, size: Size) -> str | None:
        return self._hosts.refusal(size)

    # -- the queue

    def offer(self, need: Need, *, priority: int, jobs: list[int]) -> None:
        lane = self._lanes.get((priority, need))
        if lane is None:
            lane = self._lanes[priority, need] = Lane(priority, need, self._sizes)
        before = lane.head()
        lane.add(jobs)
        if before is None:
            self._lines.enter(lane)
        elif before != lane.head():
            self._lines.moved_up(lane)

    def withdraw(self, need: Need, *, priority: int, job: int) -> None:
        lane = self._lanes[priority, need]
        head = lane.head()
        lane.gone.add(job)
        if not len(lane):
            del self._lanes[priority, need]
            lane.drop()
            self._lines.leave(lane)
        elif head != lane.head():
            self._lines.moved_up(lane)

    def sizes_changed(self) -> None:
        """Jobs that wait may need something else than when they were offered."""
        self._sizes += 1

    def limit_changed(self, name: str) -> None:
        """A limit was declared anew, opened or closed: look again at all that concerns it."""
        self._lines.limit_changed(name, self._lanes.values())

    def place(self, now: float) -> tuple[list[Opened], list[Chosen]]:
        opened: list[Opened] = []
        chosen: list[Chosen] = []
        lines, shadows = self._lines, self._shadows
        shadows.now = now
        woken = lines.names_woken()
        lines.wake(woken)
        idle = 0
        while idle < 2:
            before = len(chosen)
            self._pass(now, opened, chosen)
            again = lines.wake(woken) | lines.look_behind()
            shadows.protect(None)
            if not again:
                break
            idle = idle + 1 if len(chosen) == before else 0
        return opened, chosen

    def _pass(self, now: float, opened: list[Opened], chosen: list[Chosen]) -> None:
        aside = []
        while (first := self._racks.take()) is not None:
            if not self._runnable(first):
                aside.append(first)  # it must not hold up the others
                continue
            until = self._racks.first_rank()
            room = self._fill(first, now, opened, chosen, until=until)
            if room is False and first.best() is not None:
                self._send_ahead(first, now, chosen, until=until)
                lane = first.best()
                if lane is not None and (until is None or lane.rank() < until):
                    aside.append(first)
                    self._shadows.protect(lane)
                    self._backfill(now, opened, chosen)
                    break
            self._racks.put_back(first)
        for rack in aside:
            self._racks.put_back(rack)

    def _runnable(self, rack: Rack) -> bool:
        """Could a host that is there now run this, were it empty?"""
        size = rack.size
        if any(host.usable and fits(size, amounts(host.capacity)) for host in self._hosts.shared.values()):
            return True
        return bool(self._hosts.made_for) and any(lane.need in self._hosts.made_for for lane in rack.lanes())

    def _fill(
        self, rack: Rack, now: float, opened: list[Opened], chosen: list[Chosen], *, until: Rank | None
    ) -> bool | None:
        """Open seats for the first rack while they fit and it stays first. False if room ran out, None if
        a job went to another rack."""
        while (lane := rack.best()) is not None:
            if until is not None and lane.rank() > until:
                return True
            host, keeps = self._lines.room(lane)
            if keeps:
                self._lines.park(lane, keeps)
                continue
            if lane.since != self._sizes and self._moved(rack, lane):
                return None
            if host is None:
                return False
            self._choose(rack, lane, host, now, opened, chosen)
        return True

    def _moved(self, rack: Rack, lane: Lane) -> bool:
        """Ask for the first job's need once more, before it is leased. True if it stands elsewhere now.

        Jobs may wait for long, and others like them teach what they need: only the first of a lane, and some
        after it if it moves, are looked at, so that what was learned costs the same however many wait.
        """
        if self.needs is None:
            return False
        moved: dict[Need, list[int]] = {}
        for _ in range(MOVED_MAX):
            job = lane.heap[0]
            need = self.needs(job)
            if need == lane.need:
                break
            self._pop(rack, lane)
            moved.setdefault(need, []).append(job)
            if lane.head() is None:
                break
        for need, jobs in moved.items():
            self.offer(need, priority=lane.priority, jobs=jobs)
        return bool(moved)

    def _choose(
        self, rack: Rack, lane: Lane, host: Host, now: float, opened: list[Opened] | None, chosen: list[Chosen]
    ) -> None:
        """Lease the lane's first job at this host, in a seat of its own unless `opened` is None."""
        job = self._pop(rack, lane)
        uses = lane.need.limits
        size = rack.size
        if opened is not None:
            opened.append(self._hosts.open(host, size, now))
        host.flow(size).leases += 1
        if uses:
            self.limits.take(uses, host.name)
        chosen.append(Chosen(job, host.name))

    def _pop(self, rack: Rack, lane: Lane) -> int:
        """Take the first job out of its lane."""
        job = lane.pop()
        self._popped(rack, lane)
        return job

    def _popped(self, rack: Rack, lane: Lane) -> None:
        """The lane has lost its first job, or more."""
        if lane.head() is None:
            del self._lanes[lane.priority, lane.need]
            lane.drop()
        else:
            rack.put(lane)  # its rank is worse than before: the place of the rack is put right in time

    def _send_ahead(self, rack: Rack, now: float, chosen: list[Chosen], *, until: Rank | None) -> None:
        """Lease jobs that will take over a seat of their own size when its job ends.

        Only from the rack whose turn it is, so nobody is overtaken; only while jobs end so quickly that
        a seat would stand idle during the round trip to the manager.
        """
        for host in self._hosts.all.values():
            flow = host.flows.get(rack.size) if self.ahead else None
            if not host.usable or flow is None or not flow.seats:
                continue
            room = flow.seats + flow.ahead(now) - flow.leases
            while room > 0 and (lane := rack.best()) is not None:
                if until is not None and lane.rank() > until:
                    return
                if host.only not in (None, lane.need):
                    break
                if lane.since != self._sizes and self._moved(rack, lane):
                    return
                uses = lane.need.limits
                if not uses and lane.since == self._sizes and rack.has_only(lane):
                    # The usual case, in which hundreds are sent at once.
                    jobs = lane.take(room, until)
                    self._popped(rack, lane)
                    flow.leases += len(jobs)
                    chosen += [Chosen(job, host.name) for job in jobs]
                    room -= len(jobs)
                    continue
                if uses and (self.limits.missing(uses, host.name) or self._lines.before(lane)):
                    return
                self._choose(rack, lane, host, now, None, chosen)
                room -= 1

    def _backfill(self, now: float, opened: list[Opened], chosen: list[Chosen]) -> None:
        """Let later racks, in order of rank, use what the first job cannot, without delaying its start."""
        least = self._racks.least()
        roomy = [
            host.free
            for host in self._hosts.all.values()
            if host.usable and any(fits(size, host.free) for size in least)
        ]
        if not roomy:
            return
        queue = [
            (lane.rank(), rack)
            for rack in self._racks.listed()
            if any(fits(rack.size, free) for free in roomy) and (lane := rack.best()) is not None
        ]
        heapify(queue)
        while queue:
            _rank, rack = heappop(queue)
            lane = rack.best()
            if lane is None:
                continue
            host, keeps = self._lines.room(lane)
            if keeps:
                self._lines.park(lane, keeps)
            elif host is None:
                continue
            else:
                self._shadows.passed(host, rack.size)
                self._choose(rack, lane, host, now, opened, chosen)
            if (lane := rack.best()) is not None:
                heappush(queue, (lane.rank(), rack))

    # -- for a planner that decides instead

    def hand_over(self) -> list[tuple[int, Need, list[int]]]:
        """All waiting jobs that take a core leave: priority, need and jobs of each lane."""
        found = []
        for (priority, need), lane in list(self._lanes.items()):
            if need.size.cpus:
                found.append((priority, need, sorted(lane.jobs())))
                del self._lanes[priority, need]
                lane.drop()
                self._lines.leave(lane)
        return found

    def firsts(self, most: int) -> tuple[list[int], int]:
        """The first waiting job of each lane that takes a core, best rank first, and how many others wait."""
        lanes = [lane for lane in self._lanes.values() if lane.need.size.cpus and lane.head() is not None]
        # Those that no end of a job lets begin take no room from others.
        moving = [lane for lane in lanes if self.limits.stopped(lane.need.limits) is None]
        found = [lane.rank()[1] for lane in sorted(moving, key=Lane.rank)[:most]]
        return found, sum(map(len, lanes)) - len(found)

    def grant(self, host: str, need: Need, now: float) -> Opened:
        """A lease with this need goes to this host, in a seat of its own, whatever is free there."""
        where = self._hosts.all[host]
        where.flow(need.size).leases += 1
        if need.limits:
            self.limits.take(need.limits, host)
        return self._hosts.open(where, need.size, now)

    def in_use(self, host: str) -> list[int]:
        """What the open seats of a host take: processors, memory, disk, GPUs, jobs without a processor."""
        where = self._hosts.all[host]
        return [has - free for has, free in zip(amounts(where.capacity), where.free, strict=True)]

    def takes_more(self, host: str) -> bool:
        """May one more job that takes no processor run there?"""
        return self._hosts.all[host].free[-1] > 0

    def host_names(self) -> set[str]:
        """Hosts that new work may be placed on."""
        return {host.name for host in self._hosts.shared.values() if host.usable}

    def waiting(self) -> list[Waiting]:
        """All that wait, as they are now."""
        return [
            Waiting(priority, need, lane.heap[:], frozenset(lane.gone), 0)
            for (priority, need), lane in self._lanes.items()
        ]

    def capacities(self) -> list[Capacity]:
        """Of the hosts that new work may be placed on."""
        return [host.capacity for host in self._hosts.all.values() if host.usable]

    # -- demand

    def demand(self) -> dict[Need, int]:
        return demand(self._lanes.values(), self.limits)

    def wanting(self) -> dict[str, int]:
        return wanting(self._lanes.values())

    # -- seats

    def seat(self, host: str, size: Size, now: float) -> Opened | None:
        where = self._hosts.all[host]
        if not where.usable or not fits(size, where.free):
            return None
        return self._hosts.open(where, size, now)

    def started(self, seat: int, now: float) -> None:
        self._hosts.started(seat, now)

    def released(self, host: str, need: Need, *, ended_at: float | None) -> None:
        flow = self._hosts.all[host].flow(need.size)
        flow.leases -= 1
        if ended_at is not None:
            flow.ended(ended_at)
        if need.limits:
            self.limits.give(need.limits, host)
            self._lines.given_back(need)

    def adopt(self, seat: int, host: str, size: Size) -> None:
        self._hosts.adopt(seat, host, size)

    def adopt_lease(self, host: str, need: Need) -> None:
        self._hosts.all[host].flow(need.size).leases += 1
        self.limits.take(need.limits, host)

    def close(self, seat: int) -> None:
        if self._hosts.close(seat):
            self._lines.roomier = True

    # -- explanations

    def never_fit(self) -> Iterator[tuple[Lane, str]]:
        for lane in self._lanes.values():
            if lane.head() is not None and (refusal := self.refusal(lane.need.size)):
                yield lane, refusal

    def why(self, need: Need, *, priority: int, job: int) -> list[Waits]:
        refusal = self.refusal(need.size)
        if refusal:
            return [Waits("unsatisfiable", refusal)]
        hosts = self._hosts.for_need(need)
        found = limit_reasons(self.limits, need, [host.name for host in hosts]) if need.limits else []
        lane = self._lanes.get((priority, need))
        ahead = self._lines.ahead_of(lane) if not found and lane is not None else None
        if ahead is not None:
            name, first = ahead
            if first.head() is not None:
                message = f"job {first.heap[0]} is before it in the line for limit '{name}'"
                found.append(Waits("limit", message, name, first.heap[0]))
        if not any(host.usable for host in hosts):
            return [*found, Waits("no_resources", "no runner is connected yet")]
        usable = [host.free for host in hosts if host.usable]
        if not found or not any(fits(need.size, free) for free in usable):
            before = jobs_before(self._lanes.values(), priority, job)
            found.append(Waits("resources", no_room(need.size, usable, before)))
        return found
