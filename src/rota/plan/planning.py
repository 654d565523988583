"""The placement of planned pools: packing while every job is plain, the planner as soon as one is not.

A plain job asks for a size and nothing else; a million of them are packed at the speed of the runners.
A request, a type, a queue, a reservation or a quota needs a plan, and then everybody is in it, so that
nobody jumps the queue. Jobs that ask for the same stand in one lane, of which the first is in the plan.
"""

from __future__ import annotations

from collections.abc import Callable

from rota.plan.bits import positions, spans_of
from rota.plan.entry import Begin, Entry
from rota.plan.lanes import Lane
from rota.plan.limits import Limits
from rota.plan.need import Need
from rota.plan.packing import Packing
from rota.plan.placement import Capacity, Chosen, Given, Held, News, Opened, Planned, Preempted, Terms, Waits
from rota.plan.planner import Planner
from rota.plan.reasons import limit_reasons
from rota.plan.size import CORE, Size

#: Priority, need and group of jobs that ask for the same.
_Key = tuple[int, Need, int]


class Planning:
    """A `Placement` with a future, once somebody needs one."""

    def __init__(self, *, first_seat: int = 1) -> None:
        self._packing = Packing(first_seat=first_seat)
        self.limits: Limits = self._packing.limits
        self.terms: Terms | None = None
        self.planner: Planner | None = None
        self._news = News([], [], [])
        self._lanes: dict[_Key, Lane] = {}  #: those that the planner looks after
        self._where: dict[int, _Key] = {}
        self._first: dict[_Key, int] = {}  #: the job of each lane that is in the plan
        self._fresh: set[_Key] = set()  #: lanes that should have another job in the plan
        self._over: list[int] = []  #: leases that ended since the last look
        self._gone: list[int] = []  #: jobs that are in the plan and wait no more
        self._blocked: dict[int, tuple[Begin, set[int]]] = {}  #: job → whom it waits for to end
        self._stuck: list[Begin] = []  #: chosen, but a limit or a host does not let them begin
        self._leased: dict[int, bool] = {}  #: jobs in the plan that have a lease: on terms of their own?
        self._special = 0  #: jobs with terms that wait or have a lease
        self._site_changed = False

    # -- what the packing is asked, whoever decides

    @property
    def needs(self) -> Callable[[int], Need] | None:
        return self._packing.needs

    @needs.setter
    def needs(self, needs: Callable[[int], Need] | None) -> None:
        self._packing.needs = needs

    def host_known(self, host: str, capacity: Capacity, only: Need | None = None) -> None:
        self._packing.host_known(host, capacity, only)
        self._site_changed = True

    def host_gone(self, host: str) -> None:
        self._packing.host_gone(host)
        self._site_changed = True

    def host_usable(self, host: str, usable: bool) -> None:
        self._packing.host_usable(host, usable)
        self._site_changed = True

    def site_changed(self) -> None:
        """Resources, queues or quotas were changed."""
        self._site_changed = True

    def refusal(self, size: Size) -> str | None:
        return self._packing.refusal(size)

    def sizes_changed(self) -> None:
        self._packing.sizes_changed()

    def limit_changed(self, name: str) -> None:
        self._packing.limit_changed(name)
        self._site_changed = True

    def seat(self, host: str, size: Size, now: float) -> Opened | None:
        return self._packing.seat(host, size, now)

    def started(self, seat: int, now: float) -> None:
        self._packing.started(seat, now)

    def adopt(self, seat: int, host: str, size: Size) -> None:
        self._packing.adopt(seat, host, size)

    def adopt_lease(self, host: str, need: Need) -> None:
        self._packing.adopt_lease(host, need)
        self._special += bool(need.terms)

    def close(self, seat: int) -> None:
        self._packing.close(seat)

    def demand(self) -> dict[Need, int]:
        return self._packing.demand()

    def wanting(self) -> dict[str, int]:
        wanted = self._packing.wanting()
        for lane in self._lanes.values():
            for use in lane.need.limits:
                wanted[use.name] = wanted.get(use.name, 0) + len(lane)
        return wanted

    # -- the queue

    def offer(self, need: Need, *, priority: int, jobs: list[int]) -> None:
        if need.terms:
            self._special += len(jobs)
        elif self.planner is None or not need.size.cpus:
            self._packing.offer(need, priority=priority, jobs=jobs)
            return
        self._line_up(need, priority, jobs)

    def _line_up(self, need: Need, priority: int, jobs: list[int]) -> None:
        assert self.terms is not None
        by_group: dict[int, list[int]] = {}
        for job in jobs:
            by_group.setdefault(need.terms or self.terms.group(job), []).append(job)
        for group, some in by_group.items():
            key = (priority, need, group)
            lane = self._lanes.get(key)
            if lane is None:
                lane = self._lanes[key] = Lane(priority, need)
            lane.add(some)
            self._where.update(dict.fromkeys(some, key))
            self._fresh.add(key)

    def withdraw(self, need: Need, *, priority: int, job: int) -> None:
        key = self._where.pop(job, None)
        if key is None:
            self._packing.withdraw(need, priority=priority, job=job)
            return
        self._special -= bool(need.terms)
        lane = self._lanes[key]
        lane.gone.add(job)
        if self._first.get(key) == job:
            del self._first[key]
            self._gone.append(job)
            self._stuck = [begin for begin in self._stuck if begin.entry.id != job]
            self._blocked.pop(job, None)
        self._fresh.add(key)
        if not len(lane):
            del self._lanes[key]
            self._fresh.discard(key)

    def released(self, host: str, need: Need, *, job: int, ended_at: float | None) -> None:
        self._packing.released(host, need, ended_at=ended_at)
        self._special -= bool(need.terms)
        if self.planner is not None:
            self._over.append(job)

    # -- deciding

    def place(self, now: float, wall: float) -> tuple[list[Opened], list[Chosen]]:
        if self.planner is None:
            if not self._special and not (self._site_changed and self._wanted()):
                return self._packing.place(now)
            self._open(wall)
        elif not self._special and not self._wanted():
            self._close(wall)
            return self._packing.place(now)
        planner = self.planner
        assert planner is not None
        self._settle(planner, wall)
        opened, chosen = self._packing.place(now)  # those that take no core
        planner.tick(wall)
        stuck, self._stuck = self._stuck, []
        for begin in stuck:
            self._begin(planner, begin, now, opened, chosen)
        while True:
            self._plan_first(planner, wall)
            begun = planner.begin(wall)
            if not begun:
                break
            for begin in begun:
                self._begin(planner, begin, now, opened, chosen)
        return opened, chosen

    def next_event(self) -> float | None:
        """When something should be decided though nothing happens (wall time)."""
        return self.planner.next_event() if self.planner is not None else None

    @property
    def has_news(self) -> bool:
        """Has something been decided that somebody must act on?"""
        return self.planner is not None and any((*self._news, self.planner.moved, self.planner.expired))

    def take_news(self) -> News:
        """What was decided since the last time, besides who begins."""
        news, self._news = self._news, News([], [], [])
        planner = self.planner
        if planner is not None:
            news.moved.extend(planner.moved)
            planner.moved.clear()
            news.ended.extend((id, "expired", "it did not begin in time") for id in planner.expired)
            planner.expired.clear()
        return news

    def _wanted(self) -> bool:
        return self.terms is not None and self.terms.wanted()

    def _open(self, wall: float) -> None:
        """From now on there is a plan, and everybody is in it."""
        assert self.terms is not None
        site = self.terms.site()
        quotas = self.terms.quotas(site)
        limits = {limit.name: limit.capacity for limit in self.limits if limit.capacity is not None}
        self.planner = Planner(site, self.terms.policy(), quotas=quotas, now=wall, limits=limits)
        self._site_changed = False
        self._over, self._gone = [], []
        self._leased = {}
        for held in sorted(self.terms.held(), key=lambda each: each.since):
            self._adopt(self.planner, held, wall)
        for priority, need, jobs in self._packing.hand_over():
            self._line_up(need, priority, jobs)
        self._first.clear()
        self._fresh = set(self._lanes)

    def _close(self, wall: float) -> None:
        """Nobody needs a plan any more: plain jobs are packed again."""
        assert self.planner is not None
        self._settle(self.planner, wall)
        lanes = list(self._lanes.values())
        self.planner = None
        self._lanes.clear()
        self._where.clear()
        self._first.clear()
        self._fresh.clear()
        self._leased.clear()
        self._blocked.clear()
        self._stuck = []
        for lane in lanes:
            jobs = sorted(job for job in lane.heap if job not in lane.gone)
            if jobs:
                self._packing.offer(lane.need, priority=lane.priority, jobs=jobs)

    def _adopt(self, planner: Planner, held: Held, wall: float) -> None:
        """A lease that was given before there was this plan keeps its resources, or gets some."""
        assert self.terms is not None
        ask = self.terms.ask(held.job)
        site = planner.site
        ids = [id for id in _ids(held.resources) if site.knows(id)]
        mask = site.mask(ids)
        if not ids and ask.alternatives:
            free = planner.slots.common(wall, wall + 1) & site.hosts.get(held.host, 0)
            for alternative in planner.shapes(ask):
                mask = alternative.choose(free)
                if mask:
                    break
        self._leased[held.job] = True
        planner.adopt(held.job, ask, start=held.since, resources=mask, now=wall)

    def _settle(self, planner: Planner, wall: float) -> None:
        """Tell the planner what has ended, and that resources have changed."""
        gone, self._gone = self._gone, []
        over, self._over = self._over, []
        for job in gone:
            planner.ended(job, wall, complete=False)
        for job in over:
            self._leased.pop(job, None)
            planner.ended(job, wall)
            for waiting, (begin, victims) in list(self._blocked.items()):
                victims.discard(job)
                if not victims:
                    del self._blocked[waiting]
                    self._stuck.append(begin)
        if self._site_changed:
            self._site_changed = False
            self._renew(planner, wall)

    def _renew(self, planner: Planner, wall: float) -> None:
        assert self.terms is not None
        site = self.terms.site()
        planner.change_rules(
            site,
            wall,
            policy=self.terms.policy(),
            quotas=self.terms.quotas(site),
            limits={limit.name: limit.capacity for limit in self.limits if limit.capacity is not None},
        )

    def _plan_first(self, planner: Planner, wall: float) -> None:
        """The first job of every lane is in the plan."""
        assert self.terms is not None
        fresh, self._fresh = self._fresh, set()
        for key in sorted(fresh, key=lambda key: (-key[0], self._lanes[key].head() or 0)):
            lane = self._lanes[key]
            head = lane.head()
            first = self._first.get(key)
            if head is None or first == head:
                continue
            if first is not None:
                planner.ended(first, wall, complete=False)
            self._first[key] = head
            ask = self.terms.ask(head)
            entry = planner.submit(head, ask, wall, submitted=self.terms.submitted(head), serial=head)
            if ask.at is not None and head not in planner.entries:
                message = entry.reason.message if entry.reason is not None else "rejected"
                self._news.ended.append((head, "reservation", message))

    def _begin(
        self, planner: Planner, begin: Begin, now: float, opened: list[Opened], chosen: list[Chosen]
    ) -> None:
        """Lease a job whose time has come, unless somebody must end first."""
        entry = begin.entry
        job = entry.id
        victims = {victim for victim in begin.victims if victim in planner.entries}
        if victims:
            self._blocked[job] = (begin, victims)
            self._news.preempted.extend(Preempted(victim, job) for victim in victims)
            return
        key = self._where[job]
        need = self._lanes[key].need
        given, host = _given(planner, entry, need, self._packing.host_names())
        if host is None or self.limits.missing(need.limits, host):
            self._stuck.append(Begin(entry, []))
            return
        self._drop(job, key)
        opened.append(self._packing.grant(host, Need(given.size, need.limits, need.terms), now))
        chosen.append(Chosen(job, host, given))
        self._leased[job] = True

    def _drop(self, job: int, key: _Key) -> None:
        """The job has left its lane, other than by being withdrawn."""
        lane = self._lanes[key]
        del self._where[job], self._first[key]
        lane.gone.add(job)
        if len(lane):
            self._fresh.add(key)
        else:
            del self._lanes[key]

    # -- explanations

    def planned(self, job: int) -> Planned | None:
        """What is planned for a job; None: it is not in the plan."""
        entry = self.planner.entries.get(job) if self.planner is not None else None
        if entry is None or self.planner is None:
            return None
        return Planned(entry.start, entry.end, self.planner.site.spans(entry.resources))

    def why(self, need: Need, *, priority: int, job: int) -> list[Waits]:
        planner, key = self.planner, self._where.get(job)
        if planner is None or key is None:
            return self._packing.why(need, priority=priority, job=job)
        found: list[Waits] = []
        first = self._first.get(key)
        if first is None:
            return [Waits("resources", "it is about to be planned")]
        if first != job:
            before = sum(1 for each in self._lanes[key].heap if each < job and each not in self._lanes[key].gone)
            found.append(Waits("resources", f"{before:,} jobs that ask for the same are before it", ahead=first))
        entry = planner.entries.get(first)
        if entry is None:
            return [*found, Waits("resources", "it is about to be planned")]
        if job in self._blocked:
            victims = sorted(self._blocked[job][1])
            return [
                Waits("resources", "besteffort jobs on its resources are being ended", blockers=tuple(victims))
            ]
        if need.limits:
            found += limit_reasons(self.limits, need, planner.site.hosts)
        return [*found, *planner.why(entry)]


def _ids(spans: str) -> list[int]:
    found: list[int] = []
    for part in spans.split(",") if spans else ():
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def _given(planner: Planner, entry: Entry, need: Need, known: set[str]) -> tuple[Given, str | None]:
    """What a job that begins gets, and the host that it begins on."""
    site = planner.site
    nodes: dict[str, int] = {}
    for bit in positions(entry.resources):
        host = str(site.resources[bit].values.get("host"))
        nodes[host] = nodes.get(host, 0) + 1
    first = next(iter(nodes), None)
    size = need.size
    option = entry.options[entry.alternative]
    given_walltime = option.length if option.hard else None
    if not need.terms or first is None:
        return Given(
            size, site.spans(entry.resources), walltime_s=given_walltime
        ), first if first in known else None
    own = list(positions(site.hosts[first]))
    mine = set(positions(entry.resources))
    cores = spans_of(at for at, bit in enumerate(own) if bit in mine)
    exact = Size(cpus=CORE * nodes[first], mem=size.mem, disk=size.disk, time_s=size.time_s, gpus=size.gpus)
    given = Given(exact, site.spans(entry.resources), cores, tuple(nodes.items()), given_walltime)
    return given, first if first in known else None
