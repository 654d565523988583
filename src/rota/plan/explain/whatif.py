"""What if: when and where would this job run? The plan itself is left alone; a snapshot of it is asked.

The answer is what a submission would decide at this moment, to the letter, because it is a submission.
"""

from __future__ import annotations

from typing import NamedTuple

from rota.plan.ask import Ask
from rota.plan.explain.why_waiting import why
from rota.plan.planner.planner import Planner
from rota.plan.reasons import Waits
from rota.plan.schedule.plan_entry import WAITING


class WhatIfAnswer(NamedTuple):
    """When a job would run, or why it would not."""

    start: float | None
    end: float | None
    resources: int
    alternative: int
    reasons: list[Waits]  #: why not at once
    moves: list[int]  #: waiting jobs that would begin later, or not at all


def ask_when(planner: Planner, ask: Ask, now: float) -> WhatIfAnswer:
    """What would be decided if this job were submitted now. The planner stays exactly as it is."""
    return ask_snapshot(planner.snapshot(), ask, now)


def ask_snapshot(planner: Planner, ask: Ask, now: float, *, job: int = 0) -> WhatIfAnswer:
    """The same, of a snapshot that is used up. `job` is the id it would get where ids order submissions."""
    before = {
        entry.id: entry.start
        for entry in planner.plan.entries.values()
        if entry.state == WAITING and entry.start is not None
    }
    id = job or max(planner.plan.entries, default=0) + 1
    entry = planner.submit(id, ask, now, serial=job)
    planner.finish()
    moves = []
    for other, start in before.items():
        later = planner.plan.entries[other].start
        if later is None or later > start:
            moves.append(other)
    if id not in planner.plan.entries:  # a reservation that is refused
        return WhatIfAnswer(None, None, 0, 0, [] if entry.reason is None else [entry.reason], sorted(moves))
    at_once = entry.start is not None and entry.start <= now
    reasons = [] if at_once else why(planner.plan, entry)
    return WhatIfAnswer(entry.start, entry.end, entry.resources, entry.alternative, reasons, sorted(moves))
