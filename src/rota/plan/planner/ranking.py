"""The order of the waiting jobs: ranks, and the use of resources that fair share ranks by."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from rota.plan.planner import backfill
from rota.plan.policy.fair_share import Targets
from rota.plan.policy.job_order import rank
from rota.plan.policy.policy import Queue
from rota.plan.policy.priority_caps import priorities_of
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import CappedRank, PlanEntry, Rank, by_rank
from rota.plan.schedule.priority_class import PriorityClass
from rota.plan.schedule.timesharing import WHOLE
from rota.plan.timeline.gang_shape import union

#: How often ranks that depend on use or waiting time are computed again.
REFRESH_S: Final = 60.0


def charge(plan: Plan, entry: PlanEntry, now: float) -> None:
    """Count what a running job used since it began, or since the last call."""
    if entry.start is not None:
        since = max(entry.start, entry.charged)
        plan.usage.charge((entry.ask.user, entry.ask.project), _cores(plan, entry), since, max(since, now))
        entry.charged = max(since, now)


def charge_rest(plan: Plan, entry: PlanEntry, now: float) -> None:
    """Count the use of a job that ended, and as asked for what it did not use of its time."""
    charge(plan, entry, now)
    left_s = max(0.0, entry.end - now) if entry.end is not None else 0.0
    if left_s:
        plan.usage.add(entry.ask.user, entry.ask.project, 0.0, _cores(plan, entry) * left_s, now)


def _cores(plan: Plan, entry: PlanEntry) -> float:
    if entry.ask.share:
        return entry.ask.share / WHOLE
    return entry.resources if plan.counted else entry.resources.bit_count()


def rank_of(plan: Plan, entry: PlanEntry, now: float, targets: Mapping[str, Targets] | None = None) -> Rank:
    """The rank of a job. `targets`: the result of `share_targets`, if many jobs are ranked."""
    queue = plan.queue(entry.ask.queue)
    own: Targets | None = None
    if queue.order != "fifo":
        own = (share_targets(plan) if targets is None else targets)[entry.ask.queue]
    plan.serial += 1
    entry.serial = entry.serial or plan.serial

    def with_priority(priority: int) -> Rank:
        ask = entry.ask if priority == entry.ask.priority else replace(entry.ask, priority=priority)
        key = rank(
            queue,
            ask,
            submitted=entry.submitted,
            now=now,
            usage=plan.usage,
            targets=own,
            fair_share=plan.policy.fair_share,
        )
        return (*key, *entry.session_place, entry.serial)

    if not plan.caps:
        return with_priority(entry.ask.priority)
    found = [CappedRank(with_priority(priority), within) for priority, within in _priorities(plan, entry)]
    entry.ranks = tuple(found) if len(found) > 1 and found[0].rank < found[-1].rank else ()
    return found[0].rank


def _priorities(plan: Plan, entry: PlanEntry) -> list[tuple[int, int]]:
    """The priorities that a job has, highest first, and the resources at each, enough for it; -1: all."""
    ask = entry.ask
    found = priorities_of(plan.caps, plan.site, ask.user, ask.priority)
    if ask.types.besteffort or ask.at is not None:
        return found[-1:]  # these have one place, whatever goes before them
    shapes = [option.shape for option in entry.options]
    eligible = union(tuple(shape.eligible for shape in shapes))
    enough = [each for each in found[:-1] if any(shape.choose(each[1]) for shape in shapes)]
    for priority, within in enough:
        if not eligible & ~within:
            return [*(each for each in enough if each[0] > priority), (priority, -1)]
    return [*enough, found[-1]]


def rank_again(plan: Plan, now: float) -> None:
    """Rank all waiting jobs: they may be capped on other machines than before."""
    targets = share_targets(plan)
    for klass in (*plan.classes, plan.besteffort_class):
        for entry in klass.jobs:
            entry.rank = rank_of(plan, entry, now, targets)
        klass.jobs.sort(key=by_rank)


def share_targets(plan: Plan) -> dict[str, Targets]:
    """The shares that users and projects should have, for each queue that orders by fair share."""
    shared = {name: queue for name, queue in plan.policy.queues.items() if queue.order != "fifo"}
    if not shared:
        return {}
    active = plan.usage.active({(entry.ask.user, entry.ask.project) for entry in plan.entries.values()})
    return {name: Targets(queue, active) for name, queue in shared.items()}


def charge_running(plan: Plan, now: float) -> None:
    """Count what running jobs used up to now, if a queue orders by it."""
    if all(queue.order == "fifo" for queue in plan.policy.queues.values()):
        return
    plan.usage.look(now)
    for entry in plan.running.values():
        charge(plan, entry, now)


def _may_change(plan: Plan, klass: PriorityClass, now: float) -> bool:
    """Can ranks of this class have changed? In FIFO order only for jobs that have waited too long."""
    queues = (Queue(), *plan.policy.queues.values())
    if any(queue.order != "fifo" for queue in queues):
        return True
    patience = min(queue.max_wait_s for queue in queues)
    return any(now - entry.submitted > patience for entry in klass.jobs)


def ranks_change(plan: Plan) -> bool:
    if all(queue.order == "fifo" for queue in plan.policy.queues.values()):
        return False
    return any(plan.queue(entry.ask.queue).order != "fifo" for klass in plan.classes for entry in klass.jobs)


def refresh(plan: Plan, now: float, submitted: PlanEntry | None = None) -> Iterator[None] | None:
    """Rank waiting jobs again if time or use may have changed their order; plan from the first change on.

    These steps plan a job that was just submitted too. None: nothing changed.
    """
    klass, at = None, 0
    if now >= plan.ranked_at + REFRESH_S or (submitted is not None and ranks_change(plan)):
        plan.ranked_at = now
        charge_running(plan, now)
        targets = share_targets(plan)
        for each in reversed((*plan.classes, plan.besteffort_class)):
            if not _may_change(plan, each, now):
                continue
            before = each.jobs[:]
            for entry in each.jobs:
                entry.rank = rank_of(plan, entry, now, targets)
            each.jobs.sort(key=by_rank)
            if each is not plan.besteffort_class and each.jobs != before:
                pairs = zip(before, each.jobs, strict=True)
                klass, at = each, next(at for at, (a, b) in enumerate(pairs) if a is not b)
    if submitted is not None and not submitted.ask.types.besteffort:
        own = plan.class_of(submitted.ask)
        if klass is None or klass.priority < own.priority:
            return backfill.on_submitted(plan, own, submitted, now)
        if klass is own:
            at = min(at, bisect_left(own.jobs, submitted.rank, key=by_rank))
    return backfill.replan_from(plan, klass, at, now) if klass is not None else None
