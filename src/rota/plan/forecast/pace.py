"""The starts of equal jobs, one after another, on places that become free one by one.

A million jobs cost no more than a few: between two moments at which a place joins, starts repeat with the length
of a job.
"""

from __future__ import annotations

from bisect import bisect_right
from math import ceil, inf
from typing import Final

#: Shorter jobs are no different for whoever waits.
LEAST_S: Final = 1e-3
#: Places join at no more moments than this; those of later ones join together.
_MOST_STAGES: Final = 64


class Pace:
    """When each of so many equal jobs begins; the first has number 0."""

    __slots__ = ("_firsts", "_turns", "length", "number")

    def __init__(self, free: list[float], length: float, number: int) -> None:
        """`free`: when each place is free, ascending, one at least; `inf`: nobody knows."""
        self.length = max(LEAST_S, length)
        self.number = number
        self._firsts: list[int] = []  #: the number of the first job of each stage
        self._turns: list[list[float]] = []  #: and when each place is free at first in it
        if self.length == inf:  # each place has one of them, and then nobody knows
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
        """When the job with this number begins; `inf`: nobody knows."""
        stage = bisect_right(self._firsts, place) - 1
        turns = self._turns[stage]
        rounds, turn = divmod(place - self._firsts[stage], len(turns))
        return turns[turn] + rounds * self.length if rounds else turns[turn]

    def begun_before(self, moment: float) -> int:
        """How many begin earlier than this."""
        low, high = 0, self.number
        while low < high:
            middle = (low + high) // 2
            if self.start(middle) < moment:
                low = middle + 1
            else:
                high = middle
        return low

    def free_after(self, free: list[float], number: int) -> list[float]:
        """When the places are free again after so many of the jobs, if they were free like this before."""
        if not number:
            return free
        stage = bisect_right(self._firsts, number - 1) - 1
        turns = self._turns[stage]
        rounds, rest = divmod(number - self._firsts[stage], len(turns))
        later = [turn + (rounds + (at < rest)) * self.length if rounds or at < rest else turn
                 for at, turn in enumerate(turns)]  # fmt: skip
        return sorted([*later, *free[len(turns) :]])


def _stages(free: list[float]) -> list[tuple[list[float], float]]:
    """The moments at which places join, and those of the next."""
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
