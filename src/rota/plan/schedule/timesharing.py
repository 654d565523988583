"""Which jobs may hold the same resources at the same time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rota.plan.ask import Ask
from rota.plan.schedule.plan_entry import PlanEntry

#: A core, in hundredths.
WHOLE = 100


def may_share(one: Ask, other: Ask) -> bool:
    """May both hold the same resources at the same time?"""
    ours, theirs = one.types, other.types
    if one.share and other.share:
        return one.share + other.share <= WHOLE
    if ours.timesharing is not None and theirs.timesharing is not None:
        same = (one.user == other.user, bool(one.name) and one.name == other.name)
        return all(
            alike or (mine == "*" and yours == "*")
            for alike, mine, yours in zip(same, ours.timesharing, theirs.timesharing, strict=True)
        )
    if ours.allowed and theirs.placeholder:
        return ours.allowed == theirs.placeholder
    if ours.placeholder and theirs.allowed:
        return ours.placeholder == theirs.allowed
    return False


def may_overlap(one: Ask, other: Ask) -> bool:
    """May both hold the same whole cores? (Parts of a core depend on all jobs there, see `full_cores`.)"""
    return not (one.share and other.share) and may_share(one, other)


def full_cores(sharing: Iterable[PlanEntry], most: int) -> Iterator[tuple[int, float, float]]:
    """The cores of which more than `most` hundredths are taken, and from when to when."""
    edges: dict[int, list[tuple[float, int]]] = {}
    for entry in sharing:
        if entry.ask.share and entry.start is not None and entry.end is not None:
            edges.setdefault(entry.resources, []).extend(
                ((entry.start, entry.ask.share), (entry.end, -entry.ask.share))
            )
    for core, moments in edges.items():
        taken = 0
        since = None
        for moment, more in sorted(moments):  # at one moment ends come first
            taken += more
            if taken > most and since is None:
                since = moment
            elif taken <= most and since is not None:
                yield core, since, moment
                since = None
