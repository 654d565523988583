"""Advance reservations: granted or rejected at submission, never moved, begun with what is there."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from math import inf, nextafter
from typing import Final

from rota.plan.planner import backfill, capped_ranks, preemption_notice, search
from rota.plan.planner.endangered import closed_then
from rota.plan.planner.shortfall import missing_now
from rota.plan.reasons import Waits
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import PlanEntry, by_rank
from rota.plan.schedule.timesharing import may_share
from rota.plan.schedule.unusable_hosts import nowhere

#: How many of the jobs in the way are named, in the sentence and in all.
_NAMED: Final = 5
_MOST: Final = 100


def may_reserve(plan: Plan, entry: PlanEntry, now: float) -> bool:
    ask = entry.ask
    assert ask.at is not None
    if ask.types.besteffort or ask.types.inner:
        entry.reason = Waits("reservation", "rejected: besteffort and inner jobs cannot be reservations")
    elif ask.at < now:
        entry.reason = Waits("reservation", "rejected: it begins in the past")
    elif entry.trouble is not None:
        why = nowhere(plan, entry, entry.trouble)
        entry.reason = Waits("reservation", f"rejected: {why.message}", hint=why.hint)
    else:
        return True
    return False


def reserve(plan: Plan, entry: PlanEntry, now: float) -> Iterator[None]:
    """Grant or reject a reservation. Like any submission it displaces only jobs of worse rank."""
    at = entry.ask.at
    assert at is not None
    klass = plan.class_of(entry.ask)
    position = capped_ranks.first_moved(plan, klass, bisect_left(klass.jobs, entry.rank, key=by_rank))
    for other in backfill.below(plan, klass, position):
        if other is not plan.patient:
            plan.unplan(other)
    if search.place(plan, entry, now, since=at, before=nextafter(at, inf)):
        entry.fixed = True
        plan.reserved[entry.id] = entry
        preemption_notice.reserved(plan, entry)
        for other in _endless_before(plan, entry):
            plan.unplan(other)
            if other.rank < entry.rank:
                klass = min(klass, plan.class_of(other.ask), key=lambda each: -each.priority)
                position = 0
    else:
        plan.forget(entry)
        plan.remove_ties(entry)
        entry.reason = _rejected(plan, entry, at)
    return backfill.put_back(plan, klass, position, now)


def _rejected(plan: Plan, entry: PlanEntry, at: float) -> Waits:
    """Why it cannot begin then, and which jobs are in the way."""
    message = "rejected: its resources are not free at that time"
    if entry.reason is not None:
        return Waits("reservation", f"{message}: {entry.reason.message}", blockers=entry.reason.blockers)
    holders = sorted(_holders(plan, entry, at), key=lambda other: other.id)
    if not holders:
        closed = closed_then(plan, _wanted(plan, entry), at, at + entry.shortest)
        return Waits("reservation", f"{message}: {'; '.join(closed)}" if closed else message)
    ids = [other.id for other in holders]
    named = ", ".join(map(str, ids[:_NAMED])) + (f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else "")
    message += f": job {named} has them" if len(ids) == 1 else f": jobs {named} have them"
    if any(other.options and not other.options[other.alternative].hard for other in holders):
        message += "; jobs without a walltime may run for as long as they like"
    return Waits("reservation", message, blockers=tuple(ids[:_MOST]))


def _holders(plan: Plan, entry: PlanEntry, at: float) -> Iterator[PlanEntry]:
    """The jobs that hold, while it would run, resources that it could take."""
    end = at + max((option.length for option in entry.options), default=0.0)
    wanted = _wanted(plan, entry)
    for other in plan.entries.values():
        if other.start is None or other.start >= end or (other.end or inf) <= at or other.home:
            continue
        if other.ask.types.besteffort or may_share(entry.ask, other.ask):
            continue
        if plan.counted or other.resources & wanted:
            yield other


def _wanted(plan: Plan, entry: PlanEntry) -> int:
    """The usable resources that match its request."""
    wanted = 0
    if entry.ask.is_choosy:
        for option in entry.options:
            wanted |= option.shape.eligible
        return wanted
    for alternative in entry.ask.alternatives:
        for group in alternative.groups:
            wanted |= plan.site.still_matching(group.where, group.pool)
    return wanted & plan.site.usable


def _endless_before(plan: Plan, entry: PlanEntry) -> list[PlanEntry]:
    """Waiting jobs without a walltime that are planned on the resources of a reservation before its end."""
    return [
        other
        for klass in plan.classes
        for other in klass.jobs
        if other.start is not None and entry.end is not None and plan.now < other.start < entry.end
        and not other.home and not other.options[other.alternative].hard and other.resources & entry.resources
    ]  # fmt: skip


def all_there(plan: Plan, entry: PlanEntry, now: float) -> bool:
    """May the reservation begin? It waits a while for missing resources, then begins without them."""
    if plan.counted:
        return True
    missing = missing_now(plan, entry)
    if not missing and entry.resources:
        return True
    assert entry.ask.at is not None
    if now < entry.ask.at + plan.patience_s or missing == entry.resources or entry.team is not None:
        return False  # a gang never begins with fewer
    assert entry.end is not None
    plan.drop(entry, since=now)
    entry.resources &= ~missing
    plan.hold(entry, since=now)
    return True
