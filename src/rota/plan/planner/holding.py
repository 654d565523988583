"""A job is over and keeps its resources for a time: dependents begin, others must wait for what it holds."""

from __future__ import annotations

from rota.plan.planner import backfill, ending, extension, passes
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import RUNNING


def hold(plan: Plan, id: int, until: float, now: float, *, complete: bool) -> None:
    """The run of a job is over, and it keeps what it has until then. `ended` gives it back."""
    passes.finish(plan)
    plan.now = now
    entry = plan.entries.get(id)
    if entry is None or entry.state != RUNNING:
        return
    extension.move_end(plan, id, until, now, force=True)
    if ending.tell_children(plan, entry, now, complete=complete, ran=True):
        passes.run(plan, backfill.on_freed(plan, [], now), now, "what it waits for moved")
