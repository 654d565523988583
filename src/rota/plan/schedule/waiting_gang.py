"""A waiting gang is one entry of the plan. Here is what each of its members takes of it.

Its resources are those of all members, for as long as the longest of them runs. Quotas and limits count the sum.
Amounts of hosts are held by each member under its own id, as when it runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import islice, permutations, product
from math import prod
from typing import Final

from rota.plan.ask import Gang
from rota.plan.policy.quota_rules import quota_subject
from rota.plan.policy.quotas import QuotaCounters, Quotas, Refusal
from rota.plan.schedule.plan_entry import PlanEntry, Team
from rota.plan.timeline.gang_shape import GangShape, Lacking, as_gang, union
from rota.plan.timeline.ledger import NOTHING, Ledger, Taking

#: Members may have several alternatives each; so many combinations are tried.
MOST_COMBINATIONS: Final = 64


@lru_cache(maxsize=1024)
def combinations_of(numbers: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Which alternative each member may have, given how many each has.

    Where there are too many combinations: some of each kind, in which the first members have one alternative and
    all others another.
    """
    in_order = islice(product(*map(range, numbers)), MOST_COMBINATIONS)
    if prod(numbers) <= MOST_COMBINATIONS:
        return tuple(in_order)
    places = range(len(numbers) + 1)
    divided = (
        tuple(min(one if at < place else other, number - 1) for at, number in enumerate(numbers))
        for place in places[:: max(1, len(places) // MOST_COMBINATIONS)]
        for one, other in permutations(range(min(max(numbers), 3)), 2)
    )
    return tuple(islice(dict.fromkeys(((0,) * len(numbers), *divided, *in_order)), MOST_COMBINATIONS))


def chosen(gang: Gang, combination: int) -> tuple[int, ...]:
    """The alternative of each member in this combination."""
    return combinations_of(tuple(len(member.ask.alternatives) for member in gang.members))[combination]


def team_up(entry: PlanEntry, ledger: Ledger, quotas: Quotas | None) -> None:
    """Work out what the members take besides resources."""
    gang = entry.ask.gang
    assert gang is not None
    asks = [member.ask for member in gang.members]
    takings = tuple(ledger.taking(ask) for ask in asks)
    groups: tuple[tuple[QuotaCounters, tuple[int, ...]], ...] = ()
    if quotas is not None:
        groups = quotas.counted_together([None if ask.types.container else quota_subject(ask) for ask in asks])
    entry.team = Team(takings, groups)
    most: dict[str, int] = {}
    for taking in takings:
        for name, amount in (taking or NOTHING).items():
            most[name] = max(amount, most.get(name, 0))
    entry.taking = most or None
    entry.everywhere = _sum(ledger.everywhere(ask) for ask in asks)
    entry.counted = None
    if groups:
        counters = [counter for counted, _places in groups for counter in counted.counters]
        entry.counted = QuotaCounters(tuple(counters), groups[0][0].hour_sets)


def _sum(takings: Iterable[Taking | None]) -> Taking:
    found: dict[str, int] = {}
    for taking in takings:
        for name, amount in (taking or NOTHING).items():
            found[name] = found.get(name, 0) + amount
    return found


def shape_of(entry: PlanEntry) -> GangShape:
    """The shape that it was planned with."""
    return as_gang(entry.options[entry.alternative].shape)


def lacking(entry: PlanEntry, ledger: Ledger, start: float, end: float) -> Lacking | None:
    """Which hosts have too little of something for some of the members; None: nothing is known of hosts."""
    assert entry.team is not None
    takings, low = entry.team.takings, entry.ask.types.besteffort
    if not any(takings):
        return None

    def lacks(members: tuple[int, ...], mask: int) -> int:
        together = takings[members[0]] if len(members) == 1 else _sum(takings[at] for at in members)
        return ledger.short(together, mask, start, end, low=low) if together else 0

    return lacks


def seat(entry: PlanEntry, ledger: Ledger) -> None:
    """Divide its resources among the members. If they are not enough for all, no member has any."""
    assert entry.start is not None
    assert entry.end is not None
    shape = shape_of(entry)
    parts = shape.parts(entry.resources, lacking(entry, ledger, entry.start, entry.end))
    if parts is None:
        parts = shape.parts(entry.resources)  # a job that overruns may hold what was promised to it
    entry.parts = parts if parts is not None and union(parts) == entry.resources else ()


# ------------------------------------------------------------------ amounts and quotas


def take_amounts(entry: PlanEntry, ledger: Ledger, span: tuple[float, float]) -> None:
    """Each member takes its amounts of its hosts; the limits of the site are taken once, for all."""
    gang, team = entry.ask.gang, entry.team
    assert gang is not None
    assert team is not None
    low = entry.ask.types.besteffort
    parts = entry.parts or (0,) * len(gang.members)
    for member, taking, part in zip(gang.members, team.takings, parts, strict=True):
        everywhere = entry.everywhere if member.job == entry.id else NOTHING
        ledger.take(member.job, taking, everywhere, part, span, low=low)


def give_amounts(entry: PlanEntry, ledger: Ledger) -> None:
    assert entry.ask.gang is not None
    for member in entry.ask.gang.members:
        ledger.give(member.job)


def _numbers(entry: PlanEntry, parts: tuple[int, ...], places: tuple[int, ...]) -> int:
    if not parts:
        return entry.resources.bit_count()
    return sum(parts[at].bit_count() for at in places)


def count(entry: PlanEntry, quotas: Quotas) -> None:
    """Count what its members hold in their quotas."""
    assert entry.team is not None
    assert entry.start is not None
    assert entry.end is not None
    for counted, places in entry.team.counted:
        number = _numbers(entry, entry.parts, places)
        quotas.take(counted, entry.id, number, entry.start, entry.end, jobs=len(places))


def uncount(entry: PlanEntry, quotas: Quotas) -> None:
    assert entry.team is not None
    for counted, _places in entry.team.counted:
        quotas.give(counted, entry.id)


def refusal(
    entry: PlanEntry, quotas: Quotas, shape: GangShape, taken: int, start: float, end: float
) -> Refusal | None:
    """The quota that its members together would break; of several, the one that does so for longest."""
    assert entry.team is not None
    parts = shape.parts(taken) or ()
    worst: Refusal | None = None
    for counted, places in entry.team.counted:
        number = sum(parts[at].bit_count() for at in places) if parts else taken.bit_count()
        found = quotas.refusal(counted, number, start, end, jobs=len(places))
        if found is not None and (worst is None or found.again > worst.again):
            worst = found
    return worst
