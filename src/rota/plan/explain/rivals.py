"""Rivals: jobs of better rank that would take what becomes free if a cause were removed."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Final

from rota.plan.explain.cause_texts import MOST, ids_text
from rota.plan.explain.replanning import OWN, lifted
from rota.plan.explain.trials import CauseTrial
from rota.plan.reasons import Cause, Waits
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import WAITING, PlanEntry

#: Not in larger plans: all jobs would have to be planned again, several times.
_MOST_ENTRIES: Final = 50
#: How often the plan is made again, each time without the rivals found so far.
_ROUNDS: Final = 8
#: How many jobs of better rank are tried.
_FEW: Final = 20


def with_rivals(plan: Plan, entry: PlanEntry, waits: Waits) -> Waits:
    """The same reason, with the rivals that would profit instead of this job."""
    if not waits.causes or all(cause.kind in OWN for cause in waits.causes):
        return waits
    first = _first(plan, entry, list(waits.causes))
    if not first:
        return waits
    return waits._replace(
        message=f"{waits.message}; {_said(first)}",
        blockers=tuple(dict.fromkeys((*waits.blockers, *first)))[:MOST],
        causes=(*waits.causes, *(Cause("job", str(id)) for id in first)),
    )


def rivals(plan: Plan, entry: PlanEntry, causes: Sequence[Cause]) -> list[Waits]:
    """One reason that names the rivals, if several causes were named."""
    first = _first(plan, entry, list(causes))
    if not first:
        return []
    named = tuple(Cause("job", str(id)) for id in first)
    return [Waits("resources", f"also: {_said(first)}", blockers=tuple(first[:MOST]), causes=named)]


def _said(ids: list[int]) -> str:
    return f"{'job' if len(ids) == 1 else 'jobs'} {ids_text(ids)} {'goes' if len(ids) == 1 else 'go'} before it"


def _first(plan: Plan, entry: PlanEntry, causes: list[Cause]) -> list[int]:
    """The jobs that would have to be removed too; empty: none, or it is not known."""
    if len(plan.entries) > _MOST_ENTRIES:
        return []
    before = begins(plan, entry.id)
    named: dict[int, None] = {}
    for _round in range(_ROUNDS):
        found = lifted(plan, entry.id, causes)
        if begins(found, entry.id) < before:
            return sorted(named)
        ahead = [other for other in _ahead(found, entry) if other not in named]
        # The jobs that begin earlier now; if none does, all.
        helped = [id for id in ahead if _earlier(found.entries[id], plan.entries[id])]
        if not ahead:
            return []
        for id in helped or ahead:
            named[id] = None
            causes.append(Cause("job", str(id)))
    return []


def begins(plan: Plan, id: int) -> float:
    """When a job begins. If its queue does not plan it, when it could."""
    entry = plan.entries[id]
    if entry.start is not None:
        return entry.start
    if plan.plans_all(entry) or entry.ask.types.besteffort or not is_its_turn(plan, entry):
        return inf
    return CauseTrial(plan, id).place().start


def is_its_turn(plan: Plan, entry: PlanEntry) -> bool:
    """Is it the first job of its class that has any place at all?"""
    line = plan.class_of(entry.ask).jobs
    ahead = [other for other in line if other is not entry and other.rank < entry.rank]
    if len(ahead) > _FEW or any(other.start is not None for other in ahead):
        return False
    return all(CauseTrial(plan, other.id).place().start == inf for other in ahead)


def _ahead(plan: Plan, entry: PlanEntry) -> list[int]:
    """Waiting jobs of better rank."""
    return [
        other.id
        for other in plan.entries.values()
        if other.state == WAITING and not other.fixed and other.rank < entry.rank
    ]


def _earlier(one: PlanEntry, other: PlanEntry) -> bool:
    return (inf if one.start is None else one.start) < (inf if other.start is None else other.start)
