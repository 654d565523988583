"""What the passing of time changes: overruns, expiries, preemption notices, wake-ups and ranks."""

from __future__ import annotations

from heapq import heappop
from math import inf, nextafter

from rota.plan.planner import (
    backfill,
    overrun,
    passes,
    preemption_notice,
    ranking,
    starting,
    suspension,
)
from rota.plan.planner.ranking import REFRESH_S
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import WAITING


def tick(plan: Plan, now: float) -> None:
    """Time has passed: jobs past their expected end keep what they hold, and ranks may have changed."""
    if plan.paused is not None and plan.paused.gentle and not _is_due(plan, now):
        return
    passes.finish(plan)
    plan.now = now
    while plan.overdue and plan.overdue[0][0] <= now:
        end, id = heappop(plan.overdue)
        entry, pinned = plan.running.get(id), plan.suspended.get(id)
        if entry is not None and entry.end == end:
            overrun.outlives(plan, entry, now)
        elif pinned is not None and pinned.until == end:
            suspension.stays(plan, pinned, now)
    for late in list(plan.late.values()):
        if late.fixed and late.end is not None and late.end <= now:
            del plan.late[late.id], plan.reserved[late.id]
            plan.expired.append(late.id)  # the missing resources did not come back before its end
    while plan.expiries and plan.expiries[0][0] < now:
        _moment, id = heappop(plan.expiries)
        entry = plan.entries.get(id)
        if entry is not None and entry.state == WAITING:
            plan.expired.append(id)
    freed: list[tuple[float, float]] = []
    if plan.notices and plan.notices[0][0] <= now and preemption_notice.give(plan, now):
        freed = [(start, end) for _entry, start, end, _resources in plan.vacated]
    woken = False
    while plan.recheck_times and plan.recheck_times[0] <= now:
        woken = heappop(plan.recheck_times) <= now
    steps = ranking.refresh(plan, now)
    if steps is None and (woken or freed):
        steps = backfill.on_freed(plan, freed, now)
    if steps is not None:
        passes.run(plan, steps, now, "ranks changed")
    elif plan.paused is None:
        passes.settle(plan, now, "ranks changed")


def _is_due(plan: Plan, now: float) -> bool:
    """Has time alone changed something?"""
    moments = [plan.ranked_at + REFRESH_S]
    moments += [heap[0][0] for heap in (plan.overdue, plan.expiries, plan.notices) if heap] + plan.recheck_times[
        :1
    ]
    return bool(plan.late) or min(moments) <= now


def next_event(plan: Plan) -> float | None:
    """When `tick` must be called though nothing happens; None: never."""
    times = [start for start in (starting.next_start(plan),) if start is not None]
    for late in plan.late.values():
        if late.ask.at is not None and late.ask.at + plan.patience_s > plan.now:
            times.append(late.ask.at + plan.patience_s)
        elif late.end is not None and late.end > plan.now:
            times.append(late.end)
    while plan.overdue:
        end, id = plan.overdue[0]
        entry, pinned = plan.running.get(id), plan.suspended.get(id)
        if (entry is not None and entry.end == end) or (pinned is not None and pinned.until == end):
            times.append(end)
            break
        heappop(plan.overdue)
    times += plan.recheck_times[:1]
    if plan.notices:
        times.append(plan.notices[0][0])
    if plan.expiries:
        times.append(nextafter(plan.expiries[0][0], inf))
    if ranking.ranks_change(plan):
        times.append(plan.ranked_at + REFRESH_S)
    return min(times, default=None)
