"""Passes: after an event the waiting jobs are planned again, all at once or some steps at a time.

Which jobs a pass visits, and how, is `plan.planner.backfill`.
"""

from __future__ import annotations

from collections.abc import Iterator

from rota.plan.planner import backfill, besteffort
from rota.plan.reasons import Moved
from rota.plan.schedule.plan import Pass, Plan
from rota.plan.schedule.plan_entry import WAITING
from rota.plan.snapshot import snapshot


def run(plan: Plan, steps: Iterator[None], now: float, cause: str, *, gentle: bool = False) -> None:
    """Begin a pass. It is carried out at once unless passes are paused (`pause_after`)."""
    finish(plan)
    plan.paused = Pass(steps, now, cause, gentle)
    if gentle:
        plan.given_up = False
    if plan.pause_after is None:
        finish(plan)
    else:
        work(plan, plan.pause_after)


def work(plan: Plan, steps: int) -> bool:
    """Go on for so many steps with a pass that was paused. True: there is more to do."""
    if plan.paused is None:
        return False
    left, now, cause, _gentle = plan.paused
    for done, _step in enumerate(left, 1):
        if done >= steps:
            return True
    plan.paused = None
    settle(plan, now, cause)
    if plan.given_up:
        # Begin the pass that was given up again, with all that became free since.
        run(plan, backfill.on_freed(plan, [], now), now, "what it waits for moved", gentle=True)
        return plan.working
    return False


def finish(plan: Plan) -> None:
    """Carry out what is left of a paused pass. Every event does this first.

    A gentle pass is given up instead: the next one starts over with all that became free meanwhile.
    """
    if plan.paused is not None and plan.paused.gentle and plan.pause_after is not None:
        _steps, now, cause, _gentle = plan.paused
        plan.paused, plan.given_up = None, True
        settle(plan, now, cause)
    while plan.paused is not None:
        work(plan, 1_000_000)


def settled_snapshot(plan: Plan) -> Plan:
    """An independent copy of a plan, for questions. A paused pass is finished first."""
    finish(plan)
    return snapshot(plan)


def settle(plan: Plan, now: float, cause: str) -> None:
    """End an event: plan besteffort jobs in what is left, and report promised starts that moved."""
    besteffort.replan(plan, now)
    was, plan.promised = plan.promised, {}
    given, plan.vacated = plan.vacated, []
    for entry, start, end, resources in given:
        if (entry.start, entry.end, entry.resources) == (start, end, resources):
            continue  # it got its place back
        for klass in plan.classes:
            if -klass.priority <= entry.rank[0]:
                klass.freed.append((start, end))
    for id, promised in was.items():
        found = plan.entries.get(id)
        if found is None or found.state != WAITING:
            continue
        if (found.start is None and plan.plans_all(found)) or (found.start or promised) > promised:
            plan.moved.append(Moved(id, promised, found.start, cause))
