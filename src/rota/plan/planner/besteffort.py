"""Besteffort jobs: they use what is left over, and are preempted when another job needs it.

All other jobs are planned as if besteffort jobs did not exist. These are planned last.
"""

from __future__ import annotations

from itertools import combinations
from math import inf

from rota.plan.planner import search
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import RUNNING, PlanEntry
from rota.plan.schedule.timesharing import may_overlap
from rota.plan.timeline.shapes import TRIES
from rota.plan.timeline.slots import Pick


def running(plan: Plan) -> list[PlanEntry]:
    """Besteffort jobs that run."""
    return list(plan.running_besteffort.values())


def replan(plan: Plan, now: float) -> None:
    """Plan the waiting besteffort jobs in what all others leave free."""
    waiting = plan.besteffort_class.jobs
    if not waiting:
        return
    for entry in waiting:
        plan.unplan(entry)
    whole, inside, bounds = plan.slots, plan.inside, plan.bounds
    left, left_inside = whole.copy(), inside
    if any(entry.ask.types.inner for entry in waiting):
        left_inside = {id: slots.copy() for id, slots in inside.items()}
    plan.bounds = {}
    try:
        plan.slots, plan.inside = left, left_inside
        for entry in running(plan):
            _hide(plan, entry, now)
        for entry in list(waiting):
            if _overlaps(entry):
                # Here `placed_besteffort` says which besteffort jobs it may not share with.
                plan.slots, plan.inside = whole, inside
            found = search.place(plan, entry, now)
            plan.slots, plan.inside = left, left_inside
            if found:
                _hide(plan, entry, now)
    finally:
        plan.slots, plan.inside, plan.bounds = whole, inside, bounds
        plan.placed_besteffort.clear()


def _overlaps(entry: PlanEntry) -> bool:
    """May it hold whole cores that others hold too?"""
    return entry.special and not entry.ask.share


def _hide(plan: Plan, entry: PlanEntry, now: float) -> None:
    """What a besteffort job holds is not free for the next one."""
    plan.placed_besteffort.append(entry)
    slots = plan.slots_of(entry)
    if slots is None:
        return
    start, end = max(now, entry.start or now), entry.end or inf
    if plan.counted:
        slots.take(entry.resources, start, end)
    else:
        slots.cover(entry.resources, start, end)


def victims(plan: Plan, entry: PlanEntry) -> list[int]:
    """Besteffort jobs that must end before this one begins."""
    if entry.ask.types.besteffort or plan.counted:
        return []
    begin = max(plan.now, entry.start or plan.now)
    guests = running(plan)
    found = [other.id for other in guests if is_in_the_way(other, entry)]
    if entry.taking is not None:
        # Preempt for memory and the like on the same hosts too, the youngest jobs first.
        guests.sort(key=_youngest_first)
        for host in plan.site.hosts_of(entry.resources):
            of_host = plan.site.hosts[host]
            for name in entry.taking:
                there = [
                    other
                    for other in guests
                    if other.taking and name in other.taking and other.resources & of_host
                ]
                excess = plan.ledger.excess(host, name, begin)
                for gone in [True, False]:
                    for other in there:
                        if excess > 0 and other.taking is not None and (other.id in found) == gone:
                            excess -= other.taking[name]
                            if not gone:
                                found.append(other.id)
    for id in found:  # the list grows: what runs inside a container ends with it
        inner = plan.inside_of(plan.running[id])
        found += [each.id for each in inner if each.state == RUNNING and each.id not in found]
        if gang := plan.running[id].gang:  # members end together
            found += [each.id for each in guests if each.gang == gang and each.id not in found]
    return found


def is_in_the_way(guest: PlanEntry, entry: PlanEntry) -> bool:
    """Does a besteffort job hold resources of this one?"""
    if guest.id == entry.home or not guest.resources & entry.resources:
        return False
    return not (guest.home == entry.home and may_overlap(guest.ask, entry.ask))


def _youngest_first(entry: PlanEntry) -> tuple[float, int, int]:
    return -(entry.start or 0.0), entry.resources.bit_count(), entry.id


def avoid(plan: Plan, entry: PlanEntry, now: float) -> None:
    """Move a job that begins to the resources that preempt the fewest besteffort jobs."""
    if not any(is_in_the_way(other, entry) for other in plan.running_besteffort.values()):
        return
    if plan.counted or plan.inside_of(entry) or entry.id in plan.notified:
        return
    if entry.start is None or entry.end is None or entry.ask.types.besteffort:
        return
    begin = max(now, entry.start)
    plan.drop(entry, since=begin)
    if not entry.home or entry.home in plan.inside:
        free = search.room(plan, entry).common(begin, entry.end)
        others = [other for other in running(plan) if other.id != entry.home]
        others = [other for other in others if not may_overlap(other.ask, entry.ask) or other.home != entry.home]
        if entry.fixed and now <= entry.start:
            for other in others:
                if entry.start - other.ask.leave_s < now:
                    free &= ~other.resources  # it would not be gone in time
        taken = _choose(others, search.picking(plan, entry), free, (begin, entry.end), entry.resources.bit_count())
        if taken:
            plan.swap(entry, taken)
    plan.hold(entry, since=begin)
    if entry.ask.types.container:
        plan.open_inside(entry)


def _choose(guests: list[PlanEntry], pick: Pick, free: int, span: tuple[float, float], as_many: int) -> int:
    """Choose so that the fewest besteffort jobs end; if several choices do, the youngest jobs."""
    holding = sorted((entry for entry in guests if entry.resources & free), key=_youngest_first)
    held = together = 0  #: by at least one of them; by several, which share it
    for entry in holding:
        together |= held & entry.resources
        held |= entry.resources
    tries = 0
    for number in range(len(holding) + 1):
        for some in combinations(holding, number):
            tries += 1
            if tries > TRIES:
                return 0
            given = free & ~held
            for entry in some:
                given |= entry.resources & free
            for entry in holding if together else ():
                if entry not in some:
                    given &= ~entry.resources
            taken = pick(given, *span)
            if taken.bit_count() == as_many:
                return taken
    return 0
