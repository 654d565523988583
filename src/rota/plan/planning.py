"""The placement of planned pools: packing while every job is plain, the planner as soon as one is not.

A plain job asks for a size and nothing else; a million of them are packed at the speed of the runners.
A request, a type, a queue, a reservation or a quota needs a plan, and then everybody is in it, so that
nobody jumps the queue. Jobs that ask for the same stand in as many lanes as of them could run at once, and
of each lane the first is in the plan: whatever becomes free at one moment, those whose turn it is are there.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

from rota.plan.ask import Ask
from rota.plan.bits import positions, spans_of
from rota.plan.entry import RUNNING, Begin, Entry
from rota.plan.lanes import Lane
from rota.plan.limits import Limits
from rota.plan.need import Need
from rota.plan.packing import Packing
from rota.plan.placement import (
    Capacity,
    Chosen,
    Given,
    Held,
    News,
    Opened,
    Outlook,
    Planned,
    Preempted,
    Reserved,
    Terms,
    Waits,
)
from rota.plan.planner import Planner
from rota.plan.reasons import limit_reasons
from rota.plan.resources import Figures
from rota.plan.shapes import Shape
from rota.plan.sharing import WHOLE, may_share
from rota.plan.size import CORE, Size
from rota.plan.whatif import copy_of

#: The name of a reservation that is only asked about.
_TRIED = -1
_LAST = 1 << 62
#: Of how many kinds of waiting plain jobs the first is in a plan that is only asked.
_MOST_FIRSTS = 1000

#: A pass of the planner is interrupted after so many steps, so that the manager goes on serving.
_STEPS = 64
#: Priority, need and group of jobs that ask for the same, and which of their lanes it is.
_Key = tuple[int, Need, int, int]
#: Jobs that ask for the same stand in no more lanes than this.
_MOST_LANES = 10_000


class Planning:
    """A `Placement` with a future, once somebody needs one."""

    def __init__(self, *, first_seat: int = 1) -> None:
        self._packing = Packing(first_seat=first_seat)
        self.limits: Limits = self._packing.limits
        self.terms: Terms | None = None
        self.planner: Planner | None = None
        self._news = News([], [], [], {})
        self._lanes: dict[_Key, Lane] = {}  #: those that the planner looks after
        self._where: dict[int, _Key] = {}
        self._first: dict[_Key, int] = {}  #: the job of each lane that is in the plan
        self._fresh: set[_Key] = set()  #: lanes that should have another job in the plan
        self._widths: dict[Need, int] = {}  #: how many of such jobs could run at once
        self._over: list[int] = []  #: leases that ended since the last look
        self._gone: list[int] = []  #: jobs that are in the plan and wait no more
        self._blocked: dict[int, tuple[Begin, set[int]]] = {}  #: job → whom it waits for to end
        self._stuck: list[Begin] = []  #: chosen, but a host does not let them begin
        self._parked: set[_Key] = set()  #: lanes kept by a limit in a way that no plan foresees
        self._leased: set[int] = set()  #: jobs in the plan that have a lease
        self._roomless: dict[int, Held] = {}  #: of these, those for whose resources there was no room yet
        self._special = 0  #: jobs with terms that wait or have a lease
        self._site_changed = False
        self._limits_changed = False

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
        self._limits_changed = True

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
        alone = bool(need.terms) and _timed(self.terms.ask(jobs[0]))
        for job in jobs:
            group = -job if alone else need.terms or self.terms.group(job)
            by_group.setdefault(group, []).append(job)
        for group, some in by_group.items():
            width = 1 if alone else self._at_once(need, some[0])
            by_lane: dict[int, list[int]] = {}
            for job in some:
                by_lane.setdefault(job % width, []).append(job)
            for number, part in by_lane.items():
                key = (priority, need, group, number)
                lane = self._lanes.get(key)
                if lane is None:
                    lane = self._lanes[key] = Lane(priority, need)
                lane.add(part)
                self._where.update(dict.fromkeys(part, key))
                self._fresh.add(key)

    def _at_once(self, need: Need, job: int) -> int:
        """How many jobs like this could run at once on the present site."""
        planner = self.planner
        if planner is None:
            return 1
        width = self._widths.get(need)
        if width is None:
            assert self.terms is not None
            least = min((shape.least for shape in planner.shapes(self.terms.ask(job))), default=1)
            width = planner.site.count // max(1, least)
            width = self._widths[need] = max(1, min(width, _MOST_LANES))
        return width

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
            entry = self.planner.entries.get(job) if self.planner is not None else None
            if entry is not None and entry.fixed:
                self._news.reserved[job] = None
        if len(lane):
            self._fresh.add(key)
        else:
            self._forget_lane(key)

    def _forget_lane(self, key: _Key) -> None:
        del self._lanes[key]
        self._fresh.discard(key)
        self._parked.discard(key)

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
        planner.work(_STEPS)
        opened, chosen = self._packing.place(now)  # those that take no core
        if planner.unsettled:
            return opened, chosen
        self._settle(planner, wall)
        self._unpark()
        if not planner.unsettled:
            planner.tick(wall)
        stuck, self._stuck = self._stuck, []
        for begin in stuck:
            self._begin(planner, begin, now, opened, chosen)
        while not planner.unsettled:
            self._plan_first(planner, wall)
            if planner.unsettled:
                break
            begun = planner.begin(wall)
            if not begun:
                break
            for begin in begun:
                self._begin(planner, begin, now, opened, chosen)
        return opened, chosen

    def next_event(self) -> float | None:
        """When something should be decided though nothing happens (wall time)."""
        if self.planner is None:
            return None
        return self.planner.now if self.planner.working else self.planner.next_event()

    @property
    def has_news(self) -> bool:
        """Has something been decided that somebody must act on?"""
        planner = self.planner
        told = planner is not None and bool(planner.moved or planner.expired or planner.orphans)
        return any(self._news) or told

    def take_news(self) -> News:
        """What was decided since the last time, besides who begins."""
        news, self._news = self._news, News([], [], [], {})
        planner = self.planner
        if planner is not None:
            news.moved.extend(planner.moved)
            planner.moved.clear()
            for id in planner.expired:
                entry = planner.entries.get(id)
                late = entry is not None and entry.ask.types.deadline is not None
                code = "reservation" if entry is not None and entry.fixed else "expired"
                said = "it could not end before its deadline" if late else "it did not begin in time"
                news.ended.append((id, code, said))
            planner.expired.clear()
            news.preempted.extend(Preempted(job, gone, "container") for job, gone in planner.orphans)
            planner.orphans.clear()
        return news

    def _wanted(self) -> bool:
        return self.terms is not None and self.terms.wanted()

    def _open(self, wall: float) -> None:
        """From now on there is a plan, and everybody is in it."""
        assert self.terms is not None
        site = self.terms.site()
        quotas = self.terms.quotas(site)
        self.planner = Planner(site, self.terms.policy(), quotas=quotas, now=wall, limits=self._capacities())
        self.planner.pause_after = _STEPS
        self._site_changed = self._limits_changed = False
        self._over, self._gone = [], []
        # Those that were given nothing take what those leave that were.
        for held in sorted(self.terms.held(), key=lambda each: (not each.resources, each.since)):
            self._adopt(self.planner, held, wall)
        waiting = [(lane.priority, lane.need, sorted(lane.jobs())) for lane in self._lanes.values()]
        self._lanes, self._where, self._widths = {}, {}, {}
        for priority, need, jobs in (*waiting, *self._packing.hand_over()):
            if jobs:
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
        self._parked.clear()
        self._leased.clear()
        self._roomless.clear()
        self._blocked.clear()
        self._stuck = []
        for lane in lanes:
            jobs = sorted(job for job in lane.heap if job not in lane.gone)
            if jobs:
                self._packing.offer(lane.need, priority=lane.priority, jobs=jobs)

    def _capacities(self) -> dict[str, int]:
        """The limits of the site, as far as the planner knows how to keep them."""
        return {limit.name: limit.capacity for limit in self.limits if limit.capacity is not None}

    def _adopt(self, planner: Planner, held: Held, wall: float) -> None:
        """A lease that was given before there was this plan keeps its resources, or gets some."""
        assert self.terms is not None
        ask = self.terms.ask(held.job)
        site = planner.site
        mask = site.mask(id for id in _ids(held.resources) if site.knows(id))
        if not mask:
            mask, enough = self._room_for(planner, held)
            if not enough:
                self._roomless[held.job] = held
        self._leased.add(held.job)
        planner.adopt(held.job, ask, start=held.since, resources=mask, now=wall)

    def _room_for(self, planner: Planner, held: Held) -> tuple[int, bool]:
        """Resources on its host that nobody else runs on, for a lease that no plan gave any; and are they enough?

        What is left is taken in any case: it may well run there, and nobody else should.
        """
        assert self.terms is not None
        ask = self.terms.ask(held.job)
        there = free = planner.site.hosts.get(held.host, 0)
        parts: dict[int, int] = {}  #: of cores that are shared, how much is taken
        for entry in planner.running.values():
            if entry.id == held.job:
                continue
            free &= ~entry.resources
            if entry.ask.share and entry.resources & there:
                parts[entry.resources] = parts.get(entry.resources, 0) + entry.ask.share
        for core, taken in parts.items() if ask.share else ():
            if taken + ask.share <= WHOLE:
                return core, True
        for alternative in ask.alternatives:
            # On what may not be used now as well: it runs there.
            mask = Shape(alternative, planner.site, within=planner.site.everything).choose(free) if free else 0
            if mask:
                return mask, True
        for core in parts:
            free |= core  # a part of a shared core may be its as well
        return (0 if ask.share else free), False

    def _find_room(self, planner: Planner, wall: float) -> None:
        """Leases that were sent ahead begin as soon as somebody ends, before all that wait."""
        assert self.terms is not None
        for job, held in list(self._roomless.items()):
            mask, enough = self._room_for(planner, held)
            if mask != planner.entries[job].resources:
                planner.ended(job, wall)
                planner.adopt(job, self.terms.ask(job), start=wall, resources=mask, now=wall)
            if enough:
                del self._roomless[job]

    def _settle(self, planner: Planner, wall: float) -> None:
        """Tell the planner what has ended, and that resources have changed."""
        gone, self._gone = self._gone, []
        over, self._over = self._over, []
        for job in gone:
            planner.ended(job, wall, complete=False)
            self._has_ended(job)
        for number, job in enumerate(over, 1):
            self._leased.discard(job)
            self._roomless.pop(job, None)
            planner.pause_after = _STEPS if number == len(over) else 1  # one look at everybody is enough
            planner.ended(job, wall)
            self._has_ended(job)
        if self._limits_changed:
            self._limits_changed = False
            self._site_changed = self._site_changed or self._capacities() != planner.limits
        if self._site_changed:
            self._site_changed = False
            self._renew(planner, wall)
            over = over or list(self._roomless)
        if over and self._roomless:
            self._find_room(planner, wall)

    def _has_ended(self, job: int) -> None:
        """Who waited for nothing but its end may begin."""
        for waiting, (begin, victims) in list(self._blocked.items()):
            victims.discard(job)
            if not victims:
                del self._blocked[waiting]
                self._stuck.append(begin)

    def _put_back(self, planner: Planner, job: int) -> None:
        """A job that was to begin and has no lease yet waits again."""
        key = self._where[job]
        planner.ended(job, planner.now, complete=False)
        del self._first[key]
        self._stuck = [begin for begin in self._stuck if begin.entry.id != job]
        self._blocked.pop(job, None)
        self._has_ended(job)

    def _renew(self, planner: Planner, wall: float) -> None:
        assert self.terms is not None
        self._widths.clear()
        site = self.terms.site()
        planner.change_rules(
            site,
            wall,
            policy=self.terms.policy(),
            quotas=self.terms.quotas(site),
            limits=self._capacities(),
        )

    def _plan_first(self, planner: Planner, wall: float) -> None:
        """The first job of every lane is in the plan."""
        for key in sorted(self._fresh, key=lambda key: (-key[0], self._lanes[key].head() or 0)):
            if planner.unsettled:
                return  # others come when everybody has a place again
            self._fresh.discard(key)
            lane = self._lanes[key]
            head = lane.head()
            first = self._first.get(key)
            if head is None or first == head:
                continue
            if first is not None:
                entry = planner.entries.get(first)
                if entry is not None and entry.state == RUNNING:
                    continue  # its time has come: only who is in its way must end first
                planner.ended(first, wall, complete=False)
                del self._first[key]
            if self.limits.stopped(lane.need.limits) is not None:
                self._parked.add(key)
                continue
            self._parked.discard(key)
            self._first[key] = head
            self._plan(planner, head, wall)

    def _plan(self, planner: Planner, job: int, wall: float) -> None:
        assert self.terms is not None
        ask, submitted = self.terms.ask(job), self.terms.submitted(job)
        if ask.at is None:
            planner.submit(job, ask, wall, submitted=submitted, serial=job)
            return
        granted = self.terms.reserved(job)
        if granted is None and not planner.site.usable and ask.at >= wall:
            # No runner is there yet: it is answered when one is.
            key = self._where[job]
            del self._first[key]
            self._parked.add(key)
            return
        if granted is None:
            entry = planner.submit(job, ask, wall, submitted=submitted, serial=job)
            if entry.fixed:
                where = planner.site.spans(entry.resources)
                self._news.reserved[job] = Reserved(where, entry.alternative)
        else:
            site = planner.site
            mask = site.mask(id for id in _ids(granted.resources) if site.knows(id))
            entry = planner.keep(
                job, ask, wall, resources=mask, alternative=granted.alternative, submitted=submitted, serial=job
            )
        if job not in planner.entries:
            message = entry.reason.message if entry.reason is not None else "rejected"
            self._news.ended.append((job, "reservation", message))

    def rejection(self, ask: Ask, wall: float) -> str | None:
        """Why a reservation that is asked for now would not be granted, or None."""
        if self.planner is None:
            self._open(wall)
        planner = self.planner
        assert planner is not None
        self._settle(planner, wall)
        planner.tick(wall)
        self._plan_first(planner, wall)
        if not planner.site.usable:
            return None  # it is answered when there is something to reserve
        told = len(planner.moved)
        entry = planner.submit(_TRIED, ask, wall, serial=_LAST)
        granted = _TRIED in planner.entries
        planner.ended(_TRIED, wall, complete=False)
        del planner.moved[told:]
        if granted:
            return None
        return entry.reason.message if entry.reason is not None else "rejected"

    def _unpark(self) -> None:
        """Lanes that a limit kept, and keeps no more, are planned."""
        if self._parked:
            hosts = self._packing.host_names()
            for key in list(self._parked):
                if not all(self._kept(key[1], host) for host in hosts):
                    self._fresh.add(key)

    def _kept(self, need: Need, host: str) -> bool:
        """Does a limit keep a job of this need from beginning on this host now?"""
        uses = need.limits
        return bool(uses) and (self.limits.stopped(uses) is not None or bool(self.limits.missing(uses, host)))

    def _begin(
        self, planner: Planner, begin: Begin, now: float, opened: list[Opened], chosen: list[Chosen]
    ) -> None:
        """Lease a job whose time has come, unless somebody must end first."""
        entry = begin.entry
        job = entry.id
        if planner.entries.get(job) is not entry:
            return  # it was put back meanwhile
        victims = {victim for victim in begin.victims if victim in planner.entries}
        for victim in victims - self._leased:
            self._fresh.add(self._where[victim])
            self._put_back(planner, victim)
        victims &= self._leased
        if victims:
            self._blocked[job] = (begin, victims)
            self._news.preempted.extend(Preempted(victim, job) for victim in victims)
            return
        key = self._where[job]
        need = self._lanes[key].need
        given, host = _given(planner, entry, need, self._packing.host_names())
        if host is not None and self._kept(need, host):
            # It must not hold resources while it waits for something that is in no plan.
            self._put_back(planner, job)
            self._parked.add(key)
            return
        if host is None or not self._has_room(planner, host, given.size):
            self._stuck.append(Begin(entry, []))
            return
        self._drop(job, key)
        opened.append(self._packing.grant(host, Need(given.size, need.limits, need.terms), now))
        chosen.append(Chosen(job, host, given))
        self._leased.add(job)

    def _has_room(self, planner: Planner, host: str, size: Size) -> bool:
        """Is there memory and the like beside what is in no plan: jobs that take no core?"""
        figures = planner.site.figures.get(host, Figures())
        _cpus, mem, disk, gpus, _number = self._packing.in_use(host)
        return (
            (not size.mem or figures.mem is None or mem + size.mem <= figures.mem)
            and (not size.disk or figures.disk is None or disk + size.disk <= figures.disk)
            and (not size.gpus or gpus + size.gpus <= figures.gpus)
        )

    def _drop(self, job: int, key: _Key) -> None:
        """The job has left its lane, other than by being withdrawn."""
        lane = self._lanes[key]
        del self._where[job], self._first[key]
        lane.gone.add(job)
        if len(lane):
            self._fresh.add(key)
        else:
            self._forget_lane(key)

    # -- what must be true

    def broken(self) -> list[str]:
        """A sentence for everything that does not agree with itself; empty when all is well."""
        return [*self._lanes_broken(), *self._plan_broken(), *self._shared_unduly()]

    def _lanes_broken(self) -> list[str]:
        wrong = []
        waiting = {job: key for key, lane in self._lanes.items() for job in lane.jobs()}
        if waiting != self._where:
            wrong.append(f"plan: {len(waiting)} jobs stand in lanes, {len(self._where)} are known where")
        wrong += [f"plan: lane {key} is empty" for key, lane in self._lanes.items() if not len(lane)]
        for name, keys in (("first", self._first), ("fresh", self._fresh), ("parked", self._parked)):
            wrong += [f"plan: there is no lane {key}, but it is {name}" for key in keys if key not in self._lanes]
        wrong += [
            f"plan: job {job} is first in lane {key}, where it does not wait"
            for key, job in self._first.items()
            if self._where.get(job) != key
        ]
        if self.terms is not None:
            special = sum(len(lane) for key, lane in self._lanes.items() if key[1].terms)
            special += sum(1 for held in self.terms.held() if held.on_terms)
            if special != self._special:
                wrong.append(f"plan: {self._special} jobs on terms are counted, {special} are there")
        return wrong

    def _plan_broken(self) -> list[str]:
        planner = self.planner
        if planner is None:
            told = {name: getattr(self, name) for name in ("_first", "_blocked", "_stuck", "_parked", "_leased")}
            wrong = [f"plan: there is none, but {name} is {value}" for name, value in told.items() if value]
            return wrong + [
                f"plan: there is none, but plain lane {key}" for key in self._lanes if not key[1].terms
            ]
        assert self.terms is not None
        wrong = []
        looked_after = self._first.keys() | self._fresh | self._parked
        wrong += [f"plan: nobody looks after lane {key}" for key in self._lanes if key not in looked_after]
        left = set(self._over) | set(self._gone)
        leased = {held.job for held in self.terms.held()}
        if leased - left != self._leased - left:
            wrong.append(f"plan: {sorted(self._leased)} have a lease for the plan, {sorted(leased)} really")
        begun = set(self._blocked) | {begin.entry.id for begin in self._stuck}
        firsts = set(self._first.values())
        if begun - firsts:
            wrong.append(f"plan: {sorted(begun - firsts)} have begun and are nobody's first")
        if planner.running.keys() - left != (begun | self._leased) - left:
            wrong.append(f"plan: {sorted(planner.running)} run, {sorted(begun)} and {sorted(self._leased)} should")
        if planner.entries.keys() - left != (firsts | self._leased) - left:
            wrong.append(f"plan: {sorted(planner.entries)} are in it, {sorted(firsts | self._leased)} should be")
        for job, (_begin, victims) in self._blocked.items():
            if not victims & planner.running.keys():
                wrong.append(f"plan: job {job} waits for {sorted(victims)} to end, who do not run")
        return wrong

    def _shared_unduly(self) -> list[str]:
        """Who holds what somebody else holds, though they may not share."""
        if self.terms is None:
            return []
        wrong = []
        holders: dict[int, list[int]] = {}
        for held in self.terms.held():
            for id in _ids(held.resources):
                holders.setdefault(id, []).append(held.job)
        for id, jobs in holders.items():
            for one, other in combinations(jobs, 2):
                asks = self.terms.ask(one), self.terms.ask(other)
                nested = any(ask.types.inner for ask in asks)
                if not nested and not may_share(*asks):
                    wrong.append(f"plan: resource {id} is given to jobs {one} and {other} at once")
        return wrong

    # -- explanations

    def planned(self, job: int) -> Planned | None:
        """What is planned for a job; None: it is not in the plan."""
        planner = self.planner  # whoever asks may do so from another thread
        entry = planner.entries.get(job) if planner is not None else None
        if entry is None or planner is None:
            return None
        return Planned(entry.start, entry.end, planner.site.spans(entry.resources))

    def outlook(self, wall: float) -> Outlook:
        """A plan of its own to ask: a copy of this one or, where there is none, the one that there would be."""
        if self.planner is not None:
            lined_up = sum(map(len, self._lanes.values()))
            return Outlook(copy_of(self.planner), max(0, lined_up - len(self._first)))
        assert self.terms is not None
        site = self.terms.site()
        planner = Planner(
            site, self.terms.policy(), quotas=self.terms.quotas(site), now=wall, limits=self._capacities()
        )
        for held in sorted(self.terms.held(), key=lambda each: each.since):
            mask = (
                site.mask(id for id in _ids(held.resources) if site.knows(id)) or self._room_for(planner, held)[0]
            )
            planner.adopt(held.job, self.terms.ask(held.job), start=held.since, resources=mask, now=wall)
        firsts, others = self._packing.firsts(_MOST_FIRSTS)
        for job in firsts:
            planner.submit(job, self.terms.ask(job), wall, submitted=self.terms.submitted(job), serial=job)
        return Outlook(planner, others)

    def why(self, need: Need, *, priority: int, job: int) -> list[Waits]:
        planner, key = self.planner, self._where.get(job)
        if planner is None or key is None:
            return self._packing.why(need, priority=priority, job=job)
        found: list[Waits] = []
        first = self._first.get(key)
        if first is None:
            kept = limit_reasons(self.limits, need, list(planner.site.hosts)) if key in self._parked else []
            return kept or [Waits("resources", "it is about to be planned")]
        if first != job:
            alike = (lane for other, lane in self._lanes.items() if other[:3] == key[:3])
            before = sum(1 for lane in alike for each in lane.jobs() if each < job)
            said = f"{before:,} {'jobs that ask' if before != 1 else 'job that asks'} for the same"
            found.append(Waits("resources", f"{said} {'are' if before != 1 else 'is'} before it", ahead=first))
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
        of_first = planner.why(entry)
        if first != job:
            of_first = [each._replace(message=f"job {first}: {each.message}") for each in of_first]
        return [*found, *of_first]


def _timed(ask: Ask) -> bool:
    """Is there a moment that matters to each job by itself, whoever is before it?"""
    return ask.at is not None or ask.types.expire is not None or ask.types.deadline is not None


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
    if entry.fixed and option.hard and entry.end is not None:
        given_walltime = max(1.0, entry.end - planner.now)  # who begins late still ends on time
    if not need.terms or first is None:
        return Given(
            size, site.spans(entry.resources), walltime_s=given_walltime
        ), first if first in known else None
    own = list(positions(site.hosts[first]))
    mine = set(positions(entry.resources))
    cores = spans_of(at for at, bit in enumerate(own) if bit in mine)
    cpus = entry.ask.share or CORE * nodes[first]
    exact = Size(cpus=cpus, mem=size.mem, disk=size.disk, time_s=size.time_s, gpus=size.gpus)
    given = Given(exact, site.spans(entry.resources), cores, tuple(nodes.items()), given_walltime)
    return given, first if first in known else None
