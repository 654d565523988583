"""Jobs that run on what nobody else wants, and end when somebody does.

For all other jobs they are not there; they are planned last, in what is left.
"""

from __future__ import annotations

from itertools import combinations
from math import inf
from typing import TYPE_CHECKING

from rota.plan.entry import Entry
from rota.plan.shapes import TRIES, Shape, Short

if TYPE_CHECKING:
    from rota.plan.planner import Planner


def running(planner: Planner) -> list[Entry]:
    """Besteffort jobs that run."""
    return [entry for entry in planner.running.values() if entry.ask.types.besteffort]


def plan(planner: Planner, now: float) -> None:
    """Plan the waiting besteffort jobs in what is left by all others."""
    waiting = planner.low.line
    if not waiting:
        return
    for entry in waiting:
        planner.unplan(entry)
    whole = planner.slots
    view = whole.copy()
    for entry in running(planner):
        if planner.counted:
            view.take(entry.resources, now, entry.end or inf)
        else:
            view.cover(entry.resources, now, entry.end or inf)
    planner.slots = view
    bounds, planner._bounds = planner._bounds, {}
    try:
        for entry in list(waiting):
            if planner.place(entry, now):
                assert entry.start is not None
                assert entry.end is not None
                if planner.counted:
                    view.take(entry.resources, entry.start, entry.end)
                else:
                    view.cover(entry.resources, entry.start, entry.end)
    finally:
        planner.slots, planner._bounds = whole, bounds


def victims(planner: Planner, entry: Entry) -> list[int]:
    """Besteffort jobs that must end before this one begins."""
    if entry.ask.types.besteffort or planner.counted:
        return []
    return [other.id for other in running(planner) if other.resources & entry.resources]


def choose(planner: Planner, shape: Shape, free: int, short: Short | None, start: float) -> int:
    """Take so that the fewest besteffort jobs end: then the youngest, then those that lose the least work."""
    holding = [entry for entry in running(planner) if (entry.end or inf) > start and entry.resources & free]
    held = 0
    for entry in holding:
        held |= entry.resources
    taken = shape.choose(free & ~held, short)
    if taken:
        return taken
    holding.sort(key=lambda entry: (-(entry.start or 0.0), entry.resources.bit_count(), entry.id))
    tries = 0
    for number in range(1, len(holding) + 1):
        for some in combinations(holding, number):
            tries += 1
            if tries > TRIES:
                return _greedy(shape, free, short, holding)
            given = free & ~held
            for entry in some:
                given |= entry.resources & free
            if given.bit_count() >= shape.least and (taken := shape.choose(given, short)):
                return taken
    return 0


def _greedy(shape: Shape, free: int, short: Short | None, holding: list[Entry]) -> int:
    """Too many to try all: end one after the other until there is enough."""
    given = free
    for entry in holding:
        given &= ~entry.resources
    for entry in holding:
        given |= entry.resources & free
        taken = shape.choose(given, short)
        if taken:
            return taken
    return 0
