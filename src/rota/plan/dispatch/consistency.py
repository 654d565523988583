"""Invariants of `Planning`: the queue, the plan and the leases agree with each other."""

from __future__ import annotations

from itertools import combinations

from rota.plan.dispatch.active_plan import ActivePlan
from rota.plan.dispatch.plan_leases import ids_of
from rota.plan.dispatch.plan_queue import PlanQueue
from rota.plan.placement.leases import Held
from rota.plan.schedule.timesharing import may_share


def broken(queue: PlanQueue, plan: ActivePlan | None, leases: list[Held], on_terms: int) -> list[str]:
    """A sentence for each broken invariant. `on_terms`: how many jobs on terms were counted."""
    wrong = queue.broken() + _counted_wrong(queue, leases, on_terms)
    wrong += _left_over(queue) if plan is None else _plan_broken(plan, leases)
    return wrong + _shared_unduly(leases)


def _counted_wrong(queue: PlanQueue, leases: list[Held], on_terms: int) -> list[str]:
    there = sum(len(job_class) for key, job_class in queue.classes.items() if key.need.terms)
    there += sum(1 for held in leases if held.on_terms)
    if there == on_terms:
        return []
    return [f"plan: {on_terms} jobs on terms are counted, {there} are there"]


def _left_over(queue: PlanQueue) -> list[str]:
    """What is left in the queue though there is no plan."""
    wrong = [f"plan: there is none, but job class {key} is in it" for key in queue.firsts]
    wrong += [f"plan: there is none, but job class {key} is parked" for key in queue.parked]
    wrong += [f"plan: there is none, but plain job class {key}" for key in queue.classes if not key.need.terms]
    return wrong


def _plan_broken(plan: ActivePlan, leases: list[Held]) -> list[str]:
    planner, queue, leased = plan.planner, plan.queue, plan.leases.jobs
    looked_after = queue.firsts.keys() | queue.fresh | queue.parked
    wrong = [
        f"plan: job class {key} is neither planned, fresh nor parked"
        for key in queue.classes
        if key not in looked_after
    ]
    left = {*plan.over, *plan.gone, *plan.paused}
    out = {held.job for held in leases}
    if out - left != leased - left:
        wrong.append(f"plan: {sorted(leased)} have a lease for the plan, {sorted(out)} really")
    begun = {entry.id for begin in plan.due.begins() for entry in begin.entries}
    firsts = set(queue.firsts.values())
    firsts |= {entry.id for begin in plan.due.begins() for entry in begin.members}
    away = set(planner.plan.suspended)
    said = {held.job for held in leases if held.away is not None}
    # The plan resumes a job before the engine does.
    if away - said - left or said - away - left - planner.plan.running.keys():
        wrong.append(f"plan: {sorted(away)} are suspended for the plan, {sorted(said)} really")
    if begun - firsts - leased:
        wrong.append(f"plan: {sorted(begun - firsts)} have begun and are first in no job class")
    if planner.plan.running.keys() - left != (begun | leased) - away - left:
        wrong.append(f"plan: {sorted(planner.plan.running)} run, {sorted(begun)} and {sorted(leased)} should")
    if planner.plan.entries.keys() - left != (firsts | leased) - left:
        wrong.append(f"plan: {sorted(planner.plan.entries)} are in it, {sorted(firsts | leased)} should be")
    for job, (_begin, victims) in plan.due.blocked.items():
        if not victims & planner.plan.running.keys():
            wrong.append(f"plan: job {job} waits for {sorted(victims)} to end, which do not run")
    return wrong


def _shared_unduly(leases: list[Held]) -> list[str]:
    """Leases that hold the same resource though their jobs may not share it."""
    wrong = []
    holders: dict[int, list[Held]] = {}
    for held in leases:
        for id in ids_of(held.resources) if held.away is None else ():
            holders.setdefault(id, []).append(held)
    for id, held_by in holders.items():
        for one, other in combinations(held_by, 2):
            asks = one.ask, other.ask
            nested = any(ask.types.inner for ask in asks)
            if not nested and not may_share(*asks):
                wrong.append(f"plan: resource {id} is given to jobs {one.job} and {other.job} at once")
    return wrong
