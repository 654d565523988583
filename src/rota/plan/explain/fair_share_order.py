"""Fair share as the reason why a job waits: later jobs of other users go first."""

from __future__ import annotations

from typing import Final

from rota.plan.planner import ranking
from rota.plan.policy.fair_share_report import share_report
from rota.plan.policy.usage_history import UserProject
from rota.plan.reasons import Waits
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import PlanEntry

#: At most so many of the jobs that go first are named.
_MOST: Final = 100
_HINT: Final = "rota share list"


def first_by_share(plan: Plan, entry: PlanEntry) -> list[Waits]:
    """The reason that later jobs go first by fair share; empty: none does."""
    name = entry.ask.queue
    if entry.fixed or plan.queue(name).order == "fifo":
        return []
    before = [
        other
        for other in plan.class_of(entry.ask).jobs
        if other.rank < entry.rank
        and other.rank[:3] == entry.rank[:3]
        and other.ask.queue == name
        and (other.submitted, other.serial) > (entry.submitted, entry.serial)
        and (other.ask.user, other.ask.project) != (entry.ask.user, entry.ask.project)
    ]
    if not before:
        return []
    targets = ranking.share_targets(plan)[name]

    def stands(who: UserProject) -> str:
        return share_report(who, usage=plan.usage, targets=targets, fair_share=plan.policy.fair_share).why

    first = before[0].ask
    many = f"{len(before):,} later jobs go" if len(before) > 1 else "a later job goes"
    theirs, own = stands((first.user, first.project)), stands((entry.ask.user, entry.ask.project))
    blockers = tuple(other.id for other in before[:_MOST])
    return [Waits("share", f"{many} first by fair share: {theirs}, while {own}", blockers=blockers, hint=_HINT)]
