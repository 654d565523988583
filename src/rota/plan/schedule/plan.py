"""The plan as data: which job holds which resources from when to when, and the few operations that change it.

Nothing here decides. `plan.planner.search` finds a place for a job, `plan.planner.backfill` goes through the
waiting jobs, and `plan.planner.planner` is the interface to all of it.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Mapping
from heapq import heapify, heappush
from math import inf
from typing import Annotated, NamedTuple

from rota.plan.ask import Ask
from rota.plan.language.request import ResourceGroup
from rota.plan.policy.decay import Usage
from rota.plan.policy.policy import PATIENCE_S, Policy, Queue
from rota.plan.policy.priority_caps import Cap
from rota.plan.policy.quotas import Quotas
from rota.plan.reasons import Moved
from rota.plan.schedule import waiting_gang
from rota.plan.schedule.plan_entry import RUNNING, WAITING, PlanEntry, by_rank
from rota.plan.schedule.priority_class import PriorityClass
from rota.plan.schedule.suspended_job import SuspendedJob
from rota.plan.site.availability import RENEW_S, Closure, closing, closures
from rota.plan.site.resources import Site
from rota.plan.snapshot import AT_REST, CACHE, state
from rota.plan.timeline.gang_shape import GangTerms
from rota.plan.timeline.ledger import Ledger
from rota.plan.timeline.search_bounds import Bounds
from rota.plan.timeline.shapes import Family, Shape
from rota.plan.timeline.slots import CountedSlots, Slots

#: Where a job was planned: start, end, resources, container, alternative.
Place = tuple[PlanEntry, float, float, int, int, int]


class Pass(NamedTuple):
    """One walk through the waiting jobs after an event. It can be paused between any two steps."""

    steps: Iterator[None]
    now: float  #: the time of the event
    cause: str  #: why starts that it moves were moved, in words
    gentle: bool  #: it only lets jobs start earlier: every job has a place though the pass is paused


@state
class Plan:
    """The jobs that run or wait on one site, and the resources that each holds."""

    entries: dict[int, PlanEntry]
    site: Site
    policy: Policy
    quotas: Quotas | None
    counted: bool  #: resources are not told apart, only their number matters
    usage: Usage
    limits: Mapping[str, int]
    now: float
    patience_s: float  #: how long a reservation waits for resources that are missing
    gang_patience_s: float  #: how long a gang waits before it has a reservation, whatever the policy
    caps: tuple[Cap, ...]  #: on the priority of outsiders on machines of groups
    serial: int
    ranked_at: float

    # -- what is held
    slots: Slots
    inside: dict[int, Slots]  #: container → what is free inside
    ledger: Ledger
    closures: tuple[Closure, ...]  #: when which resources may not be used
    closing: tuple[tuple[float, int], ...]  #: which resources close next, so that only a walltime fits before it
    renew_at: float  #: when closures must be computed again
    sharing: dict[int, PlanEntry]  #: jobs that may share resources with others
    overlapping: set[int]  #: jobs that hold what another job holds, as after an overrun
    bounds: Annotated[dict[Family, Bounds], CACHE]
    shapes: dict[tuple[ResourceGroup, ...], Shape]  #: what each request means here
    choosy_shapes: dict[GangTerms, Shape]  #: the same for gangs, and for jobs with preferences about hosts

    # -- which jobs wait, run or begin
    classes: list[PriorityClass]  #: highest priority first
    besteffort_class: PriorityClass  #: waiting besteffort jobs; they are planned after all others
    running: dict[int, PlanEntry]
    running_besteffort: dict[int, PlanEntry]
    #: while besteffort jobs are planned, the ones that have a place already
    placed_besteffort: list[PlanEntry]
    suspended: dict[int, SuspendedJob]  #: including jobs that wait to resume
    reserved: dict[int, PlanEntry]  #: granted reservations that have not begun
    starting: list[PlanEntry]  #: chosen to begin at once
    late: dict[int, PlanEntry]  #: due, but resources are missing or parents still run
    children: dict[int, list[PlanEntry]]
    patient: PlanEntry | None  #: the gang with a reservation, where backfilling is not conservative
    gang_of: dict[int, int]  #: member of a waiting gang → the id of that gang's entry
    inner_jobs: dict[str, list[PlanEntry]]  #: id or name of a container → the jobs that ask for it

    # -- heaps of moments; outdated items stay in them and are skipped
    starts: list[tuple[float, int]]  #: planned starts
    overdue: list[tuple[float, int]]  #: expected ends of running jobs
    expiries: list[tuple[float, int]]  #: when a waiting job gives up
    notices: list[tuple[float, int]]  #: when to look for jobs in the way of which reservation
    recheck_times: list[float]  #: when a job without a planned start may begin

    # -- news
    moved: list[Moved]
    expired: list[int]  #: waiting jobs whose time is over
    orphans: list[tuple[int, int]]  #: running jobs whose container ended, and that container
    #: besteffort jobs to end now, the reservation that needs their resources, and its start
    noticed: list[tuple[int, int, float]]
    notified: set[int]  #: reservations for which notice was given: they keep their resources
    exchanged: list[int]  #: reservations that took other resources to preempt fewer jobs

    # -- the event under way
    promised: dict[int, float]  #: the starts of jobs that were unplanned during this event
    vacated: list[tuple[PlanEntry, float, float, int]]  #: the places that they had
    pending: set[int]  #: waiting jobs that are about to be planned
    pause_after: int | None  #: a pass is paused after so many steps, until `work` is called; None: never
    paused: Annotated[Pass | None, AT_REST]  #: the pass that is under way
    given_up: bool  #: a gentle pass was given up before it had visited every job

    def __init__(
        self,
        site: Site,
        policy: Policy,
        *,
        quotas: Quotas | None = None,
        now: float = 0.0,
        counted: bool = False,
        usage: Usage | Mapping[str, float] | None = None,
        limits: Mapping[str, int] | None = None,
    ) -> None:
        self.site, self.policy, self.quotas, self.counted = site, policy, quotas, counted
        self.now = self.ranked_at = now
        self.patience_s = self.gang_patience_s = PATIENCE_S
        self.caps = ()
        self.serial = 0
        if isinstance(usage, Usage):
            self.usage = usage
        else:
            self.usage = Usage(policy.fair_share.half_life_s, window_s=policy.fair_share.window_s)
            for user, seconds in (usage or {}).items():
                self.usage.add(user, "", seconds, seconds, now)
        self.limits = dict(limits or {})
        self.overlapping = set()
        self.entries, self.running, self.running_besteffort, self.suspended = {}, {}, {}, {}
        self.reserved, self.late, self.children, self.inner_jobs, self.gang_of = {}, {}, {}, {}, {}
        self.classes, self.besteffort_class = [], PriorityClass(-inf, "conservative")
        self.placed_besteffort, self.starting = [], []
        self.starts, self.overdue, self.expiries, self.notices, self.recheck_times = [], [], [], [], []
        self.moved, self.expired, self.orphans = [], [], []
        self.noticed, self.notified, self.exchanged = [], set(), []
        self.promised, self.vacated, self.pending = {}, [], set()
        self.pause_after = self.paused = None
        self.given_up = False
        self.patient = None
        self.empty()

    @property
    def working(self) -> bool:
        """Is a pass paused?"""
        return self.paused is not None

    @property
    def unsettled(self) -> bool:
        """Is a pass paused in which some jobs have no place yet?"""
        return self.paused is not None and not self.paused.gentle

    def empty(self) -> None:
        """An empty plan over the present site."""
        site = self.site
        self.slots = CountedSlots(site.count, self.now) if self.counted else Slots(site.everything, self.now)
        self.closures = () if self.counted else closures(site, self.now)
        self.closing = closing(self.closures, self.now)
        self.renew_at = self.now + RENEW_S if site.hours else inf
        self.close(self.slots)
        self.ledger = Ledger(site, self.limits)
        self.inside, self.sharing, self.bounds, self.shapes, self.choosy_shapes = {}, {}, {}, {}, {}

    def close(self, slots: Slots, within: int = -1, *, since: float = -inf, until: float = inf) -> None:
        """Take from these slots what closures forbid."""
        for start, end, mask in self.closures:
            slots.cover(mask & within, max(start, since, self.now), min(end, until))

    def closed_at(self, moment: float) -> int:
        """The resources that a closure forbids at this moment."""
        found = 0
        for start, end, mask in self.closures:
            if start <= moment < end:
                found |= mask
        return found

    def queue(self, name: str) -> Queue:
        return self.policy.queues.get(name) or Queue()

    def class_of(self, ask: Ask) -> PriorityClass:
        queue = self.queue(ask.queue)
        for each in self.classes:
            if each.priority == queue.priority:
                return each
        found = PriorityClass(queue.priority, queue.backfill)
        insort(self.classes, found, key=lambda each: -each.priority)
        return found

    def plans_all(self, entry: PlanEntry) -> bool:
        """Does each job of its queue have a planned start?"""
        return not entry.ask.types.besteffort and self.class_of(entry.ask).backfill == "conservative"

    # -- what is held

    def is_awake(self, entry: PlanEntry) -> bool:
        """Are all hosts of its resources awake?"""
        return self.counted or not entry.resources & self.site.asleep

    def slots_of(self, entry: PlanEntry) -> Slots | None:
        """The slots that its resources are taken from; None: its container is gone."""
        return self.inside.get(entry.home) if entry.home else self.slots

    def hold(self, entry: PlanEntry, since: float | None = None) -> None:
        """Take its resources, quotas and amounts. `since`: it runs or is fixed, and holds them from then on."""
        start, end = entry.start, entry.end
        assert start is not None
        assert end is not None
        begin = start if since is None else since
        types = entry.ask.types
        if entry.team is not None:
            waiting_gang.seat(entry, self.ledger)
        if not types.besteffort:
            slots = self.slots_of(entry)
            if slots is not None:
                if entry.special:
                    self.sharing[entry.id] = entry
                if since is not None and not self.counted:
                    # Another job may still run there.
                    self.hold_regardless(entry, slots, begin, end)
                elif entry.special:
                    slots.cover(entry.resources, begin, end)
                else:
                    slots.take(entry.resources, begin, end)
        if entry.counted is not None and self.quotas is not None:
            if entry.team is not None:
                waiting_gang.count(entry, self.quotas)
            else:
                number = entry.resources if self.counted else entry.resources.bit_count()
                self.quotas.take(entry.counted, entry.id, number, start, end)
        if entry.taking is not None or entry.everywhere:
            self.take_amounts(entry)
        if entry.id in self.suspended:
            self.hold_ballast(entry)

    def take_amounts(self, entry: PlanEntry) -> None:
        assert entry.start is not None
        assert entry.end is not None
        span, low = (entry.start, entry.end), entry.ask.types.besteffort
        if entry.team is not None:
            waiting_gang.take_amounts(entry, self.ledger, span)
            return
        self.ledger.take(entry.id, entry.taking, entry.everywhere, entry.resources, span, low=low)

    def hold_regardless(self, entry: PlanEntry, slots: Slots, start: float, end: float) -> None:
        """Hold its resources though they may not be free."""
        if start < end and slots.common(start, end) & entry.resources != entry.resources:
            self.overlapping.add(entry.id)
        slots.cover(entry.resources, start, end)

    def _uncover(self, entry: PlanEntry, slots: Slots, start: float, end: float) -> None:
        """Free its resources, except what other jobs hold too."""
        home = self.entries.get(entry.home)
        if home is not None and home.start is not None and home.end is not None:
            start, end = max(start, home.start), min(end, home.end)
        slots.uncover(entry.resources, start, end)
        self.close(slots, entry.resources, since=start, until=end)
        for other in (*self.running.values(), *self.reserved.values(), *self.sharing.values()):
            if other is entry or other.home != entry.home or other.ask.types.besteffort:
                continue
            if other.start is not None and other.end is not None and other.resources & entry.resources:
                slots.cover(other.resources & entry.resources, max(other.start, start), min(other.end, end))

    def drop(self, entry: PlanEntry, since: float) -> None:
        """Free its resources, quotas and amounts from this moment on."""
        start, end = entry.start, entry.end
        if start is None or end is None:
            return
        begin = max(start, since)
        slots = self.slots_of(entry)
        if slots is not None and not entry.ask.types.besteffort:
            kept = entry.state == RUNNING or entry.fixed
            if entry.special or (kept and not self.counted and (self.overlapping or entry.home)):
                self.sharing.pop(entry.id, None)
                self._uncover(entry, slots, begin, end)
            else:
                slots.give(entry.resources, begin, end)
            if slots is self.slots:
                self.bounds.clear()
        self.uncount(entry)
        if entry.team is not None:
            waiting_gang.give_amounts(entry, self.ledger)
        self.ledger.give(entry.id)

    def uncount(self, entry: PlanEntry) -> None:
        """Its quotas count it no longer."""
        if entry.counted is not None and self.quotas is not None:
            if entry.team is not None:
                waiting_gang.uncount(entry, self.quotas)
            else:
                self.quotas.give(entry.counted, entry.id)

    def unplan(self, entry: PlanEntry) -> None:
        """Remove the planned start of a waiting job, and of the jobs planned inside it."""
        if entry.start is None or entry.end is None:
            return
        if not entry.ask.types.besteffort:
            self.promised.setdefault(entry.id, entry.start)
            self.vacated.append((entry, entry.start, entry.end, entry.resources))
        for inner in self.inside_of(entry):
            if inner.state == WAITING:
                self.unplan(inner)
                inner.home = 0
        self.drop(entry, since=self.now)
        entry.start = entry.end = None
        entry.resources = 0
        if entry.id in self.suspended:
            self.hold_ballast(entry)
        self.inside.pop(entry.id, None)
        if entry in self.starting:
            self.starting.remove(entry)
            if not self.plans_all(entry):
                self.class_of(entry.ask).add(entry)

    def swap(self, entry: PlanEntry, resources: int) -> None:
        """Give a job that begins now other resources; the old ones count as vacated."""
        if resources != entry.resources and entry.end is not None:
            self.vacated.append((entry, self.now, entry.end, entry.resources))
            entry.resources = resources

    def restore(self, places: list[Place]) -> None:
        """Put jobs back to their old places, which are free."""
        for entry, start, end, resources, home, alternative in places:
            entry.start, entry.end, entry.resources = start, end, resources
            entry.home, entry.alternative = home, alternative
            self.hold(entry)
            if entry.ask.types.container:
                self.open_inside(entry)
            self.schedule_start(entry)

    def schedule_start(self, entry: PlanEntry) -> None:
        assert entry.start is not None
        if len(self.starts) > 1000 + 4 * len(self.entries):
            there = self.entries.values()
            self.starts = [
                (each.start, each.id) for each in there if each.state == WAITING and each.start is not None
            ]
            heapify(self.starts)
        heappush(self.starts, (entry.start, entry.id))

    # -- containers and dependencies

    def containers(self, name: str) -> list[PlanEntry]:
        """The container of this id, or all of this name: the planned ones by start, or if none is, the others."""
        if name.isdigit() and (found := self.entries.get(int(name))) is not None and found.ask.types.container:
            return [found]
        open = [entry for id in self.inside if (entry := self.entries[id]).ask.name == name]
        if open:
            return sorted(open, key=lambda entry: (entry.start or 0.0, entry.id))
        return [entry for entry in self.entries.values() if entry.ask.types.container and entry.ask.name == name]

    def open_inside(self, entry: PlanEntry) -> None:
        """Offer all resources of a container to its inner jobs."""
        assert entry.start is not None
        assert entry.end is not None
        slots = self.inside[entry.id] = Slots.within(entry.resources, entry.start, entry.end)
        self.close(slots, since=entry.start)

    def add_inner(self, entry: PlanEntry) -> None:
        """Remember that this job asks for a container."""
        self.inner_jobs.setdefault(entry.ask.types.inner, []).append(entry)

    def watch_end(self, entry: PlanEntry) -> None:
        """Let `tick` look at the job when its expected end has come."""
        if entry.end is not None:
            heappush(self.overdue, (entry.end, entry.id))

    def inside_of(self, entry: PlanEntry) -> list[PlanEntry]:
        """The jobs that have a place inside this container."""
        if not entry.ask.types.container:
            return []
        return [inner for inner in self.asked_inside(entry) if inner.home == entry.id and inner.start is not None]

    def asked_inside(self, entry: PlanEntry) -> list[PlanEntry]:
        names = {str(entry.id): None, entry.ask.name: None}
        return [inner for name in names if name for inner in self.inner_jobs.get(name, ())]

    def planned_inside(self, entry: PlanEntry) -> list[Place]:
        """The places of waiting jobs inside a container, outer jobs first."""
        found = []
        for inner in self.inside_of(entry):
            if inner.state == WAITING and inner.start is not None and inner.end is not None:
                found.append((inner, inner.start, inner.end, inner.resources, inner.home, inner.alternative))
                found += self.planned_inside(inner)
        return found

    def entry_of(self, job: int) -> PlanEntry | None:
        """The entry of a job; of a member of a waiting gang, that of the gang."""
        found = self.entries.get(job)
        return self.entries.get(self.gang_of[job]) if found is None and job in self.gang_of else found

    def dependents(self, entry: PlanEntry) -> list[PlanEntry]:
        """Waiting jobs whose place depends on that of this job, in order of rank."""
        if entry.team is None and entry.id not in self.children and not entry.ask.types.container:
            return []
        jobs = entry.jobs
        found = [child for job in jobs for child in self.children.get(job, ()) if child.state == WAITING]
        if entry.ask.types.container:
            found += [each for each in self.asked_inside(entry) if each.state == WAITING and each not in found]
        return sorted(found, key=by_rank)

    def forget(self, entry: PlanEntry) -> None:
        """It is in the plan no longer."""
        self.entries.pop(entry.id, None)
        if self.patient is entry:
            self.patient = None
        if entry.team is not None:
            for job in entry.jobs:
                self.gang_of.pop(job, None)

    def remove_ties(self, entry: PlanEntry) -> None:
        """Forget its parents and its container."""
        siblings = self.inner_jobs.get(entry.ask.types.inner)
        if siblings is not None and entry in siblings:
            siblings.remove(entry)
            if not siblings:
                del self.inner_jobs[entry.ask.types.inner]
        for parent in entry.after:
            children = self.children.get(parent)
            if children is not None and entry in children:
                children.remove(entry)

    def hold_ballast(self, entry: PlanEntry) -> None:
        """A suspended job keeps its memory, disk, GPUs and limit units until it begins again."""
        pinned = self.suspended[entry.id]
        self.ledger.give(~entry.id)
        until = entry.start if entry.start is not None else pinned.until
        if until > self.now and (entry.taking is not None or entry.everywhere):
            span = (self.now, until)
            self.ledger.take(~entry.id, entry.taking, entry.everywhere, pinned.mask, span)
