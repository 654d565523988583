"""Jobs that run on what nobody else wants, and end when somebody does.

For all other jobs they are not there; they are planned last, in what is left.
"""

from __future__ import annotations

from itertools import combinations
from math import inf
from typing import TYPE_CHECKING

from rota.plan.entry import RUNNING, Entry
from rota.plan.shapes import TRIES
from rota.plan.slots import Pick, Slots

if TYPE_CHECKING:
    from rota.plan.planner import Planner


def running(planner: Planner) -> list[Entry]:
    """Besteffort jobs that run."""
    return list(planner.guests.values())


def plan(planner: Planner, now: float) -> None:
    """Plan the waiting besteffort jobs in what is left by all others."""
    waiting = planner.low.line
    if not waiting:
        return
    for entry in waiting:
        planner.unplan(entry)
    whole, inside, bounds = planner.slots, planner.inside, planner.bounds
    planner.slots, planner.bounds = whole.copy(), {}
    if any(entry.ask.types.inner for entry in waiting):
        planner.inside = {id: slots.copy() for id, slots in inside.items()}
    try:
        for entry in running(planner):
            _hide(planner, entry, now)
        for entry in list(waiting):
            if planner.place(entry, now):
                _hide(planner, entry, now)
    finally:
        planner.slots, planner.inside, planner.bounds = whole, inside, bounds


def _hide(planner: Planner, entry: Entry, now: float) -> None:
    """What a besteffort job holds is not free for the next one."""
    slots = planner.slots_of(entry)
    if slots is None:
        return
    start, end = max(now, entry.start or now), entry.end or inf
    if planner.counted:
        slots.take(entry.resources, start, end)
    else:
        slots.cover(entry.resources, start, end)


def victims(planner: Planner, entry: Entry) -> list[int]:
    """Besteffort jobs that must end before this one begins."""
    if entry.ask.types.besteffort or planner.counted:
        return []
    guests = running(planner)
    found = [other.id for other in guests if other.resources & entry.resources and other.id != entry.home]
    if entry.taking is not None:
        # Those that hold memory and the like on the same hosts, the youngest first.
        guests.sort(key=_youngest_first)
        for host in planner.site.hosts_of(entry.resources):
            of_host = planner.site.hosts[host]
            for name in entry.taking:
                there = [
                    other
                    for other in guests
                    if other.taking and name in other.taking and other.resources & of_host
                ]
                excess = planner.ledger.excess(host, name, planner.now)
                for gone in [True, False]:
                    for other in there:
                        if excess > 0 and other.taking is not None and (other.id in found) == gone:
                            excess -= other.taking[name]
                            if not gone:
                                found.append(other.id)
    for id in found:  # it grows: what runs inside a container ends with it
        inner = planner.lies_inside(planner.running[id])
        found += [each.id for each in inner if each.state == RUNNING and each.id not in found]
    return found


def _youngest_first(entry: Entry) -> tuple[float, int, int]:
    return -(entry.start or 0.0), entry.resources.bit_count(), entry.id


def avoid(planner: Planner, entry: Entry, now: float) -> None:
    """Who begins now takes, of what is free for it, what ends the fewest besteffort jobs."""
    if not any(other.resources & entry.resources for other in planner.guests.values()):
        return
    if planner.counted or planner.lies_inside(entry):
        return
    if entry.start is None or entry.end is None or entry.ask.types.besteffort:
        return
    planner.drop(entry, since=now)
    room = planner.room(entry)
    if isinstance(room, Slots):
        free = room.common(now, entry.end)
        others = [other for other in running(planner) if other.id != entry.home]
        taken = _choose(others, planner.picking(entry), free, (now, entry.end), entry.resources.bit_count())
        if taken:
            planner.exchange(entry, taken)
    planner.hold(entry, since=now)
    if entry.ask.types.container:
        planner.open_inside(entry)


def _choose(guests: list[Entry], pick: Pick, free: int, span: tuple[float, float], as_many: int) -> int:
    """Take so that the fewest besteffort jobs end: then the youngest, then those that lose the least work."""
    holding = sorted((entry for entry in guests if entry.resources & free), key=_youngest_first)
    spared = free
    for entry in holding:
        spared &= ~entry.resources
    tries = 0
    for number in range(len(holding) + 1):
        for some in combinations(holding, number):
            tries += 1
            if tries > TRIES:
                return 0
            given = spared
            for entry in some:
                given |= entry.resources & free
            taken = pick(given, *span)
            if taken.bit_count() == as_many:
                return taken
    return 0
