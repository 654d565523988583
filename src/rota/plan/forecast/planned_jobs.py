"""What a plan says about the future, once it is known how long jobs really run.

The plan holds resources for as long as jobs may run, or as long as somebody said. Jobs mostly end earlier, those
behind them begin earlier, and this says when. A snapshot is taken of a plan that goes on changing; the rest may be
worked out anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import NamedTuple

from rota.plan.forecast.free_capacity import Piece, Room
from rota.plan.forecast.waiting_jobs import Firm, Foreseen, Key, Line
from rota.plan.planner.entry import RUNNING, WAITING, Entry
from rota.plan.planner.planner import Planner
from rota.plan.planner.shortfall import begins_with_rest, is_lacking, missing_words
from rota.plan.reasons import Waits

#: How long a job is expected to run (from now on, if it runs already); None: nobody knows.
Lengths = Callable[[int], float | None]


class PlanSnapshot(NamedTuple):
    """What a plan has decided at one moment."""

    everything: int
    usable: int
    running: list[tuple[int, float, int]]  #: job, its end as planned, what it holds
    firm: list[Firm]
    waiting: list[Line]  #: without a planned start, each by itself: it is not their turn yet
    stuck: list[tuple[int, Waits]]  #: those that a rule keeps from having one
    besteffort: list[tuple[int, int]]  #: those that run and give way to others, what each holds


def snapshot(planner: Planner) -> PlanSnapshot:
    """What is decided now; how long jobs will really run is not known yet."""
    site = planner.site
    closing = site.asleep  #: resources with hours of their own, which only the plan keeps
    for mask in site.hours.values():
        closing |= mask
    found = PlanSnapshot(site.everything, site.usable, [], [], [], [], [])
    for entry in planner.entries.values():
        if entry.state == RUNNING and entry.end is not None:
            found.running.append((entry.id, entry.end, entry.resources))
            if entry.ask.types.besteffort:
                found.besteffort.append((entry.id, entry.resources))
        elif entry.fixed and entry.state == WAITING and is_lacking(planner, entry):
            _lacking(planner, entry, found, closing)
        elif entry.state == WAITING and entry.start is not None and entry.end is not None:
            found.firm.append(_firm(entry, entry.start, entry.end, closing))
        elif entry.state == WAITING and entry.reason is not None and entry.reason.code != "resources":
            found.stuck.append((entry.id, entry.reason))
        elif entry.state == WAITING and entry.options:
            found.waiting.append(Line((entry.id,), key_of(entry), max(1, entry.least), None))
    return found


def _lacking(planner: Planner, entry: Entry, found: PlanSnapshot, closing: int) -> None:
    """A reservation with hosts that may not be used waits a while, and then begins without them, or not at all."""
    begins = begins_with_rest(planner, entry)
    if begins is None or entry.end is None:
        words = missing_words(planner, entry, entry.resources & ~planner.site.usable & ~planner.site.asleep)
        found.stuck.append((entry.id, Waits("reservation", ", ".join(words))))
    else:
        found.firm.append(_firm(entry, begins, entry.end, closing))


def key_of(entry: Entry) -> Key:
    """Its rank; those that are equal in the order of their ids."""
    return (*entry.rank[:-2], entry.id)


def _firm(entry: Entry, start: float, end: float, closing: int) -> Firm:
    types = entry.ask.types
    bound = bool(types.inner or entry.after or entry.resources & closing)
    return Firm(
        job=entry.id,
        start=start,
        span=end - start,
        length=None,
        mask=entry.resources,
        key=key_of(entry),
        fixed=entry.fixed,
        bound=bound or types.postpone is not None or entry.blamed,
        evicts=not types.besteffort and not types.inner,
    )


def foreseen(plan: PlanSnapshot, now: float, *, left: Lengths, limits: dict[str, Room]) -> Foreseen:
    """The plan's resources, free when the jobs that run have ended."""
    pieces = []
    free = plan.everything
    for id, end, held in plan.running:
        mask = held & free
        free &= ~mask
        length = left(id)
        pieces.append(Piece(max(now, end) if length is None else now + length, mask.bit_count(), mask))
    for moment, mask in ((now, free & plan.usable), (inf, free & ~plan.usable)):
        pieces.append(Piece(moment, mask.bit_count(), mask))
    return Foreseen(now, Room(pieces), limits)


def evictions(plan: PlanSnapshot) -> dict[int, float]:
    """When besteffort jobs that run are ended at the latest, because others are planned on their resources."""
    left = plan.besteffort
    theirs = _union(left)
    found: dict[int, float] = {}
    for each in sorted(plan.firm, key=lambda firm: firm.start) if left else ():
        if each.evicts and each.mask & theirs:
            found |= {id: each.start for id, held in left if held & each.mask}
            left = [(id, held) for id, held in left if not held & each.mask]
            theirs = _union(left)
    return found


def _union(held: list[tuple[int, int]]) -> int:
    union = 0
    for _id, mask in held:
        union |= mask
    return union


def with_lengths(plan: PlanSnapshot, lengths: Lengths) -> tuple[list[Firm], list[Line]]:
    """The jobs that wait, planned or not, with how long they are expected to run."""
    firm = [each._replace(length=lengths(each.job)) for each in plan.firm]
    return firm, [line._replace(length=lengths(line.jobs[0])) for line in plan.waiting]
