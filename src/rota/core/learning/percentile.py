"""A percentile of the newest values. A value weighs less the more values have come after it."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import chain
from typing import Final

#: Age is counted in values, not days: a changed program is relearned after as many runs, whether they take a
#: second or a year, and one that runs once a month is not forgotten. A value weighs half as much as one that came
#: `ERA` later; with 64, about the newest 190 decide.
ERA: Final = 64
#: Eras kept. Older values would weigh less than 1/256 each and together less than one in a hundred and thirty, too
#: little to move a 95th percentile.
ERAS: Final = 8
KEPT: Final = ERA * ERAS

#: One in `TAIL` jobs may exceed the percentile.
TAIL: Final = 20


class DecayingValues:
    """The newest values of a group. Each weighs twice as much as one of the era before."""

    __slots__ = ("_by_age", "_by_value", "_first_era", "_weight")

    def __init__(self) -> None:
        self._by_age: deque[tuple[float, int]] = deque()  # (value, era)
        self._by_value: list[tuple[float, int]] = []
        self._first_era = 0  # its values weigh 1; integer weights make sums independent of their order
        self._weight = 0

    def __len__(self) -> int:
        return len(self._by_age)

    def __iter__(self) -> Iterator[float]:
        return (value for value, _ in self._by_age)

    def extend(self, values: Iterable[tuple[float, int]], era: int) -> None:
        """Add (value, era) pairs, oldest first and none older than those present; drop values too old for this
        era."""
        oldest = first_era(era)
        if oldest != self._first_era:
            self._forget(oldest)
        new = [pair for pair in values if pair[1] >= oldest]
        self._by_age.extend(new)
        if len(new) > 8:
            self._by_value += new
            self._by_value.sort()
        else:
            for pair in new:
                insort(self._by_value, pair)
        for _, born in new:
            self._weight += 1 << born - oldest

    def _forget(self, oldest: int) -> None:
        while self._by_age and self._by_age[0][1] < oldest:
            self._weight -= 1 << self._by_age.popleft()[1] - self._first_era
        self._by_value = [pair for pair in self._by_value if pair[1] >= oldest]
        self._weight >>= oldest - self._first_era
        self._first_era = oldest

    def largest(self) -> float:
        return self._by_value[-1][0]

    def percentile(self) -> float:
        """The value that the next one stays below with a probability of 95 %; the largest, if there are few."""
        return _percentile(reversed(self._by_value), self._first_era, self._weight, self._by_age[-1][1])

    def between(self, bounds: DecayingValues) -> tuple[float, float]:
        """The lowest and highest value of the percentile if further values are known only by upper bounds.

        Both must have been extended in the same era, and one of them must not be empty.
        """
        first, weight = self._first_era, self._weight + bounds._weight
        newest = max(each._by_age[-1][1] for each in (self, bounds) if each)
        known, unknown = reversed(self._by_value), reversed(bounds._by_value)
        as_nothing = ((0.0, born) for _, born in bounds._by_value)
        least = _percentile(chain(reversed(self._by_value), as_nothing), first, weight, newest)
        return least, _percentile(merge(known, unknown, reverse=True), first, weight, newest)


def _percentile(falling: Iterable[tuple[float, int]], first: int, weight: int, newest: int) -> float:
    """The percentile of (value, era) pairs in descending order. Values of era `first` weigh 1."""
    # The next value counts too, hence the added weight. Without it the second largest of 20 values would be called
    # their 95th percentile, although one in ten would exceed it.
    allowed = (weight + (1 << newest - first)) // TAIL
    found: float | None = None
    for value, born in falling:
        allowed -= 1 << born - first
        if found is not None and allowed < 0:
            break
        found = value
    return found or 0.0


def first_era(era: int) -> int:
    """The oldest era that still counts in this one."""
    return max(0, era - ERAS + 1)
