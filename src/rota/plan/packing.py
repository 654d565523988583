"""Packs jobs onto hosts by priority, then age, never over what a host or a limit has.

Waiting jobs stand in *lanes*, one per (priority, need), so a million equal jobs are one entry to look
at, and the lanes of one size in a *rack*, so a thousand limits are a few entries. When the first in
rank does not fit, the moment it will fit is estimated and only jobs that do not delay it may pass. A
lane that only a limit keeps from starting is parked at that limit, where those after it queue up.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush

from rota.plan.hosts import Host, Hosts, amounts, fits, parts
from rota.plan.lanes import Lane, Line, Rack, Racks, Rank
from rota.plan.limits import Limits
from rota.plan.need import LimitUse, Need
from rota.plan.placement import Capacity, Chosen, Opened, Waits
from rota.plan.reasons import limit_reasons, shortage
from rota.plan.size import Size

#: So many jobs in a row are moved to another lane at once, when they have come to need something else.
MOVED_MAX = 16
#: Lanes up to this length are counted to tell how many jobs are before one.
_COUNTED = 100_000


class Packing:
    """A `Placement` without a future: it decides about now, and protects only the first that waits."""

    def __init__(self, *, first_seat: int = 1) -> None:
        self.limits = Limits()
        self._hosts = Hosts(first_seat)
        self._racks = Racks()
        self._lanes: dict[tuple[int, Need], Lane] = {}
        self._waiting: dict[str, Line] = {}  #: limit → lanes that it keeps waiting
        #: of these, those that let another one of better rank go first: at which limit, and whom
        self._behind: dict[Lane, tuple[str, Lane]] = {}
        self._stopped: dict[str, list[Lane]] = {}  #: limit → lanes that only a change of it can help
        self._woken: set[str] = set()  #: limits of which something became free
        self._roomier = False  #: somewhere there is more room than before
        self._roomless: set[str] = set()  #: limits at which more room may help somebody
        self._tried: set[Lane] = set()  #: lanes that looked for room again during this call
        self._first: Lane | None = None  #: the first that waits for room, during a call
        self._shadows: dict[str, tuple[float, list[int]]] = {}  #: host → when it could begin, and what is left
        self._now = 0.0
        self._sizes = 0  #: grows when jobs that wait may have come to need something else
        self.needs: Callable[[int], Need] | None = None

    # -- hosts

    def host_known(self, host: str, capacity: Capacity, only: Need | None = None) -> None:
        self._roomier = True
        self._hosts.known(host, capacity, only)

    def host_gone(self, host: str) -> None:
        self._hosts.gone(host)

    def host_usable(self, host: str, usable: bool) -> None:
        self._hosts.all[host].usable = usable
        self._roomier = True

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
            self._enter(lane)
        elif before != lane.head():
            self._moved_up(lane)

    def _moved_up(self, lane: Lane) -> None:
        """The lane has another first job than before."""
        if lane.at is None:
            self._racks.put(lane)
        elif not lane.stopped:
            for use in lane.need.limits:
                line = self._waiting.get(use.name)
                if line is not None and lane in line:
                    line.put(lane)

    def _enter(self, lane: Lane) -> None:
        """The lane, which has jobs, waits for room, unless one of its limits stops it altogether."""
        stopped = self.limits.stopped(lane.need.limits) if lane.need.limits else None
        lane.at, lane.stopped = stopped, stopped is not None
        if stopped is not None:
            self._stopped.setdefault(stopped, []).append(lane)
            return
        self._racks.put(lane)

    def withdraw(self, need: Need, *, priority: int, job: int) -> None:
        lane = self._lanes[priority, need]
        head = lane.head()
        lane.gone.add(job)
        if not len(lane):
            del self._lanes[priority, need]
            lane.drop()
            self._unpark(lane)
        elif head != lane.head():
            self._moved_up(lane)

    def sizes_changed(self) -> None:
        """Jobs that wait may need something else than when they were offered."""
        self._sizes += 1

    def limit_changed(self, name: str) -> None:
        """A limit was declared anew, opened or closed: look again at all that concerns it."""
        self._woken.add(name)
        for lane in self._stopped.pop(name, ()):
            if lane.head() is not None:
                self._enter(lane)
        for lane in self._lanes.values():
            uses = lane.need.limits
            if not lane.stopped and any(use.name == name for use in uses) and self.limits.stopped(uses) == name:
                self._unpark(lane)
                lane.at, lane.stopped = name, True
                self._stopped.setdefault(name, []).append(lane)

    def place(self, now: float, wall: float = 0.0) -> tuple[list[Opened], list[Chosen]]:
        del wall  # there is no future here
        opened: list[Opened] = []
        chosen: list[Chosen] = []
        self._now, self._first = now, None
        self._tried.clear()
        woken = self._names_woken()
        self._wake(woken)
        idle = 0
        while idle < 2:
            before = len(chosen)
            self._pass(now, opened, chosen)
            if not (self._wake(woken) | self._look_behind()):
                break
            idle = idle + 1 if len(chosen) == before else 0
        self._first = None
        return opened, chosen

    def _pass(self, now: float, opened: list[Opened], chosen: list[Chosen]) -> None:
        self._first = None
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
                    self._first = lane
                    self._shadows.clear()
                    self._backfill(now, opened, chosen)
                    break
            self._racks.put_back(first)
        for rack in aside:
            self._racks.put_back(rack)

    def _fits(self, size: Size) -> bool:
        """Is there room for it on a host that is there for all?"""
        return any(host.usable and fits(size, host.free) for host in self._hosts.shared.values())

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
            host, keeps = self._room(lane)
            if keeps:
                self._park(lane, keeps)
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

    def _room(self, lane: Lane) -> tuple[Host | None, list[str]]:
        """A host on which the first job may begin, or None; and the limits that keep it where there is room."""
        need = lane.need
        keeps: list[str] = []
        behind: dict[str, Lane] | None = None
        for host in self._hosts.for_need(need):
            if host.usable and fits(need.size, host.free) and self._may_pass(lane, host):
                if not need.limits:
                    return host, []
                missing = self.limits.missing(need.limits, host.name)
                if not missing:
                    if behind is None:
                        behind = self._before(lane) if self._waiting else {}
                    if not behind:
                        return host, []
                    missing = list(behind)
                keeps += missing
        if behind:
            self._behind[lane] = next(iter(behind.items()))
        return None, keeps

    def _may_pass(self, lane: Lane, host: Host) -> bool:
        """Would it not delay the first of all, should that wait for room?"""
        first = self._first
        if first is None or lane.rank() < first.rank():
            return True
        shadow, spare = self._shadow(host, first.need)
        return self._now + lane.need.size.time_s <= shadow or fits(lane.need.size, spare)

    def _before(self, lane: Lane, *, besides: str = "") -> dict[str, Lane]:
        """The limits for which somebody of better rank queues up, and who does."""
        found: dict[str, Lane] = {}
        rank = lane.rank()
        for use in lane.need.limits:
            line = self._waiting.get(use.name)
            if line is not None and use.name != besides:
                ahead = next((other for other in line.before(rank) if self._queues(other, use.name)), None)
                if ahead is not None:
                    found[use.name] = ahead
        return found

    def _queues(self, lane: Lane, limit: str) -> bool:
        """Does nothing but this limit keep the lane from starting?"""
        need = lane.need
        for host in self._hosts.for_need(need):
            if (
                host.usable
                and fits(need.size, host.free)
                and self.limits.missing(need.limits, host.name) == [limit]
                and self._may_pass(lane, host)
            ):
                return not self._before(lane, besides=limit)
        return False

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
            flow = host.flows.get(rack.size)
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
                if uses and (self.limits.missing(uses, host.name) or self._before(lane)):
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
            host, keeps = self._room(lane)
            if keeps:
                self._park(lane, keeps)
            elif host is None:
                continue
            else:
                shadow, spare = self._shadows[host.name]
                if now + rack.size.time_s > shadow:
                    spare = [s - n for s, n in zip(spare, parts(rack.size), strict=True)]
                    self._shadows[host.name] = shadow, spare
                self._choose(rack, lane, host, now, opened, chosen)
            if (lane := rack.best()) is not None:
                heappush(queue, (lane.rank(), rack))

    def _shadow(self, host: Host, need: Need) -> tuple[float, list[int]]:
        """When this need will fit on the host, and what is then left beside it."""
        known = self._shadows.get(host.name)
        if known is None:
            known = self._shadows[host.name] = self._foreseen(host, need)
        return known

    def _foreseen(self, host: Host, need: Need) -> tuple[float, list[int]]:
        size, now = need.size, self._now
        if not fits(size, amounts(host.capacity)) or host.only not in (None, need):
            return float("inf"), list(host.free)
        free = list(host.free)
        when = now
        for seat in sorted(host.seats.values(), key=lambda seat: seat.expected_end(now)):
            if fits(size, free):
                break
            free = [f + n for f, n in zip(free, parts(seat.size), strict=True)]
            when = seat.expected_end(now)
        return when, [f - n for f, n in zip(free, parts(size), strict=True)]

    # -- lanes that wait for a limit

    def _park(self, lane: Lane, limits: list[str]) -> None:
        """There is room, and only these limits keep the lane from starting."""
        lane.at, lane.stopped = limits[0], False
        for limit in limits:
            line = self._waiting.get(limit)
            if line is None:
                line = self._waiting[limit] = Line()
            line.put(lane)
            if self.limits.per_host(limit):
                self._roomless.add(limit)  # another host has units of its own

    def _unpark(self, lane: Lane) -> None:
        self._behind.pop(lane, None)
        for use in lane.need.limits:
            line = self._waiting.get(use.name)
            if line is not None:
                line.discard(lane)
                if not line:
                    del self._waiting[use.name]

    def _names_woken(self) -> list[str]:
        """Limits of which something may be free, or for which there may be room now."""
        names, self._woken = self._woken, set()
        if self._roomier:
            names |= self._roomless
            self._roomless, self._roomier = set(), False
        return sorted(names)

    def _wake(self, names: list[str]) -> bool:
        """Those who wait for these limits look for room again, best rank first, as far as the units go.

        True if somebody left the limits that it waited for. Called again after those have been served,
        for whoever could not start leaves units to the next.
        """
        found = False
        for name in names:
            line = self._waiting.get(name)
            left = self.limits.left(name) if line is not None else 0
            while left > 0 and line and (lane := self._next_in(line, name)) is not None:
                self._tried.add(lane)
                if self._look_again(lane):
                    found = True
                    use = next(use for use in lane.need.limits if use.name == name)
                    left = 0 if use.exclusive else left - use.units * len(lane)
        return found

    def _next_in(self, line: Line, name: str) -> Lane | None:
        """The first in a line that has not looked again yet.

        Of a size for which there is no room one lane is enough, so that it is known that room is wanted.
        """
        for _rank, lane in sorted(line.firsts(self._tried)):
            size = lane.need.size
            if self._hosts.made_for or not self._racks.waits(size) or self._fits(size):
                return lane
            self._roomless.add(name)
        return None

    def _look_behind(self) -> bool:
        """Who let somebody go first may not have to any more: that one began, or waits for room as well."""
        found = False
        still: dict[tuple[str, Lane], bool] = {}
        for lane, ahead in list(self._behind.items()):
            holds = still.get(ahead)
            if holds is None:
                limit, other = ahead
                holds = other in self._waiting.get(limit, ()) and self._queues(other, limit)
                still[ahead] = holds
            if not holds or lane.rank() < ahead[1].rank():
                found |= self._look_again(lane)
        return found

    def _look_again(self, lane: Lane) -> bool:
        """True if the lane has left the limits that it waited for."""
        self._unpark(lane)
        _host, keeps = self._room(lane)
        if keeps:
            self._park(lane, keeps)
            return False
        self._enter(lane)
        return True

    # -- for a planner that decides instead

    def hand_over(self) -> list[tuple[int, Need, list[int]]]:
        """All waiting jobs that take a core leave: priority, need and jobs of each lane."""
        found = []
        for (priority, need), lane in list(self._lanes.items()):
            if need.size.cpus:
                jobs = sorted(job for job in lane.heap if job not in lane.gone)
                found.append((priority, need, jobs))
                lane.heap.clear()
                lane.gone.clear()
                del self._lanes[priority, need]
                lane.drop()
                self._unpark(lane)
        return found

    def firsts(self, most: int) -> tuple[list[int], int]:
        """The first waiting job of each lane that takes a core, best rank first, and how many others wait."""
        lanes = [lane for lane in self._lanes.values() if lane.need.size.cpus and lane.head() is not None]
        found = [lane.rank()[1] for lane in sorted(lanes, key=Lane.rank)[:most]]
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

    def host_names(self) -> set[str]:
        """Hosts that new work may be placed on."""
        return {host.name for host in self._hosts.shared.values() if host.usable}

    # -- demand

    def demand(self) -> dict[Need, int]:
        """How many jobs of each need could begin at once, were there room: by rank, as limits leave."""
        wanted: dict[Need, int] = {}
        taken: list[tuple[tuple[LimitUse, ...], int]] = []
        for lane in sorted((lane for lane in self._lanes.values() if lane.head() is not None), key=Lane.rank):
            uses = lane.need.limits
            number = len(lane)
            if uses:
                if self.limits.stopped(uses) is not None:
                    continue
                room = self.limits.fitting(uses)
                number = number if room is None else min(number, room)
                self.limits.take(uses, "", times=number)
                taken.append((uses, number))
            if number:
                wanted[lane.need] = wanted.get(lane.need, 0) + number
        for uses, number in taken:
            self.limits.give(uses, "", times=number)
        return wanted

    def wanting(self) -> dict[str, int]:
        """Limit → how many of the waiting jobs use it."""
        wanted: dict[str, int] = {}
        for lane in self._lanes.values():
            for use in lane.need.limits:
                wanted[use.name] = wanted.get(use.name, 0) + len(lane)
        return wanted

    # -- seats

    def seat(self, host: str, size: Size, now: float) -> Opened | None:
        where = self._hosts.all[host]
        if not where.usable or not fits(size, where.free):
            return None
        return self._hosts.open(where, size, now)

    def started(self, seat: int, now: float) -> None:
        self._hosts.started(seat, now)

    def released(self, host: str, need: Need, *, job: int = 0, ended_at: float | None) -> None:
        del job
        flow = self._hosts.all[host].flow(need.size)
        flow.leases -= 1
        if ended_at is not None:
            flow.ended(ended_at)
        if need.limits:
            self.limits.give(need.limits, host)
            for use in need.limits:
                if use.name in self._waiting:
                    self._woken.add(use.name)

    def adopt(self, seat: int, host: str, size: Size) -> None:
        self._hosts.adopt(seat, host, size)

    def adopt_lease(self, host: str, need: Need) -> None:
        self._hosts.all[host].flow(need.size).leases += 1
        self.limits.take(need.limits, host)

    def close(self, seat: int) -> None:
        if self._hosts.close(seat):
            self._roomier = True

    # -- explanations

    def broken(self) -> list[str]:
        """Checked by the tests of packing."""
        return []

    def why(self, need: Need, *, priority: int, job: int) -> list[Waits]:
        refusal = self.refusal(need.size)
        if refusal:
            return [Waits("unsatisfiable", refusal)]
        hosts = self._hosts.for_need(need)
        found = limit_reasons(self.limits, need, [host.name for host in hosts]) if need.limits else []
        lane = self._lanes.get((priority, need))
        if not found and lane is not None and lane in self._behind:
            name, first = self._behind[lane]
            if first.head() is not None:
                message = f"job {first.heap[0]} is before it in the line for limit '{name}'"
                found.append(Waits("limit", message, name, first.heap[0]))
        if not any(host.usable for host in hosts):
            return [*found, Waits("no_resources", "no runner is connected yet")]
        usable = [host.free for host in hosts if host.usable]
        if not found or not any(fits(need.size, free) for free in usable):
            found.append(Waits("resources", self._why_no_room(need, usable, priority, job)))
        return found

    def _why_no_room(self, need: Need, usable: list[list[int]], priority: int, job: int) -> str:
        short = shortage(need.size, usable)
        said = f"waiting for room: {short}" if short else "waiting for room"
        before = 0
        for other in self._lanes.values():
            if other.priority > priority:
                before += len(other)
            elif other.priority == priority and other.head() is not None:
                if len(other) > _COUNTED:
                    if other.heap[0] < job:
                        return f"{said}; many jobs are before it"
                else:
                    before += sum(1 for each in other.heap if each < job and each not in other.gone)
        if not before:
            return f"{said}; it is the next in rank"
        return f"{said}; {'1 job is' if before == 1 else f'{before:,} jobs are'} before it"
