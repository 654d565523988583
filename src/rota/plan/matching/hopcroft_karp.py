"""Maximum matching by Hopcroft and Karp, and a proof where not every seat can be filled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rota.plan.site.bitset import positions


class Shortage(NamedTuple):
    """A Hall violator: these seats have fewer machines among them than they are."""

    seats: tuple[int, ...]
    machines: int  #: all machines that any of them could have, as a set of bits


def match(candidates: Sequence[int]) -> list[int] | None:
    """A machine for each seat, no two the same; None: there is no such choice. `candidates`: a set for each."""
    given, _holders = maximum(candidates)
    return given if -1 not in given else None


def shortage(candidates: Sequence[int]) -> Shortage | None:
    """Seats that compete for too few machines; None: all can be filled.

    Of all seats that an unfilled one competes with, directly or not, none can be left out: without it, the others
    could be filled. So the seats named are few.
    """
    given, holders = maximum(candidates)
    if -1 not in given:
        return None
    found: Shortage | None = None
    for first, machine in enumerate(given):
        if machine != -1:
            continue
        seats, reached = [first], candidates[first]
        for seat in seats:  # the list grows
            new = candidates[seat]
            reached |= new
            for each in positions(new):
                if holders[each] not in seats:
                    seats.append(holders[each])
        if found is None or len(seats) < len(found.seats):
            found = Shortage(tuple(sorted(seats)), reached)
    return found


def maximum(candidates: Sequence[int]) -> tuple[list[int], dict[int, int]]:
    """A maximum matching: the machine of each seat, -1 if it has none, and the seat of each machine."""
    given, holders = [-1] * len(candidates), dict[int, int]()
    while True:
        layers = _layers(candidates, given, holders)
        if layers is None:
            return given, holders
        left = 0
        for each in candidates:
            left |= each
        for seat, machine in enumerate(given):
            if machine == -1:
                left = _augment(seat, candidates, given, holders, layers, left)


def _layers(candidates: Sequence[int], given: list[int], holders: dict[int, int]) -> list[int] | None:
    """How many exchanges each seat is away from an unfilled one (-1: none leads there); None: nothing improves."""
    layers = [0 if machine == -1 else -1 for machine in given]
    front = [seat for seat, machine in enumerate(given) if machine == -1]
    seen, free = 0, False
    while front and not free:
        following = []
        for seat in front:
            new = candidates[seat] & ~seen
            seen |= new
            for machine in positions(new):
                holder = holders.get(machine)
                if holder is None:
                    free = True
                elif layers[holder] == -1:
                    layers[holder] = layers[seat] + 1
                    following.append(holder)
        front = following
    return layers if free else None


def _augment(
    seat: int,
    candidates: Sequence[int],
    given: list[int],
    holders: dict[int, int],
    layers: list[int],
    left: int,
) -> int:
    """Fill a seat along the layers, if that is possible. Each machine is tried once in a phase; `left`: those that
    were not yet, which is returned."""
    path, ways, chosen = [seat], [positions(candidates[seat] & left)], list[int]()
    while path:
        machine = next(ways[-1], None)
        if machine is None:
            path.pop()
            ways.pop()
            if chosen:
                chosen.pop()
            continue
        holder = holders.get(machine)
        # A machine whose holder is in another layer is left to the seats of the layer before that.
        if not left >> machine & 1 or (holder is not None and layers[holder] != layers[path[-1]] + 1):
            continue
        left ^= 1 << machine
        chosen.append(machine)
        if holder is None:
            for each, its in zip(path, chosen, strict=True):
                given[each] = its
                holders[its] = each
            return left
        path.append(holder)
        ways.append(positions(candidates[holder] & left))
    return left
