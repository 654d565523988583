"""What if: when and where would this job run? The plan itself is left alone; a snapshot of it is asked.

The answer is what a submission would decide at this moment, to the letter, because it is a submission.
"""

from __future__ import annotations

from operator import attrgetter
from typing import NamedTuple

from rota.plan.ask import Ask, renumbered
from rota.plan.explain.why_waiting import why
from rota.plan.planner.planner import Planner
from rota.plan.reasons import Waits
from rota.plan.schedule.plan_entry import WAITING, PlanEntry

_START = attrgetter("start")


class WhatIfAnswer(NamedTuple):
    """When a job would run, or why it would not."""

    start: float | None
    end: float | None
    resources: int
    alternative: int
    reasons: list[Waits]  #: why not at once
    moves: list[int]  #: waiting jobs that would begin later, or not at all


def ask_snapshot(planner: Planner, ask: Ask, now: float, *, job: int = 0) -> WhatIfAnswer:
    """What would be decided if this job were submitted now. `planner`: a snapshot, which is used up. `job`: the id
    that it would get where ids order submissions."""
    others = list(planner.plan.entries.values())
    before = list(map(_START, others))
    id = job or max(max(planner.plan.entries, default=0), max(planner.plan.gang_of, default=0)) + 1
    if ask.gang is not None:
        ask = renumbered(ask, id)
    entry = planner.submit(id, ask, now, serial=job)
    planner.finish()
    moves = _moved_back(others, before)
    if id not in planner.plan.entries:  # a reservation that is refused
        return WhatIfAnswer(None, None, 0, 0, [] if entry.reason is None else [entry.reason], moves)
    at_once = entry.start is not None and entry.start <= now
    reasons = [] if at_once else why(planner.plan, entry)
    return WhatIfAnswer(entry.start, entry.end, entry.resources, entry.alternative, reasons, moves)


def _moved_back(entries: list[PlanEntry], before: list[float | None]) -> list[int]:
    """The waiting jobs that had a planned start, and now have a later one or none."""
    after = list(map(_START, entries))
    if after == before:  # most questions move no job, and this comparison needs no step of the interpreter
        return []
    return sorted(
        entry.id
        for entry, old, new in zip(entries, before, after, strict=True)
        if old is not None and (new is None or new > old) and entry.state == WAITING
    )
