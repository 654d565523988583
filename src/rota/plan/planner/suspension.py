"""Suspension: a job gives up its cores, and keeps its memory, disk, GPUs and limit units.

A job that resumes is ranked like any other, but wants exactly its own cores, for the time that it has left. What
it keeps meanwhile is its *ballast*. It is held until the job begins again. While that moment is unknown, it is
held for a time that is extended whenever it is over.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from heapq import heappush

import msgspec

from rota.plan.ask import Ask
from rota.plan.planner import backfill, passes, ranking, search
from rota.plan.policy.quota_rules import quota_subject
from rota.plan.schedule.expected_end import new_end
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import RUNNING, SUSPENDED, WAITING, PlanEntry, by_rank
from rota.plan.schedule.suspended_job import SuspendedJob

#: No job is expected to be suspended for less.
_LEAST_S = 60.0


# ------------------------------------------------------------------ events


def suspend(plan: Plan, id: int, now: float, *, left_s: float) -> None:
    """Suspend a running job: its cores are free. A job that waits to resume stays suspended."""
    passes.finish(plan)
    plan.now = now
    entry = plan.entries[id]
    if id in plan.suspended:
        _stand_back(plan, plan.suspended[id], now)
        return
    if entry.state != RUNNING or entry.start is None or entry.end is None:
        return
    del plan.running[id]
    freed = [(now, entry.end)]
    ranking.charge(plan, entry, now)
    if entry.counted is not None and plan.quotas is not None:
        width = entry.resources.bit_count()
        plan.quotas.spend(entry.counted, quota_subject(entry.ask), width, entry.start, now)
    hard = bool(entry.options) and entry.options[min(entry.alternative, len(entry.options) - 1)].hard
    plan.drop(entry, since=now)
    plan.overlapping.discard(id)
    ids = tuple(plan.site.ids(entry.resources))
    # Until then its ballast was promised to no other job.
    until = entry.end
    _pin(plan, SuspendedJob(entry, ids, entry.resources, left_s=left_s, hard=hard, since=now), until)
    passes.run(plan, backfill.on_freed(plan, freed, now), now, f"job {id} was suspended")


def adopt(
    plan: Plan, id: int, ask: Ask, *, ids: Iterable[int], left_s: float, hard: bool, since: float, now: float
) -> None:
    """A job that was suspended before this plan existed."""
    passes.finish(plan)
    plan.now = now
    entry = PlanEntry(id, ask, since)
    plan.entries[id] = entry
    if ask.types.inner:
        plan.add_inner(entry)
    known = tuple(ids)
    mask = plan.site.mask(each for each in known if plan.site.knows(each))
    until = now + max(_LEAST_S, left_s)
    _pin(plan, SuspendedJob(entry, known, mask, left_s=left_s, hard=hard, since=since), until)


def _pin(plan: Plan, pinned: SuspendedJob, until: float) -> None:
    entry = pinned.entry
    entry.state = SUSPENDED
    entry.ask = _without_moments(entry.ask)
    entry.start = entry.end = None
    entry.resources = entry.home = entry.alternative = 0
    entry.fixed = False
    plan.suspended[entry.id] = pinned
    search.ready(plan, entry)
    pinned.until = until
    heappush(plan.overdue, (pinned.until, entry.id))
    plan.hold_ballast(entry)


def _without_moments(ask: Ask) -> Ask:
    """The same job without start time, expiry and deadline: it has begun, so they do not matter any more."""
    types = msgspec.structs.replace(ask.types, expire=None, deadline=None, postpone=None)
    return msgspec.structs.replace(ask, at=None, types=types)


def resume(plan: Plan, id: int, now: float, *, left_s: float, submitted: float, serial: int) -> None:
    """Queue a suspended job by its rank, for exactly its cores."""
    passes.finish(plan)
    plan.now = now
    pinned = plan.suspended.get(id)
    if pinned is None or pinned.entry.state != SUSPENDED:
        return
    entry, pinned.left_s = pinned.entry, left_s
    entry.state = WAITING
    entry.submitted, entry.serial = submitted, serial
    search.ready(plan, entry)
    entry.rank = ranking.rank_of(plan, entry, now)
    plan.class_of(entry.ask).add(entry)
    steps = ranking.refresh(plan, now, submitted=entry) or iter(())
    passes.run(plan, steps, now, f"job {id} resumes")


def _stand_back(plan: Plan, pinned: SuspendedJob, now: float) -> None:
    """A job that waits to resume stays suspended."""
    entry = pinned.entry
    if entry.state != WAITING:
        return
    freed = [(entry.start, entry.end)] if entry.start is not None and entry.end is not None else []
    plan.unplan(entry)
    if entry in plan.starting:
        plan.starting.remove(entry)
    plan.class_of(entry.ask).discard(entry)
    entry.state = SUSPENDED
    passes.run(plan, backfill.on_freed(plan, freed, now), now, f"job {entry.id} stays suspended")


def begun(plan: Plan, entry: PlanEntry) -> None:
    """It runs again: it holds as a running job what was its ballast."""
    plan.ledger.give(~entry.id)
    del plan.suspended[entry.id]


def gone(plan: Plan, id: int, now: float) -> list[tuple[float, float]]:
    """It has ended, or will never resume. Returns the spans in which its ballast becomes free."""
    pinned = plan.suspended.pop(id, None)
    if pinned is None:
        return []
    plan.ledger.give(~id)
    return [(now, max(pinned.until, now))]


# ------------------------------------------------------------------ ballast


def stays(plan: Plan, pinned: SuspendedJob, now: float) -> None:
    """It is suspended for longer than expected: it keeps its ballast, and plans in the way move."""
    passes.finish(plan)
    entry, old = pinned.entry, pinned.until
    pinned.until = new_end(pinned.since, now)
    heappush(plan.overdue, (pinned.until, entry.id))
    if entry.start is not None:
        return  # its planned start says when it resumes
    moving = [
        other
        for other in (*plan.starting, *(each for klass in plan.classes for each in klass.jobs))
        if other is not entry
        and other.start is not None
        and other.end is not None
        and other.start < pinned.until
        and other.end > old
        and _meet(plan, pinned, other)
    ]
    for other in moving:
        plan.unplan(other)
    plan.hold_ballast(entry)
    passes.run(plan, _make_way(plan, moving, now), now, f"job {entry.id} stays suspended")


def _make_way(plan: Plan, moving: list[PlanEntry], now: float) -> Iterator[None]:
    if moving:
        first = min(moving, key=by_rank)
        klass = plan.class_of(first.ask)
        at = bisect_left(klass.jobs, first.rank, key=by_rank)
        yield from backfill.replan_from(plan, klass, at, now)
    yield from backfill.on_freed(plan, [(start, end) for _entry, start, end, _resources in plan.vacated], now)


def _meet(plan: Plan, pinned: SuspendedJob, other: PlanEntry) -> bool:
    """Do both need something other than cores that may not suffice for two?"""
    entry = pinned.entry
    if entry.everywhere.keys() & other.everywhere.keys():
        return True
    if entry.taking is None or other.taking is None or not entry.taking.keys() & other.taking.keys():
        return False
    hosts = set(plan.site.hosts_of(pinned.mask))
    return any(host in hosts for host in plan.site.hosts_of(other.resources))


def site_changed(plan: Plan) -> None:
    """Find the cores of suspended jobs on the new site."""
    for pinned in plan.suspended.values():
        pinned.mask = plan.site.mask(id for id in pinned.ids if plan.site.knows(id))
