"""The site or its rules change: what runs stays, everything else is planned again in order of rank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf

from rota.plan.planner import backfill, passes, ranking, search, suspension
from rota.plan.policy.decay import Usage
from rota.plan.policy.policy import Policy
from rota.plan.policy.quotas import Quotas
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import WAITING, PlanEntry
from rota.plan.site.resources import Site


def change_site(plan: Plan, site: Site, now: float) -> None:
    """Resources came, went or changed: what runs stays, everything else is planned again in order of rank."""
    passes.finish(plan)
    plan.now = now
    staying = [*plan.running.values(), *plan.reserved.values()]
    staying.sort(key=lambda entry: _depth(plan, entry))  # containers before their inner jobs
    ids = {entry.id: plan.site.ids(entry.resources) for entry in staying} if not plan.counted else {}
    counted: list[PlanEntry] = []
    for entry in plan.entries.values():
        if entry.counted is not None and entry.start is not None and plan.quotas is not None:
            counted.append(entry)
        if entry.state == WAITING and not entry.fixed:
            if entry.start is not None and entry.end is not None and not entry.ask.types.besteffort:
                plan.promised.setdefault(entry.id, entry.start)
            entry.start = entry.end = None
            entry.resources = entry.home = 0
    plan.site = site
    _unchoose(plan)
    plan.empty()
    if plan.quotas is not None:
        kept = {entry.id for entry in staying}
        for entry in counted:
            if entry.id in kept:
                plan.uncount(entry)
        counted = [entry for entry in counted if entry.id not in kept]
    for entry in staying:
        if not plan.counted:
            entry.resources = site.mask(id for id in ids[entry.id] if site.knows(id))
        search.ready(plan, entry)
        if entry.start is not None and entry.end is not None:
            plan.hold(entry, since=max(entry.start, now))
            if entry.ask.types.container and not plan.counted:
                plan.open_inside(entry)
    suspension.site_changed(plan)
    for pinned in plan.suspended.values():
        search.ready(plan, pinned.entry)
        plan.hold_ballast(pinned.entry)
    passes.run(plan, _all_again(plan, counted, now), now, "the resources changed")


def _all_again(plan: Plan, counted: list[PlanEntry], now: float) -> Iterator[None]:
    """Plan all waiting jobs on the new site. Before, give back what their old places counted in quotas."""
    waiting = [entry for entry in plan.entries.values() if entry.state == WAITING and not entry.fixed]
    for number, entry in enumerate(counted, 1):
        plan.uncount(entry)
        if number % 16 == 0:
            yield
    for number, entry in enumerate(waiting, 1):
        search.ready(plan, entry)
        if number % 16 == 0:
            yield
    if plan.caps:
        ranking.rank_again(plan, now)
    yield from backfill.replan(plan, now)


def _depth(plan: Plan, entry: PlanEntry) -> int:
    """How many containers it is nested in."""
    depth = 0
    while entry.home:
        entry, depth = plan.entries[entry.home], depth + 1
    return depth


def _unchoose(plan: Plan) -> None:
    """Let the jobs that were about to begin wait again."""
    for entry in plan.starting:
        klass = plan.besteffort_class if entry.ask.types.besteffort else plan.class_of(entry.ask)
        if entry not in klass.jobs:
            klass.add(entry)
    plan.starting = []


def change_rules(
    plan: Plan,
    site: Site,
    now: float,
    *,
    policy: Policy,
    quotas: Quotas | None,
    limits: Mapping[str, int],
    usage: Usage | None = None,
) -> None:
    """Queues, quotas, limits or resources changed: what runs stays, all others are planned again.

    `usage`: the use of ended jobs, if it must be replaced.
    """
    passes.finish(plan)
    _unchoose(plan)
    waiting = [entry for klass in (*plan.classes, plan.besteffort_class) for entry in klass.jobs]
    for entry in plan.entries.values():
        entry.counted = None  # the old quotas are dropped with all that they counted
    if quotas is not None and plan.quotas is not None:
        quotas.remember(plan.quotas.spent)
    plan.policy, plan.quotas, plan.limits = policy, quotas, dict(limits)
    plan.classes, plan.besteffort_class.jobs = [], []
    if usage is not None:
        plan.usage = usage
        for entry in plan.running.values():
            entry.charged = -inf
    ranking.charge_running(plan, now)
    targets = ranking.share_targets(plan)
    for entry in waiting:
        entry.rank = ranking.rank_of(plan, entry, now, targets)
        (plan.besteffort_class if entry.ask.types.besteffort else plan.class_of(entry.ask)).add(entry)
    change_site(plan, site, now)
