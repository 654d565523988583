"""Overruns: a job that runs longer than planned keeps its resources, and plans in the way move."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from heapq import heappush

from rota.plan.planner import backfill, passes
from rota.plan.schedule.expected_end import new_end
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import PlanEntry, by_rank
from rota.plan.schedule.timesharing import may_share


def outlives(plan: Plan, entry: PlanEntry, now: float) -> None:
    """A running job is past its expected end: it keeps its resources, and plans in the way move."""
    assert entry.start is not None
    extend(plan, entry, new_end(entry.start, now), now, f"job {entry.id} runs longer than expected")


def begins_late(plan: Plan, entry: PlanEntry, now: float) -> None:
    """A job began later than planned, and needs its whole length from now on."""
    end = now + entry.options[entry.alternative].length
    if entry.end is not None and entry.end < end:
        extend(plan, entry, end, now, f"job {entry.id} began later than planned")


def extend(plan: Plan, entry: PlanEntry, end: float, now: float, cause: str) -> None:
    """Let a running job hold its resources until then."""
    assert entry.start is not None
    assert entry.end is not None
    passes.finish(plan)
    old = entry.end
    moving = in_the_way(plan, entry, old, end)
    for other in moving:
        plan.unplan(other)
    if entry.counted is not None and plan.quotas is not None:
        plan.quotas.give(entry.counted, entry.id)
        number = entry.resources if plan.counted else entry.resources.bit_count()
        plan.quotas.take(entry.counted, entry.id, number, entry.start, end)
    entry.end = end
    if entry.taking is not None or entry.everywhere:
        plan.ledger.give(entry.id)
        plan.take_amounts(entry)
    slots = plan.slots_of(entry)
    if slots is not None and not entry.ask.types.besteffort:
        if plan.counted:
            slots.take(entry.resources, old, end)
        else:
            plan.hold_regardless(entry, slots, old, end)
    if entry.id in plan.inside:
        plan.open_inside(entry)
        for inner in plan.inside_of(entry):
            if inner.start is not None and inner.end is not None and not inner.ask.types.besteffort:
                plan.inside[entry.id].cover(inner.resources, inner.start, inner.end)
    heappush(plan.overdue, (end, entry.id))
    steps = _make_way(plan, entry, moving, now)
    passes.run(plan, steps, now, cause)


def _make_way(plan: Plan, entry: PlanEntry, moving: list[PlanEntry], now: float) -> Iterator[None]:
    """Plan the jobs that were in the way again, and then all of worse rank."""
    if moving:
        first = min(moving, key=by_rank)
        klass = plan.class_of(first.ask)
        at = bisect_left(klass.jobs, first.rank, key=by_rank)
        yield from backfill.replan_from(plan, klass, at, now)
    backfill.follow(plan, entry, now)
    yield from backfill.on_freed(plan, [(start, end) for _entry, start, end, _resources in plan.vacated], now)


def in_the_way(plan: Plan, entry: PlanEntry, start: float, end: float) -> list[PlanEntry]:
    """Waiting jobs planned between start and end on what a running job will hold then."""
    if entry.ask.types.besteffort:
        return []
    return [
        other
        for other in (*plan.starting, *(each for klass in plan.classes for each in klass.jobs))
        if other.start is not None
        and other.end is not None
        and other.start < end
        and other.end > start
        and not other.ask.types.besteffort
        and _meet(plan, entry, other)
    ]


def _meet(plan: Plan, entry: PlanEntry, other: PlanEntry) -> bool:
    """Do both need something that may not suffice for two?"""
    if plan.counted:
        return True
    if entry.home == other.home and entry.resources & other.resources and not may_share(entry.ask, other.ask):
        return True
    if entry.counted is not None and other.counted is not None and entry.counted.meets(other.counted):
        return True
    if entry.everywhere.keys() & other.everywhere.keys():
        return True
    if entry.taking is None or other.taking is None or not entry.taking.keys() & other.taking.keys():
        return False
    hosts = set(plan.site.hosts_of(entry.resources))
    return any(host in hosts for host in plan.site.hosts_of(other.resources))
