"""The gang that has waited for longest gets a reservation, where backfilling is not conservative."""

from __future__ import annotations

from rota.plan.planner import search
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import PlanEntry


def reserve(plan: Plan, now: float) -> None:
    """Let the oldest gang that has waited for `gang_patience` hold its earliest start, before all jobs that wait.

    Nothing that waits delays it any more: it begins at the latest when all has ended that runs on its machines at
    this moment, or was planned there by a queue that goes first. Only an overrun moves it.
    """
    if plan.patient is not None:
        plan.unplan(plan.patient)
        if search.place(plan, plan.patient, now):
            return
        plan.patient = None
    gangs = [
        entry
        for klass in plan.classes
        for entry in klass.jobs
        if entry.team is not None
        and klass.backfill != "conservative"
        and now >= entry.submitted + plan.gang_patience_s
        and not entry.after
        and entry.trouble is None
    ]
    for entry in sorted(gangs, key=lambda entry: (entry.submitted, entry.serial)):
        plan.unplan(entry)
        if search.place(plan, entry, now):  # one that can begin at no time keeps no other waiting
            plan.patient = entry
            return


def begins_now(entry: PlanEntry, now: float) -> bool:
    """Has the start of its reservation come?"""
    return entry.start is not None and entry.start <= now
