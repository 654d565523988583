"""When planned jobs will really start, given how long jobs usually run.

A plan holds resources for the whole walltime. Most jobs end earlier, so the jobs behind them start earlier.
`snapshot` copies what the plan has decided; everything else works on that copy, in any thread.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import NamedTuple

from rota.plan.forecast.free_capacity import CapacityPiece, FreeCapacity
from rota.plan.forecast.waiting_jobs import Commitment, EqualJobs, Forecast, Key
from rota.plan.planner.shortfall import begins_with_rest, is_lacking, missing_words
from rota.plan.reasons import Waits
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import RUNNING, WAITING, PlanEntry

#: How long a job is expected to run, from now on if it runs already; None: unknown.
Lengths = Callable[[int], float | None]


class PlanSnapshot(NamedTuple):
    """What a plan has decided at one moment."""

    everything: int
    usable: int
    running: list[tuple[int, float, int]]  #: job, its end as planned, what it holds
    commitments: list[Commitment]
    waiting: list[EqualJobs]  #: jobs without a planned start, each alone: their turn has not come
    stuck: list[tuple[int, Waits]]  #: jobs that a rule keeps from having a planned start
    besteffort: list[tuple[int, int]]  #: running besteffort jobs, and what each holds


def snapshot(plan: Plan) -> PlanSnapshot:
    """Copy what the plan has decided. `with_lengths` adds how long jobs will run."""
    site = plan.site
    closing = site.asleep  #: resources with hours, which only the plan knows
    for mask in site.hours.values():
        closing |= mask
    found = PlanSnapshot(site.everything, site.usable, [], [], [], [], [])
    for entry in plan.entries.values():
        if entry.state == RUNNING and entry.end is not None:
            found.running.append((entry.id, entry.end, entry.resources))
            if entry.ask.types.besteffort:
                found.besteffort.append((entry.id, entry.resources))
        elif entry.fixed and entry.state == WAITING and is_lacking(plan, entry):
            _lacking(plan, entry, found, closing)
        elif entry.state == WAITING and entry.start is not None and entry.end is not None:
            found.commitments.append(_commitment(entry, entry.start, entry.end, closing))
        elif entry.state == WAITING and entry.reason is not None and entry.reason.code != "resources":
            found.stuck.append((entry.id, entry.reason))
        elif entry.state == WAITING and entry.options:
            found.waiting.append(EqualJobs((entry.id,), key_of(entry), max(1, entry.least), None))
    return found


def _lacking(plan: Plan, entry: PlanEntry, found: PlanSnapshot, closing: int) -> None:
    """A reservation that misses hosts waits for a while, then starts without them or not at all."""
    begins = begins_with_rest(plan, entry)
    if begins is None or entry.end is None:
        words = missing_words(plan, entry, entry.resources & ~plan.site.usable & ~plan.site.asleep)
        found.stuck.append((entry.id, Waits("reservation", ", ".join(words))))
    else:
        found.commitments.append(_commitment(entry, begins, entry.end, closing))


def key_of(entry: PlanEntry) -> Key:
    """The rank of a job, with its id instead of its submission."""
    return (*entry.rank[:-2], entry.id)


def _commitment(entry: PlanEntry, start: float, end: float, closing: int) -> Commitment:
    types = entry.ask.types
    bound = bool(types.inner or entry.after or entry.resources & closing)
    return Commitment(
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


def forecast_of(plan: PlanSnapshot, now: float, *, left: Lengths, limits: dict[str, FreeCapacity]) -> Forecast:
    """A forecast over the plan's resources, each free when its running job is expected to end."""
    pieces = []
    free = plan.everything
    for id, end, held in plan.running:
        mask = held & free
        free &= ~mask
        length = left(id)
        pieces.append(CapacityPiece(max(now, end) if length is None else now + length, mask.bit_count(), mask))
    for moment, mask in ((now, free & plan.usable), (inf, free & ~plan.usable)):
        pieces.append(CapacityPiece(moment, mask.bit_count(), mask))
    return Forecast(now, FreeCapacity(pieces), limits)


def evictions(plan: PlanSnapshot) -> dict[int, float]:
    """When running besteffort jobs are ended at the latest, because other jobs are planned on their resources."""
    left = plan.besteffort
    theirs = _union(left)
    found: dict[int, float] = {}
    for each in sorted(plan.commitments, key=lambda commitment: commitment.start) if left else ():
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


def with_lengths(plan: PlanSnapshot, lengths: Lengths) -> tuple[list[Commitment], list[EqualJobs]]:
    """The waiting jobs, planned or not, with how long each is expected to run."""
    commitments = [each._replace(length=lengths(each.job)) for each in plan.commitments]
    return commitments, [equal._replace(length=lengths(equal.jobs[0])) for equal in plan.waiting]
