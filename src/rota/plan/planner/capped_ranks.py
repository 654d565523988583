"""Jobs with several ranks: where their priority is capped on some machines, they are planned once for each.

By its best rank a job may only have what is not capped, and by its worst anything. So it goes before others where
its own priority counts, and takes a capped machine only if nobody of better rank there wants it.
"""

from __future__ import annotations

from math import inf

from rota.plan.planner import search
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import CappedRank, PlanEntry
from rota.plan.schedule.priority_class import PriorityClass


def exist(plan: Plan, klass: PriorityClass) -> bool:
    """Has a job of this class several ranks?"""
    return bool(plan.caps) and any(entry.ranks for entry in klass.jobs)


def first_moved(plan: Plan, klass: PriorityClass, position: int) -> int:
    """From which position in a class on jobs must be planned again, if those from this one on must: a job with
    several ranks may have a place by one that is worse."""
    if not plan.caps:
        return position
    return next((at for at, entry in enumerate(klass.jobs[:position]) if entry.ranks), position)


def by_each_rank(plan: Plan, jobs: list[PlanEntry]) -> list[tuple[PlanEntry, int]]:
    """These jobs in order of rank, each once for each of its ranks, with the resources that it may have then."""
    if not plan.caps or not any(entry.ranks for entry in jobs):
        return [(entry, -1) for entry in jobs]
    found = [
        (rank, entry, within) for entry in jobs for rank, within in (entry.ranks or (CappedRank(entry.rank, -1),))
    ]
    found.sort(key=lambda each: each[0])
    return [(entry, within) for _rank, entry, within in found]


def by_worse(entry: PlanEntry, within: int) -> bool:
    """Are these the resources of a rank that is not the job's best?"""
    return bool(entry.ranks) and within != entry.ranks[0].within


def between(ranked: list[tuple[PlanEntry, int]], at: int) -> list[tuple[PlanEntry, int]]:
    """What lies between this rank of a job and its best. When it leaves the place that it had by that, these go
    before all that come later."""
    entry = ranked[at][0]
    first = next(number for number, (each, _within) in enumerate(ranked) if each is entry)
    return ranked[first + 1 : at]


def place_within(
    plan: Plan, entry: PlanEntry, now: float, within: int, *, before: float = inf, since: float | None = None
) -> bool:
    """Plan a job on these resources."""
    entry.within = within
    found = search.place(plan, entry, now, before=before, since=since)
    entry.within = -1
    return found


def end_earlier(plan: Plan, entry: PlanEntry, now: float, within: int, *, before: float = inf) -> bool:
    """Give a planned job a place on more resources, if it ends earlier there."""
    assert entry.start is not None
    assert entry.end is not None
    place = (entry, entry.start, entry.end, entry.resources, entry.home, entry.alternative)
    inner = plan.planned_inside(entry)
    plan.unplan(entry)
    if place_within(plan, entry, now, within, before=before) and entry.end < place[2]:
        return True
    plan.unplan(entry)
    plan.restore([place, *inner])
    return False
