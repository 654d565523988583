"""An amount over time that changes in steps: how much of something is in use when.

Moments and amounts are whole numbers, so that taking something away again leaves exactly what was before.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from math import inf
from typing import NamedTuple


class Over(NamedTuple):
    """The last time within a window at which there was too much."""

    at: int  #: an instant of it
    until: int  #: when there is not too much any more
    amount: int


class Steps:
    """Zero but where something was added. Neighbouring steps always differ."""

    __slots__ = ("_amounts", "_times")

    def __init__(self) -> None:
        self._times: list[float] = [-inf]  #: each amount holds from here to the next
        self._amounts: list[int] = [0]

    def add(self, start: int, end: int, amount: int) -> None:
        """So much more (or less) during [start, end)."""
        if start >= end or not amount:
            return
        first, last = self._edge(start), self._edge(end)
        amounts = self._amounts
        for step in range(first, last):
            amounts[step] += amount
        for edge in (last, first):
            if amounts[edge] == amounts[edge - 1]:
                del amounts[edge], self._times[edge]

    def _edge(self, moment: int) -> int:
        """The step that begins at this moment, made if there is none."""
        step = bisect_left(self._times, moment)
        if step == len(self._times) or self._times[step] != moment:
            self._times.insert(step, moment)
            self._amounts.insert(step, self._amounts[step - 1])
        return step

    def over(self, start: int, end: int, most: int) -> Over | None:
        """Where in [start, end) there is more than `most` (≥ 0), or None."""
        times, amounts = self._times, self._amounts
        first, step = bisect_right(times, start) - 1, bisect_left(times, end) - 1
        if first == step:
            if amounts[step] <= most:
                return None
        elif max(amounts[first : step + 1]) <= most:
            return None
        while amounts[step] <= most:
            step -= 1
        after = step + 1
        while amounts[after] > most:  # the last step of all is zero
            after += 1
        return Over(int(max(times[step], start)), int(times[after]), amounts[step])

    @property
    def last(self) -> float:
        """From here on nothing is in use; -inf: nothing is at all."""
        return self._times[-1]
