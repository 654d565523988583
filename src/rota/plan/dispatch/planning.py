"""The placement of planned pools: packing while every job is plain, a plan as soon as one is not.

A plain job asks for a size and nothing else; a million of them are packed at the speed of the runners.
A request, a type, a queue, a reservation or a quota needs a plan. Then all jobs are in it, so that none jumps
the queue. Only jobs that take no core are always packed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from math import inf

from rota.plan.ask import Ask
from rota.plan.dispatch import consistency, plan_factory, queue_position
from rota.plan.dispatch.active_plan import ActivePlan
from rota.plan.dispatch.asks import Asks
from rota.plan.dispatch.elsewhere import place_elsewhere
from rota.plan.dispatch.gang_grants import planned_member
from rota.plan.dispatch.plan_queue import PlanQueue
from rota.plan.explain import why_waiting
from rota.plan.need import LimitUse, Need, is_planned
from rota.plan.packing.demand import demand, ready, wanting
from rota.plan.packing.job_classes import JobClass
from rota.plan.packing.packing import Packing
from rota.plan.placement.decisions import Decision, News, Opened
from rota.plan.placement.explanation import Outlook, Planned, Waiting
from rota.plan.placement.facts import Lacks, Rules
from rota.plan.placement.hosts import Condition
from rota.plan.placement.leases import Away, Held, Reserved
from rota.plan.placement.queue import Entrant, GangOffer, LearnedSizes, Offer, RankKey, Ready
from rota.plan.planner.planner import Planner
from rota.plan.planner.sleeping_hosts import next_starts
from rota.plan.policy.limits import Limits
from rota.plan.reasons import Waits
from rota.plan.size import Capacity, Size


class Planning:
    """A `Placement` that packs, and plans while a job needs a plan."""

    def __init__(self, *, first_seat: int = 1) -> None:
        self._packing = Packing(first_seat=first_seat)
        self._asks = Asks(self._packing.coreless)
        self.limits: Limits = self._packing.limits
        self._queue = PlanQueue(self._asks)  #: all jobs on terms and, while there is a plan, all that take a core
        self._plan: ActivePlan | None = None
        self._news = News([], [], [], {}, {}, [])
        self._on_terms = 0  #: jobs that need a plan, and that wait or have a lease
        self._site_changed = False
        self._limits_changed = False
        #: Told for the next decision, and forgotten after it.
        self._verdict: bool | None = None
        self._rules: Rules | None = None
        self._leases: list[Held] | None = None
        self._reserved: Mapping[int, Reserved] = {}

    # -- passed on to the packing

    @property
    def ahead(self) -> bool:
        return self._packing.ahead

    @ahead.setter
    def ahead(self, ahead: bool) -> None:
        self._packing.ahead = ahead

    def host_known(self, host: str, capacity: Capacity, only: Need | None = None) -> None:
        self._packing.host_known(host, capacity, only)
        self._site_changed = True

    def host_gone(self, host: str) -> None:
        self._packing.host_gone(host)
        self._site_changed = True

    def host_provisioned(self, hosts: Collection[str], on: bool) -> None:
        self._packing.provisioned(hosts, on)

    def host_condition(self, host: str, condition: Condition) -> None:
        self._packing.host_usable(host, condition.schedulable, forceable=condition.forceable)
        self._site_changed = True

    def site_changed(self) -> None:
        """Resources, queues or quotas were changed."""
        self._site_changed = True

    def refusal(self, size: Size, pool: str = "") -> str | None:
        return self._packing.refusal(size, pool)

    def learned(self, group: str, sizes: LearnedSizes | None) -> None:
        self._packing.learned(group, sizes)

    @property
    def resized(self) -> dict[int, Size]:
        return self._packing.resized

    def take_resized(self) -> dict[int, Size]:
        return self._packing.take_resized()

    def limit_changed(self, name: str) -> None:
        self._packing.limit_changed(name)
        self._limits_changed = True

    def hold(self, job: int, uses: tuple[LimitUse, ...]) -> tuple[LimitUse, ...]:
        return self._packing.hold(job, uses)

    def let_go(self, job: int) -> None:
        self._packing.let_go(job)

    def shut(self, name: str, job: int) -> None:
        self._packing.shut(name, job)

    def reopen(self, name: str, job: int) -> None:
        self._packing.reopen(name, job)

    def seat(self, host: str, size: Size, now: float, *, kept: bool = False) -> Opened | None:
        return self._packing.seat(host, size, now, kept=kept)

    def started(self, seat: int, now: float) -> None:
        self._packing.started(seat, now)

    def adopt(self, seat: int, host: str, size: Size) -> None:
        self._packing.adopt(seat, host, size)

    def adopt_lease(self, host: str, need: Need) -> None:
        self._packing.adopt_lease(host, need)
        self._on_terms += bool(need.terms) and host not in self._packing.made

    def close(self, seat: int) -> None:
        self._packing.close(seat)

    def usable_in(self, pools: Collection[str]) -> bool:
        return self._packing.usable_in(pools)

    def ready(self) -> list[Ready]:
        return ready([*self._packing.job_classes(), *self._queue.classes.values()], self.entrants)

    def demand(self) -> dict[Need, int]:
        return demand(self.ready(), self.limits)

    def wanting(self) -> dict[str, int]:
        wanted = self._packing.wanting()
        for name, number in wanting(self._queue.classes.values()).items():
            wanted[name] = wanted.get(name, 0) + number
        return wanted

    # -- the queue

    @property
    def entrants(self) -> Mapping[int, Entrant]:
        return self._asks.entrants

    @entrants.setter
    def entrants(self, entrants: Mapping[int, Entrant]) -> None:
        self._asks.entrants = self._packing.entrants = entrants

    @property
    def provision_s(self) -> Mapping[str, float]:
        return self._asks.provision_s

    @provision_s.setter
    def provision_s(self, lengths: Mapping[str, float]) -> None:
        self._asks.provision_s = lengths

    def offer(self, offer: Offer) -> None:
        need = offer.need
        if need.terms:
            self._on_terms += len(offer.jobs)
        elif self._plan is None or not is_planned(need):
            self._packing.offer(need, offer.rank, offer.jobs)
            return
        self._queue.add(need, offer.rank, offer.jobs, planner=self.planner)

    def withdraw(self, need: Need, rank: RankKey, job: int) -> None:
        if job not in self._queue.where:
            self._packing.withdraw(need, rank, job)
            return
        self._on_terms -= bool(need.terms)
        if self._queue.leave(job) and self._plan is not None:
            self._plan.withdrawn(job)

    def offer_gang(self, offer: GangOffer) -> None:
        self._on_terms += len(offer.members)
        self._queue.add_gang(offer)

    def withdraw_gang(self, gang: int) -> None:
        offer = self._queue.gang_of(gang)
        assert offer is not None
        self._on_terms -= len(offer.members)
        planned = [self._queue.leave(job) for job in offer.jobs]
        if any(planned) and self._plan is not None:
            self._plan.gang_withdrawn(offer)

    def released(self, host: str, need: Need, *, job: int, ended_at: float | None) -> None:
        self._packing.released(host, need, ended_at=ended_at)
        if host in self._packing.made:
            return  # another engine's machine: no plan knows of it
        self._on_terms -= bool(need.terms)
        if self._plan is not None:
            self._plan.ended(job)

    def kept(self, host: str, need: Need, *, ended_at: float) -> None:
        self._packing.released(host, need, ended_at=ended_at)
        self._packing.adopt_lease(host, Need(need.size, (), need.terms, need.pool, need.walltime_s))

    def clock_moved(self, wall: float) -> None:
        if self._plan is not None:
            self._plan.tell(self._news)
            self._open(wall)
        self._forget_told()

    def suspended(self, job: int, away: Away) -> None:
        if self._plan is None:
            self._site_changed = True  # it comes back to its own cores: that needs a plan
        else:
            self._plan.paused[job] = away

    def resumes(self, job: int, away: Away) -> None:
        if self._plan is not None:
            self._plan.paused[job] = away

    def move_end(self, job: int, end: float, wall: float, *, force: bool = False) -> float:
        if self._plan is None:
            return end  # without a plan there are no promises
        self._settle(self._plan, wall)
        self._forget_told()
        return self._plan.planner.move_end(job, end, wall, force=force)

    # -- decisions

    def lacks(self, wall: float, *, anew: bool = False) -> Lacks:
        plan = self._plan
        if plan is None or anew:
            if not anew and not self._on_terms:
                if not self._site_changed:
                    return Lacks.NOTHING
                if self._verdict is None:
                    return Lacks.VERDICT
                if not self._verdict:
                    return Lacks.NOTHING
            lacks = Lacks.NOTHING if self._rules is not None else Lacks.RULES
            return lacks if self._leases is not None else lacks | Lacks.LEASES
        lacks = Lacks.VERDICT if not self._on_terms and self._verdict is None else Lacks.NOTHING
        return lacks | Lacks.RULES if self._rules is None and self._rules_differ(plan, wall) else lacks

    def tell_verdict(self, plan: bool) -> None:
        self._verdict = plan

    def tell_rules(self, rules: Rules) -> None:
        self._rules = rules
        self._asks.follow(rules.vacating)

    def tell_leases(self, leases: list[Held]) -> None:
        self._leases = leases

    def tell_reservations(self, granted: Mapping[int, Reserved]) -> None:
        self._reserved = granted
        if self._plan is not None:
            self._plan.reserved = granted

    def _forget_told(self) -> None:
        self._verdict = self._rules = self._leases = None

    def place(self, now: float, wall: float) -> list[Decision]:
        decided = self._place(now, wall)
        self._forget_told()
        return decided

    def _place(self, now: float, wall: float) -> list[Decision]:
        plan = self._plan
        if plan is None:
            if not self._on_terms and not (self._site_changed and self._verdict):
                return self._packing.place(now)
            plan = self._open(wall)
        elif not self._on_terms and not self._verdict:
            self._close(plan, wall)
            return self._packing.place(now)
        ready = plan.work()
        decided: list[Decision] = []
        for placed, key in place_elsewhere(plan, self._queue, self._packing, self._asks, now):
            self._on_terms -= bool(key.need.terms)
            decided.append((placed,))
        decided += self._packing.place(now)  # jobs that take no core of ours
        if ready:
            self._settle(plan, wall)
            decided += plan.begin(now, wall)
            if self._packing.roomier:
                decided += self._packing.place(now)
        return decided

    def rejection(self, ask: Ask, wall: float) -> str | None:
        """Why a reservation that is asked for now would not be granted, or None."""
        plan = self._plan or self._open(wall)
        self._settle(plan, wall)
        self._forget_told()
        return plan.rejection(ask, wall)

    def _open(self, wall: float) -> ActivePlan:
        """Make a plan of all jobs."""
        assert self._rules is not None
        assert self._leases is not None
        self._plan = ActivePlan(
            rules=self._rules, leases=self._leases, reserved=self._reserved, asks=self._asks,
            packing=self._packing, queue=self._queue, news=self._news, wall=wall,
        )  # fmt: skip
        self._site_changed = self._limits_changed = False
        return self._plan

    def _close(self, plan: ActivePlan, wall: float) -> None:
        """Drop the plan, which no job needs any more: plain jobs are packed again."""
        self._settle(plan, wall)
        plan.whole.forget_all()
        self._plan = None
        for need, rank, jobs in self._queue.hand_over():
            if jobs:
                self._packing.offer(need, rank, jobs)

    def _settle(self, plan: ActivePlan, wall: float) -> None:
        """Tell the plan what has changed."""
        differ = self._rules_differ(plan, wall)
        rules = self._rules if differ else None
        if rules is not None or not differ:
            self._site_changed = self._limits_changed = False
        plan.settle(wall, rules)

    def _rules_differ(self, plan: ActivePlan, wall: float) -> bool:
        """Must the plan learn of the site and its rules again?"""
        changed = self._site_changed or plan.planner.plan.renew_at <= wall
        return changed or (self._limits_changed and plan.limits_differ())

    # -- news

    def next_event(self) -> float | None:
        """When something should be decided though nothing happens (wall time)."""
        planner = self.planner
        if planner is None:
            return None
        if planner.working:
            return planner.plan.now
        found = planner.next_event()
        return planner.plan.renew_at if found is None and planner.plan.renew_at < inf else found

    def next_starts(self, hosts: Collection[str]) -> dict[str, float]:
        planner = self.planner
        return {} if planner is None else next_starts(planner.plan, hosts)

    @property
    def has_news(self) -> bool:
        """Has the plan decided something that the engine must act on?"""
        return any(self._news) or (self._plan is not None and self._plan.has_news)

    def take_news(self) -> News:
        """What was decided since the last call, besides which jobs begin."""
        if self._plan is not None:
            self._plan.tell(self._news)
        news = self._news
        taken = News(
            news.preempted[:], news.ended[:], news.moved[:], dict(news.reserved), dict(news.spent), news.resumed[:]
        )
        for part in news:
            part.clear()
        return taken

    # -- explanations

    @property
    def planner(self) -> Planner | None:
        """The plan, to look at; None while no job needs one."""
        plan = self._plan  # read once: another thread may call this
        return plan.planner if plan is not None else None

    def planned(self, job: int) -> Planned | None:
        """What is planned for a job; None: it is not in the plan."""
        planner = self.planner
        entry = planner.plan.entry_of(job) if planner is not None else None
        if entry is None or planner is None:
            return None
        if entry.team is not None:
            return planned_member(planner.plan, entry, job)
        return Planned(entry.start, entry.end, planner.plan.site.spans(entry.resources))

    def waiting(self) -> list[Waiting]:
        """All that wait for room, to be looked at later."""
        return [*self._packing.waiting(), *self._queue.waiting(self.planner)]

    def capacities(self) -> list[Capacity]:
        """Of the hosts that new work may be placed on."""
        return self._packing.capacities()

    def outlook(self, wall: float) -> Outlook:
        """A plan of its own to ask: a snapshot of this one or, if there is none, the one that there would be."""
        if self._plan is not None:
            return Outlook(self._plan.planner.snapshot(), self._queue.behind())
        assert self._rules is not None
        assert self._leases is not None
        found = plan_factory.outlook(self._rules, self._leases, self._asks, self._packing, wall)
        self._forget_told()
        return found

    def never_fit(self) -> Iterator[tuple[JobClass, str]]:
        yield from self._packing.never_fit()
        if self._plan is None:
            return
        planner = self._plan.planner
        for key, first in self._queue.firsts.items():
            entry = planner.plan.entries.get(first)
            reason = entry.reason if entry is not None and entry.start is None else None
            if entry is None or reason is None or reason.code != "unsatisfiable":
                continue
            # Perhaps hosts are only away now.
            if (waits := why_waiting.why(planner.plan, entry)[0]).code == reason.code:
                yield self._queue.classes[key], waits.message

    def why(self, need: Need, rank: RankKey, job: int) -> list[Waits]:
        if self._plan is None or job not in self._queue.where:
            return self._packing.why(need, rank, job)
        return queue_position.why(self._plan, self.limits, need, job)

    def broken(self, leases: list[Held]) -> list[str]:
        return consistency.broken(self._queue, self._plan, leases, self._on_terms)
