"""Jobs leave the plan: what they held is free, and jobs that waited for them may begin or never will."""

from __future__ import annotations

from rota.plan.planner import (
    backfill,
    overrun,
    passes,
    ranking,
    starting,
    suspension,
)
from rota.plan.policy.quota_rules import quota_subject
from rota.plan.reasons import Waits
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import BLOCKED, RUNNING, SUSPENDED, WAITING, PlanEntry
from rota.plan.schedule.timesharing import may_share


def ended(plan: Plan, id: int, now: float, *, complete: bool = True, again: bool = False) -> None:
    """A job ended, or waits no more; others may begin earlier.

    `again`: it is about to be submitted once more, so its dependents go on waiting.
    """
    passes.finish(plan)
    plan.now = now
    entry = plan.entries.get(id)
    if entry is None:
        return
    plan.forget(entry)
    freed: list[tuple[float, float]] = []
    if entry.start is not None and entry.end is not None:
        freed.append((max(now, entry.start), entry.end))
        plan.drop(entry, since=now)
    was_running = plan.running.pop(id, None) is not None
    if id in plan.suspended:
        freed += suspension.gone(plan, id, now)
        was_running = was_running or entry.state == SUSPENDED
    plan.running_besteffort.pop(id, None)
    plan.overlapping.discard(id)
    plan.remove_ties(entry)
    if not was_running:
        plan.reserved.pop(id, None)
        plan.notified.discard(id)
        plan.late.pop(id, None)
        if entry in plan.starting:
            plan.starting.remove(entry)
        (plan.besteffort_class if entry.ask.types.besteffort else plan.class_of(entry.ask)).discard(entry)
    elif entry.start is not None:
        width = entry.resources if plan.counted else entry.resources.bit_count()
        if entry.state == RUNNING:
            ranking.charge_rest(plan, entry, now)
        if entry.counted is not None and plan.quotas is not None:
            plan.quotas.spend(entry.counted, quota_subject(entry.ask), width, entry.start, now)
    matters = not again and tell_children(plan, entry, now, complete=complete, ran=was_running)
    _close_container(plan, entry, now)
    plan.slots.forget_before(now)
    if plan.vacated or matters or not entry.ask.types.besteffort:
        freed += [(start, end) for _entry, start, end, _resources in plan.vacated]
        gentle = all(klass.backfill == "conservative" for klass in plan.classes)
        passes.run(plan, backfill.on_freed(plan, freed, now), now, "what it waits for moved", gentle=gentle)
    else:
        passes.settle(plan, now, "what it waits for moved")


def tell_children(plan: Plan, entry: PlanEntry, now: float, *, complete: bool, ran: bool) -> bool:
    """Its dependents may begin, or never will. True: this may let a job begin that is not besteffort."""
    matters = False
    if complete and ran:
        for child in plan.children.pop(entry.id, ()):
            child.after -= {entry.id}
            child.blamed = True
            matters = matters or (child.state == WAITING and not child.ask.types.besteffort)
        return matters
    failed = [entry]
    while failed:  # chains may be long
        parent = failed.pop()
        for child in [child for job in parent.jobs for child in plan.children.pop(job, ())]:
            if child.state != WAITING:
                continue
            plan.late.pop(child.id, None)
            # Without conservative backfill it may have been the job that others waited behind.
            matters = matters or not (child.ask.types.besteffort or plan.plans_all(child))
            starting.leave(plan, child)
            plan.unplan(child)
            child.fixed = False
            child.state = BLOCKED
            child.reason = Waits("dependency_never", f"job {parent.id}, which it waits for, did not complete")
            failed.append(child)
    return matters


def _close_container(plan: Plan, entry: PlanEntry, now: float) -> None:
    """A container ended: jobs that run inside hold their resources themselves from now on."""
    if plan.inside.pop(entry.id, None) is None:
        return
    for each in plan.asked_inside(entry):
        pinned = plan.suspended.get(each.id)
        if pinned is not None and not pinned.mask & ~entry.resources:
            plan.orphans.append((each.id, entry.id))
    for inner in plan.inside_of(entry):
        if inner.state != RUNNING:
            plan.unplan(inner)
        inner.home = 0
        if inner.state == RUNNING:
            plan.orphans.append((inner.id, entry.id))
        if inner.state == RUNNING and inner.end is not None and not inner.ask.types.besteffort:
            for other in overrun.in_the_way(plan, inner, now, inner.end):
                if not other.home and other.resources & inner.resources and not may_share(inner.ask, other.ask):
                    plan.unplan(other)
            plan.hold_regardless(inner, plan.slots, now, inner.end)
