"""The planner: one plan, and everything that can happen to it.

It changes only what an event touches. It has no clock: every call says what time it is. Its time never runs back:
an earlier time counts as the latest one. The engine and the simulator use the same code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rota.plan.ask import Ask, Member, gang_ask
from rota.plan.planner import (
    ending,
    extension,
    holding,
    passes,
    site_changes,
    starting,
    submission,
    suspension,
    timers,
)
from rota.plan.policy.decay import Usage
from rota.plan.policy.policy import Policy
from rota.plan.policy.quotas import Quotas
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import Begin, PlanEntry
from rota.plan.site.resources import Site
from rota.plan.snapshot import snapshot, state


@state
class Planner:
    """The interface to a plan over the resources of one site: all changes go through it."""

    plan: Plan

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
        """`counted`: resources are not told apart, only their number matters."""
        self.plan = Plan(site, policy, quotas=quotas, now=now, counted=counted, usage=usage, limits=limits)

    # -- jobs come and go

    def submit(
        self,
        id: int,
        ask: Ask,
        now: float,
        *,
        after: Iterable[int] = (),
        submitted: float | None = None,
        serial: int = 0,
        session_place: tuple[int, ...] = (),
    ) -> PlanEntry:
        """A new job: it is planned behind all jobs of better rank, and jobs of worse rank after it.

        `submitted` and `serial` (the order of jobs submitted at one moment) default to those of this call.
        `session_place`: its place in its session of a pipeline, which counts before `serial`.
        """
        now = self._reached(now)
        return submission.submit(
            self.plan, id, ask, now, after=after, submitted=submitted, serial=serial, session_place=session_place
        )

    def submit_gang(
        self,
        members: Sequence[Member],
        now: float,
        *,
        same: str = "",
        share: bool = False,
        after: Iterable[int] = (),
        submitted: float | None = None,
        serial: int = 0,
    ) -> PlanEntry:
        """A new gang: one entry, whose id is the lowest of its members', and which begins whole.

        `same`: a property with one value on all its resources. `share`: members may share hosts. Until it begins,
        `ended` with the id of the gang takes it out; then each member is a job of its own.
        """
        queues = {name: queue.priority for name, queue in self.plan.policy.queues.items()}
        ask = gang_ask(members, queues=queues, same=same, share=share)
        gang = min(member.job for member in members)
        return self.submit(gang, ask, now, after=after, submitted=submitted, serial=serial)

    def modify(self, id: int, ask: Ask, now: float) -> PlanEntry:
        """A waiting job asks for something else: it leaves, and comes again with its old time of submission."""
        return submission.modify(self.plan, id, ask, self._reached(now))

    def adopt(
        self,
        id: int,
        ask: Ask,
        *,
        start: float,
        resources: int,
        now: float,
        end: float | None = None,
        gang: int = 0,
    ) -> PlanEntry:
        """A job that runs already; `end`: until then, if that is not what it asked for. `gang`: it is a member."""
        now = self._reached(now)
        return submission.adopt(self.plan, id, ask, start=start, resources=resources, now=now, end=end, gang=gang)

    def adopt_suspended(
        self, id: int, ask: Ask, *, ids: Iterable[int], left_s: float, hard: bool, since: float, now: float
    ) -> None:
        """A job that is suspended already; `ids`: the resources that it comes back to."""
        now = self._reached(now)
        suspension.adopt(self.plan, id, ask, ids=ids, left_s=left_s, hard=hard, since=since, now=now)

    def keep(
        self, id: int, ask: Ask, now: float, *, resources: int, alternative: int, submitted: float, serial: int
    ) -> PlanEntry:
        """A reservation that was granted before this plan existed keeps its time and its resources.

        If its time is over it is not in the plan afterwards, and `reason` of the entry says so.
        """
        return submission.keep(
            self.plan,
            id,
            ask,
            self._reached(now),
            resources=resources,
            alternative=alternative,
            submitted=submitted,
            serial=serial,
        )

    def ended(self, id: int, now: float, *, complete: bool = True, again: bool = False) -> None:
        """A job ended, or waits no more; others may begin earlier.

        `again`: it is about to be submitted once more, so its dependents go on waiting.
        """
        ending.ended(self.plan, id, self._reached(now), complete=complete, again=again)

    def hold(self, id: int, until: float, now: float, *, complete: bool) -> None:
        """The run of a job is over: its dependents may begin. It keeps its resources until it has `ended`."""
        holding.hold(self.plan, id, until, self._reached(now), complete=complete)

    def suspend(self, id: int, now: float, *, left_s: float) -> None:
        """A running job gives up its cores and keeps the rest; `left_s`: so long it will run when it goes on."""
        suspension.suspend(self.plan, id, self._reached(now), left_s=left_s)

    def resume(self, id: int, now: float, *, left_s: float, submitted: float, serial: int) -> None:
        """It is queued by its rank, for exactly its cores; `begin` tells when it may go on."""
        now = self._reached(now)
        suspension.resume(self.plan, id, now, left_s=left_s, submitted=submitted, serial=serial)

    def move_end(self, id: int, end: float, now: float, *, force: bool = False) -> float:
        """Let a running job end then, or as late as no promise to others is broken; until when it may go on."""
        return extension.move_end(self.plan, id, end, self._reached(now), force=force)

    # -- the site and its rules change

    def change_site(self, site: Site, now: float) -> None:
        """Resources came, went or changed: what runs stays, everything else is planned again in order of rank."""
        site_changes.change_site(self.plan, site, self._reached(now))

    def change_rules(
        self,
        site: Site,
        now: float,
        *,
        policy: Policy,
        quotas: Quotas | None,
        limits: Mapping[str, int],
        usage: Usage | None = None,
    ) -> None:
        """Queues, quotas, limits or resources changed: what runs stays, all others are planned again."""
        now = self._reached(now)
        site_changes.change_rules(self.plan, site, now, policy=policy, quotas=quotas, limits=limits, usage=usage)

    # -- time passes

    def _reached(self, now: float) -> float:
        """The plan's time. It never runs back, since running jobs hold nothing before their start."""
        return now if now > self.plan.now else self.plan.now

    def tick(self, now: float) -> None:
        """Time has passed: jobs past their expected end keep what they hold, and ranks may have changed."""
        timers.tick(self.plan, self._reached(now))

    def begin(self, now: float) -> list[Begin]:
        """Everything that is planned for now begins. A paused pass that may still move jobs is finished first."""
        return starting.begin(self.plan, self._reached(now))

    def next_start(self) -> float | None:
        """The earliest planned start of a job that waits."""
        return starting.next_start(self.plan)

    def next_event(self) -> float | None:
        """When `tick` must be called though nothing happens; None: never."""
        return timers.next_event(self.plan)

    # -- passes (`plan.planner.passes`)

    @property
    def working(self) -> bool:
        """Is a pass paused?"""
        return self.plan.working

    @property
    def unsettled(self) -> bool:
        """Is a pass paused in which some jobs have no place yet?"""
        return self.plan.unsettled

    def work(self, steps: int) -> bool:
        """Go on for so many steps with a pass that was paused. True: there is more to do."""
        return passes.work(self.plan, steps)

    def finish(self) -> None:
        """Carry out what is left of a pass that was paused."""
        passes.finish(self.plan)

    def snapshot(self) -> Planner:
        """An independent planner in the same state, for questions. A paused pass is finished first."""
        self.finish()
        return snapshot(self)
