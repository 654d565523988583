"""The starts of equal jobs that follow each other on places that become free one by one.

A million jobs cost no more than a few: while no place joins, starts repeat after the length of a job.
"""

from __future__ import annotations

from bisect import bisect_right
from math import ceil, inf
from typing import Final

#: Shorter jobs count as this long, so that starts always advance.
LEAST_S: Final = 1e-3
#: Places join at no more moments than this; those of later ones join together.
_MOST_STAGES: Final = 64


class Pace:
    """When each of `number` equal jobs starts, counted from 0."""

    __slots__ = ("_firsts", "_turns", "length", "number")

    def __init__(self, free: list[float], length: float, number: int) -> None:
        """`free`: when each place is free, ascending, at least one; `inf`: unknown."""
        self.length = max(LEAST_S, length)
        self.number = number
        self._firsts: list[int] = []  #: index of the first job of each stage
        self._turns: list[list[float]] = []  #: when each place is first free in that stage
        if self.length == inf:  # each place gets one job; later starts are unknown
            self._firsts, self._turns = [0], [free]
            return
        begun, turns = 0, list[float]()
        for joining, until in _stages(free):
            turns = sorted([*turns, *joining])
            self._firsts.append(begun)
            self._turns.append(turns)
            if until == inf:
                break
            rounds = [max(0, ceil((until - turn) / self.length)) for turn in turns]
            begun += sum(rounds)
            if begun >= number:
                break
            turns = [turn + n * self.length for turn, n in zip(turns, rounds, strict=True)]

    def start(self, place: int) -> float:
        """When the job with this index starts; `inf`: unknown."""
        stage = bisect_right(self._firsts, place) - 1
        turns = self._turns[stage]
        rounds, turn = divmod(place - self._firsts[stage], len(turns))
        return turns[turn] + rounds * self.length if rounds else turns[turn]

    def begun_before(self, moment: float) -> int:
        """How many start before this moment."""
        low, high = 0, self.number
        while low < high:
            middle = (low + high) // 2
            if self.start(middle) < moment:
                low = middle + 1
            else:
                high = middle
        return low

    def free_after(self, free: list[float], number: int) -> list[float]:
        """When the places, free as given before, are free again after the first `number` jobs."""
        if not number:
            return free
        stage = bisect_right(self._firsts, number - 1) - 1
        turns = self._turns[stage]
        rounds, rest = divmod(number - self._firsts[stage], len(turns))
        later = [turn + (rounds + (at < rest)) * self.length if rounds or at < rest else turn
                 for at, turn in enumerate(turns)]  # fmt: skip
        return sorted([*later, *free[len(turns) :]])


def _stages(free: list[float]) -> list[tuple[list[float], float]]:
    """The places that join at the same moment, and the moment at which the next ones join."""
    step = max(1, -(-len(free) // _MOST_STAGES))
    if step == 1 or free[0] == free[-1]:
        groups: list[list[float]] = []
        for moment in free:
            if groups and groups[-1][0] == moment:
                groups[-1].append(moment)
            else:
                groups.append([moment])
    else:
        groups = [
            [free[min(at + step, len(free)) - 1]] * len(free[at : at + step]) for at in range(0, len(free), step)
        ]
    found = []
    for at, joining in enumerate(groups):
        found.append((joining, groups[at + 1][0] if at + 1 < len(groups) else inf))
    return found
