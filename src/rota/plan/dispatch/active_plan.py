"""The plan that is carried out: it learns which jobs are next and which have ended; what it starts is leased.

It exists only while a job needs a plan (`plan.dispatch.planning`). Waiting jobs are in a `PlanQueue`; the first of
each of its job classes is in the plan, beside all leases.
"""

from __future__ import annotations

from collections.abc import Mapping

from rota.errors import NotFound
from rota.plan.ask import Ask
from rota.plan.dispatch import gang_grants
from rota.plan.dispatch.allocation import given, only_held, with_promise
from rota.plan.dispatch.asks import Asks
from rota.plan.dispatch.due_jobs import DueJobs
from rota.plan.dispatch.plan_factory import capacities, opened, renew
from rota.plan.dispatch.plan_leases import PlanLeases, ids_of, still_there
from rota.plan.dispatch.plan_queue import PlanQueue
from rota.plan.dispatch.whole_hosts import WholeHosts, whole_of
from rota.plan.need import Need
from rota.plan.packing.packing import Packing
from rota.plan.placement.decisions import Decision, News, Placed, Preempted
from rota.plan.placement.facts import Rules
from rota.plan.placement.given import Given
from rota.plan.placement.leases import Away, Held, Reserved
from rota.plan.placement.queue import GangOffer
from rota.plan.planner.shortfall import count_missing
from rota.plan.schedule.plan_entry import RUNNING, Begin
from rota.plan.site.resources import HostFigures
from rota.plan.size import Size

#: Types of jobs whose commands run on a host named by the site.
ELSEWHERE = ("deploy", "cosystem")
#: The id of a reservation that is only tried.
_TRIED = -1
_LAST = 1 << 62
#: A pass is paused after so many steps, so that the manager goes on serving.
_STEPS = 64


class ActivePlan:
    """A plan with its queue, leases and due jobs. Each job that takes a core is in it or behind an equal one."""

    def __init__(
        self,
        *,
        rules: Rules,
        leases: list[Held],
        reserved: Mapping[int, Reserved],
        asks: Asks,
        packing: Packing,
        queue: PlanQueue,
        news: News,
        wall: float,
    ) -> None:
        self.planner = opened(rules, packing.limits, wall)
        self.planner.plan.pause_after = _STEPS
        self.queue = queue
        self.due = DueJobs()
        self.leases = PlanLeases(self.planner)
        self.reserved = reserved  #: reservations that were granted
        self.over: list[int] = []  #: leases that ended since the last `settle`
        self.gone: list[int] = []  #: planned jobs that wait no more
        self.unplaced: dict[int, str] = {}  #: why a due job that runs elsewhere has no lease
        self.paused: dict[int, Away] = {}  #: leases that were suspended, or resume, since the last `settle`
        self._asks = asks
        self._special_hosts = rules.special_hosts
        self._packing = packing
        self.whole = WholeHosts(packing)
        self._limits = packing.limits
        self._news = news
        self.leases.adopt_all(leases, wall)
        for need, rank, jobs in (*queue.hand_over(), *packing.hand_over()):
            if jobs:
                queue.add(need, rank, jobs, planner=self.planner)
        for gang in queue.hand_over_gangs():
            queue.add_gang(gang)

    # -- what happens to jobs

    def withdrawn(self, job: int) -> None:
        """A planned job waits no more."""
        self.gone.append(job)
        self.unplaced.pop(job, None)
        self.due.forget(job)
        self.whole.forget(job)
        entry = self.planner.plan.entries.get(job)
        if entry is not None and entry.fixed:
            self._news.reserved[job] = None

    def gang_withdrawn(self, offer: GangOffer) -> None:
        """A planned gang waits no more."""
        self.withdrawn(offer.gang)
        self.gone += [job for job in offer.jobs if job != offer.gang]  # if it was due, each is in the plan

    def settle(self, wall: float, rules: Rules | None) -> None:
        """Tell the planner what has ended, and the resources and rules, if they have changed."""
        planner = self.planner
        if self.over or rules is not None:
            self.whole.may_try_again()
        gone, self.gone = self.gone, []
        over, self.over = self.over, []
        paused, self.paused = self.paused, {}
        for job in gone:
            planner.ended(job, wall, complete=False)
            self.due.ended(job)
        for job, away in paused.items():
            self._follow_pause(job, away, wall)
        for number, job in enumerate(over, 1):
            self.leases.ended(job)
            planner.plan.pause_after = (
                _STEPS if number == len(over) else 1
            )  # one full pass, after the last, is enough
            planner.ended(job, wall)
            self.due.ended(job)
        if rules is not None:
            self.queue.site_changed()
            self._special_hosts = rules.special_hosts
            renew(planner, rules, self._limits, wall)
        if over or paused or rules is not None:
            self.leases.find_room(wall)

    def ended(self, job: int) -> None:
        """A lease is over."""
        self.over.append(job)
        self.paused.pop(job, None)

    def _follow_pause(self, job: int, away: Away, wall: float) -> None:
        """A lease was suspended, waits to resume, or waits no more."""
        if job not in self.planner.plan.entries:
            return  # it has ended meanwhile
        if away.resuming:
            submitted = self._asks.submitted(job)
            self.planner.resume(job, wall, left_s=away.left_s, submitted=submitted, serial=job)
        else:
            self.planner.suspend(job, wall, left_s=away.left_s)
            self.due.forget(job)
            self.due.ended(job)

    def limits_differ(self) -> bool:
        """Have limits changed since the plan learned of them?"""
        return capacities(self._limits) != self.planner.plan.limits

    # -- which jobs are in the plan

    def _plan_first(self, wall: float) -> None:
        """Plan the first job of every job class."""
        planner, queue = self.planner, self.queue
        for key in queue.to_plan():
            if planner.unsettled:
                return  # the rest follow when all planned jobs have a place again
            queue.fresh.discard(key)
            head = queue.classes[key].head()
            first = queue.firsts.get(key)
            if head is None or first == head:
                continue
            if first is not None:
                entry = planner.plan.entries.get(first)
                if entry is not None and entry.state == RUNNING:
                    continue  # it is due, and only waits for besteffort jobs to end
                planner.ended(first, wall, complete=False)
                queue.take_out(first)
            if self._limits.stopped(key.need.limits) is not None or (
                key in queue.gangs and gang_grants.is_stopped(self._limits, queue.gangs[key])
            ):
                queue.parked.add(key)
                continue
            queue.put_in(key, head)
            self._plan(head, wall)

    def _plan(self, job: int, wall: float) -> None:
        planner, asks = self.planner, self._asks
        submitted, gang = asks.submitted(job), self.queue.gang_of(job)
        if gang is None:
            ask = asks.waiting(job, self.queue.where[job].need)
        else:
            ask = asks.gang(gang, planner.plan.policy.queues)
        if ask.at is None:
            place = asks.session_place(job) if gang is None else ()
            planner.submit(job, ask, wall, submitted=submitted, serial=job, session_place=place)
            return
        granted = self.reserved.get(job)
        if granted is None and not planner.plan.site.usable and ask.at >= wall:
            # No host is usable yet. It is granted or rejected when one is.
            self.queue.parked.add(self.queue.take_out(job))
            return
        if granted is None:
            entry = planner.submit(job, ask, wall, submitted=submitted, serial=job)
            if entry.fixed:
                where = planner.plan.site.spans(entry.resources)
                self._news.reserved[job] = Reserved(where, entry.alternative)
        else:
            mask = still_there(planner.plan.site, granted.resources)
            entry = planner.keep(
                job, ask, wall, resources=mask, alternative=granted.alternative, submitted=submitted, serial=job
            )
        if job not in planner.plan.entries:
            message = entry.reason.message if entry.reason is not None else "rejected"
            self._news.ended.append((job, "reservation", message))

    def rejection(self, ask: Ask, wall: float) -> str | None:
        """Why a reservation that is asked for now would not be granted, or None. The plan must be settled."""
        planner = self.planner
        planner.tick(wall)
        self._plan_first(wall)
        if not planner.plan.site.usable:
            return None  # it is granted or rejected when a host is usable
        told = len(planner.plan.moved)
        entry = planner.submit(_TRIED, ask, wall, serial=_LAST)
        granted = _TRIED in planner.plan.entries
        planner.ended(_TRIED, wall, complete=False)
        del planner.plan.moved[told:]
        if granted:
            return None
        return entry.reason.message if entry.reason is not None else "rejected"

    # -- which jobs begin

    def work(self) -> bool:
        """Go on with a paused pass. True: all planned jobs have a place."""
        self.planner.work(_STEPS)
        return not self.planner.unsettled

    def begin(self, now: float, wall: float) -> list[Decision]:
        """What begins now, once the plan is settled."""
        planner = self.planner
        decided: list[Decision] = []
        self._unpark()
        if not planner.unsettled:
            planner.tick(wall)
            self._give_notice()
        for begin in self.due.take():
            self._begin(begin, now, decided)
        while not planner.unsettled:
            self._plan_first(wall)
            if planner.unsettled:
                break
            begun = planner.begin(wall)
            if not begun:
                break
            for begin in begun:
                self._begin(begin, now, decided)
        return decided

    def _give_notice(self) -> None:
        """End besteffort jobs so early that they are gone when a reservation begins."""
        planner = self.planner
        exchanged, planner.plan.exchanged = planner.plan.exchanged, []
        for job in exchanged:
            if (entry := planner.plan.reserved.get(job)) is not None:
                where = planner.plan.site.spans(entry.resources)
                self._news.reserved[job] = Reserved(where, entry.alternative)
        noticed, planner.plan.noticed = planner.plan.noticed, []
        for victim, job, at in noticed:
            if victim in self.leases.jobs:
                self._news.preempted.append(Preempted(victim, job, at=at))
            elif victim in planner.plan.entries:
                self._put_back(victim)
                self.queue.fresh.add(self.queue.where[victim])

    def _begin(self, begin: Begin, now: float, decided: list[Decision]) -> None:
        """Lease a due job, unless besteffort jobs must end first."""
        planner, queue, leased = self.planner, self.queue, self.leases.jobs
        entry = begin.entry
        job = entry.id
        if planner.plan.entries.get(job) is not entry:
            return  # it was put back meanwhile
        victims = {victim for victim in begin.victims if victim in planner.plan.entries}
        for victim in victims - leased:
            self._put_back(victim)
            queue.fresh.add(queue.where[victim])
        victims &= leased
        if victims:
            self.due.block(begin, victims)
            self._news.preempted.extend(Preempted(victim, job) for victim in victims)
            return
        if job in leased:
            self._news.resumed.append(job)  # it kept everything but its cores
            return
        if begin.members:
            self._begin_gang(begin, now, decided)
            return
        need = queue.where[job].need
        gives, host = given(planner.plan, entry, need)
        if entry.fixed:
            granted = self.reserved.get(job)
            ids = ids_of(granted.resources) if granted is not None else []
            gives = with_promise(planner.plan, entry, gives, ids)
        try:
            at = self._runs_at(job)
        except NotFound as error:
            self.unplaced[job] = error.message
            self.due.stick(Begin(entry, []))
            return
        if at is not None:
            gives, host = only_held(gives), at or host
        known = host is not None and self._takes(host, forced=entry.ask.force_host)
        if host is not None and known and self._kept(need, host):
            # It must not hold resources while it waits for a limit that no plan foresees.
            self._put_back(job)
            queue.parked.add(queue.where[job])
            return
        if host is None or not known or not self._has_room(host, gives.size):
            if at:
                self.unplaced[job] = f"its command runs on {at}, which is {'full' if known else 'away'}"
            self.due.stick(Begin(entry, []))
            return
        if self._waits_for_whole_hosts(Begin(entry, []), [(job, gives)]):
            return
        self.unplaced.pop(job, None)
        queue.leave(job)
        takes = Need(gives.size, need.limits, need.terms, need.pool, need.walltime_s)
        if at == "":
            self._packing.adopt_lease(host, takes)
            seat = None
        else:
            seat = self._packing.grant(host, takes, now)
        decided.append((Placed(job, host, seat, gives),))
        leased.add(job)

    def _begin_gang(self, begin: Begin, now: float, decided: list[Decision]) -> None:
        """Lease all members of a due gang in one decision, or none."""
        queue, gang = self.queue, begin.entry.id
        offer = queue.gang_of(gang)
        assert offer is not None
        waits = Begin(begin.entry, [], begin.members)
        try:
            grants = gang_grants.grants_of(self.planner.plan, begin, offer, self._runs_at)
        except NotFound as error:
            self.unplaced[gang] = error.message
            self.due.stick(waits)
            return
        if gang_grants.are_kept(self._limits, grants):
            self._put_back(gang)
            queue.parked.add(queue.where[gang])
            return
        forced = {member.id: member.ask.force_host for member in begin.members}
        for each in grants:
            known = each.host is not None and self._takes(each.host, forced=forced[each.job])
            if each.host is None or not known or not self._has_room(each.host, each.need.size):
                self.unplaced[gang] = f"job {each.job} begins on {each.host}, which is full or away"
                self.due.stick(waits)
                return
        if self._waits_for_whole_hosts(waits, [(each.job, each.gives) for each in grants]):
            return
        self.unplaced.pop(gang, None)
        placed = []
        for each in grants:
            assert each.host is not None
            queue.leave(each.job)
            seat = None
            if each.at == "":
                self._packing.adopt_lease(each.host, each.need)
            else:
                seat = self._packing.grant(each.host, each.need, now)
            placed.append(Placed(each.job, each.host, seat, each.gives))
            self.leases.jobs.add(each.job)
        decided.append(tuple(placed))

    def _waits_for_whole_hosts(self, begin: Begin, grants: list[tuple[int, Given]]) -> bool:
        """Must a due job, or gang, wait until hosts that it has provisioned are empty? If not, it takes them."""
        job = begin.entry.id
        hosts = [host for each, gives in grants if self._asks.provisions(each) for host in whole_of(gives)]
        if not hosts or self.whole.take(job, hosts):
            return False
        if self.whole.try_again(job) and not begin.entry.fixed:
            self._put_back(job)  # perhaps others are free
            self.queue.fresh.add(self.queue.where[job])
            return True
        self.unplaced[job] = self.whole.wait(job, hosts)
        self.due.stick(begin)
        return True

    def _runs_at(self, job: int) -> str | None:
        """The host that its command runs on though its resources are elsewhere; empty: it has none to run. None:
        it runs on its resources. Raises `NotFound` if nobody said which host that is."""
        types = self._asks.types(job)
        if "noop" in types:
            return ""
        for kind in ELSEWHERE if types else ():
            if kind in types:
                host = self._special_hosts.get(kind, "")
                if not host:
                    raise NotFound(f"{kind}_host is not set, and {kind} jobs run there", hint=f"set {kind}_host")
                return host
        return None

    def _put_back(self, job: int) -> None:
        """A due job or gang without a lease waits again. The caller must mark its job class as fresh or parked."""
        gang = self.queue.gang_of(job)
        for each in (job,) if gang is None else gang.jobs:
            self.planner.ended(each, self.planner.plan.now, complete=False)
        first = job if gang is None else gang.gang
        if self.queue.firsts.get(self.queue.where[first]) == first:
            self.queue.take_out(first)
        self.due.forget(first)
        self.whole.forget(first)
        for each in (job,) if gang is None else gang.jobs:
            self.due.ended(each)

    def _unpark(self) -> None:
        """Plan job classes again that a limit does not keep any more."""
        queue = self.queue
        if queue.parked:
            hosts = self._packing.host_names()
            for key in queue.parked:
                if key in queue.gangs:
                    if not gang_grants.is_kept(self._limits, queue.gangs[key]):
                        queue.fresh.add(key)
                elif not all(self._kept(key.need, host) for host in hosts):
                    queue.fresh.add(key)

    def _kept(self, need: Need, host: str) -> bool:
        """Does a limit keep a job of this need from beginning on this host now?"""
        uses = need.limits
        return bool(uses) and (self._limits.stopped(uses) is not None or bool(self._limits.missing(uses, host)))

    def _takes(self, host: str, *, forced: str) -> bool:
        """May a job begin on this host, which it perhaps forces?"""
        return host in self._packing.host_names() or (host == forced and self._packing.may_force(host))

    def _has_room(self, host: str, size: Size) -> bool:
        """Is there memory and the like beside jobs that take no core, which are in no plan?"""
        figures = self.planner.plan.site.figures.get(host, HostFigures())
        _cpus, mem, disk, gpus, _number = self._packing.in_use(host)
        return (
            (bool(size.cpus) or self._packing.takes_more(host))
            and (not size.mem or figures.mem is None or mem + size.mem <= figures.mem)
            and (not size.disk or figures.disk is None or disk + size.disk <= figures.disk)
            and (not size.gpus or gpus + size.gpus <= figures.gpus)
        )

    # -- news

    @property
    def has_news(self) -> bool:
        planner = self.planner
        spent = planner.plan.quotas is not None and planner.plan.quotas.newly_spent
        return bool(planner.plan.moved or planner.plan.expired or planner.plan.orphans or spent)

    def tell(self, news: News) -> None:
        """Add what the planner decided since the last time."""
        planner = self.planner
        news.moved.extend(planner.plan.moved)
        planner.plan.moved.clear()
        for id in planner.plan.expired:
            entry = planner.plan.entries.get(id)
            late = entry is not None and entry.ask.types.deadline is not None
            code = "reservation" if entry is not None and entry.fixed else "expired"
            said = "it could not end before its deadline" if late else "it did not begin in time"
            lacks = count_missing(planner.plan, entry) if entry is not None and entry.fixed else ""
            said += f": {lacks}" if lacks else ""
            news.ended.append((id, code, said))
        planner.plan.expired.clear()
        news.preempted.extend(Preempted(job, gone, "container") for job, gone in planner.plan.orphans)
        planner.plan.orphans.clear()
        if planner.plan.quotas is not None and planner.plan.quotas.newly_spent:
            planner.plan.quotas.newly_spent = False
            news.spent.update(planner.plan.quotas.spent)
