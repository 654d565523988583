"""Changing the end of a running job without breaking a promise to another one."""

from __future__ import annotations

from math import inf

from rota.plan.planner import backfill, overrun, passes, search
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import RUNNING, PlanEntry


def move_end(plan: Plan, id: int, end: float, now: float, *, force: bool = False) -> float:
    """Let a running job end then, or as late as breaks no promise to others. Returns its new end.

    `force`: plans in the way move. An inner job never goes on beyond the end of its container.
    """
    passes.finish(plan)
    plan.now = now
    entry = plan.entries.get(id)
    if entry is None or entry.state != RUNNING or entry.end is None:
        return end
    home = plan.entries.get(entry.home)
    if home is not None and home.end is not None:
        end = min(end, home.end)
    if end <= entry.end:
        end = max(end, now)
        _shorten(plan, entry, end, now)
        return end
    if not force:
        end = latest(plan, entry, end)
    if end > entry.end:
        overrun.extend(plan, entry, end, now, f"job {id} has a longer walltime")
    return end


def latest(plan: Plan, entry: PlanEntry, wanted: float) -> float:
    """The latest end, at most `wanted`, until which its resources are held by and promised to no other job."""
    assert entry.end is not None
    old = entry.end
    if entry.ask.types.besteffort or plan.counted:
        return wanted  # no promise depends on it
    slots = plan.slots_of(entry)
    moments = {wanted}
    if slots is not None:
        moments.update(moment for moment in slots.times if old < moment < wanted)
    moments.update(moment for moment in plan.ledger.starts() if old < moment < wanted)
    if entry.counted is not None and plan.quotas is not None:
        moments.update(moment for moment in plan.quotas.starts(entry.counted) if old < moment < wanted)
    ends = sorted(moments)
    low, high = 0, len(ends)  # an end that is possible makes all earlier ones possible
    while low < high:
        middle = (low + high) // 2
        if _possible(plan, entry, old, ends[middle]):
            low = middle + 1
        else:
            high = middle
    return ends[low - 1] if low else old


def _possible(plan: Plan, entry: PlanEntry, old: float, end: float) -> bool:
    slots = plan.slots_of(entry)
    if slots is not None and not entry.special and slots.common(old, end) & entry.resources != entry.resources:
        return False
    if entry.special and not _shared_until(plan, entry, old, end):
        return False
    ledger = plan.ledger
    if entry.taking is not None and ledger.short(entry.taking, entry.resources, old, end) & entry.resources:
        return False
    if entry.everywhere and ledger.again(entry.everywhere, old, end) is not None:
        return False
    if entry.counted is not None and plan.quotas is not None:
        return plan.quotas.refusal(entry.counted, entry.resources.bit_count(), old, end) is None
    return True


def _shared_until(plan: Plan, entry: PlanEntry, old: float, end: float) -> bool:
    """The same for a job that may share resources."""
    room = search.room_beside(plan, entry)
    return room.common(old, end) & entry.resources == entry.resources


def _shorten(plan: Plan, entry: PlanEntry, end: float, now: float) -> None:
    """It ends earlier than expected: what it would have held is free."""
    assert entry.end is not None
    old = entry.end
    if end >= old:
        return
    plan.drop(entry, since=now)
    entry.end = end
    plan.hold(entry, since=max(now, entry.start or now))
    if entry.id in plan.inside:
        plan.open_inside(entry)
        for inner in plan.inside_of(entry):
            if inner.start is not None and inner.end is not None and not inner.ask.types.besteffort:
                plan.inside[entry.id].cover(inner.resources, inner.start, inner.end)
    plan.watch_end(entry)
    freed = [(end, old if old < inf else end)]
    passes.run(plan, backfill.on_freed(plan, freed, now), now, f"job {entry.id} has a shorter walltime")
