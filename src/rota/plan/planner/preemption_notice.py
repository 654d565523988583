"""Preemption notices: besteffort jobs are ended early enough to be gone when a reservation begins.

How long each may take to end is `Ask.leave_s`. Only reservations need this: all other starts may still move.
"""

from __future__ import annotations

from heapq import heappop, heappush

from rota.plan.planner import besteffort
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import PlanEntry


def reserved(plan: Plan, entry: PlanEntry) -> None:
    """A reservation was granted: note when besteffort jobs that run there must get notice."""
    for guest in plan.running_besteffort.values():
        _expect(plan, guest, entry)


def guest_runs(plan: Plan, guest: PlanEntry) -> None:
    """A besteffort job began: note when it must get notice, if its resources are reserved."""
    for entry in plan.reserved.values():
        _expect(plan, guest, entry)


def _expect(plan: Plan, guest: PlanEntry, entry: PlanEntry) -> None:
    if guest.ask.leave_s > 0 and entry.start is not None and _may_be_in_the_way(plan, guest, entry):
        heappush(plan.notices, (entry.start - guest.ask.leave_s, entry.id))


def _may_be_in_the_way(plan: Plan, guest: PlanEntry, entry: PlanEntry) -> bool:
    """May it hold something that the reservation needs when it begins?"""
    if _ends_before(guest, entry):
        return False
    if besteffort.is_in_the_way(guest, entry):
        return True
    if guest.taking is None or entry.taking is None or not guest.taking.keys() & entry.taking.keys():
        return False
    return not set(plan.site.hosts_of(guest.resources)).isdisjoint(plan.site.hosts_of(entry.resources))


def _ends_before(guest: PlanEntry, entry: PlanEntry) -> bool:
    """Does its walltime end it before the reservation begins?"""
    if not guest.options or guest.end is None or entry.start is None or guest.end > entry.start:
        return False
    return guest.options[min(guest.alternative, len(guest.options) - 1)].hard


def give(plan: Plan, now: float) -> bool:
    """Give the notices that are due: they are added to `plan.noticed`. True: a reservation left its place."""
    due = set()
    aside = False
    while plan.notices and plan.notices[0][0] <= now:
        due.add(heappop(plan.notices)[1])
    for id in sorted(due):
        entry = plan.reserved.get(id)
        if entry is None or entry.start is None or entry.start <= now or plan.counted:
            continue  # a job that begins now preempts the others itself
        before = entry.resources
        besteffort.avoid(plan, entry, now)
        if entry.resources != before:
            plan.exchanged.append(id)
            aside = True
        for victim in besteffort.victims(plan, entry):
            guest = plan.running[victim]
            moment = entry.start - guest.ask.leave_s
            if _ends_before(guest, entry):
                continue
            if moment <= now:
                plan.notified.add(id)
                plan.noticed.append((victim, id, entry.start))
            else:
                heappush(plan.notices, (moment, id))
    return aside
