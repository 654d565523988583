"""An amount over time that changes in steps: how much of something is in use when.

Moments and amounts are integers, so that undoing an addition restores exactly the earlier state.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from math import inf
from typing import Final, NamedTuple

from rota.plan.snapshot import state

_REMEMBERED: Final = 1000


class Excess(NamedTuple):
    """The last span of a window with too much in use."""

    at: int  #: a moment in it
    until: int  #: the first possible start after it
    amount: int


@state
class StepFunction:
    """A step function, zero except where something was added. Neighbouring steps always differ."""

    _times: list[float]  #: each amount holds from its time to the next
    _amounts: list[int]
    #: (most, length) → (from, to, n): no start in [from, to) was possible when `_freed` had n entries
    _known: dict[tuple[int, int], tuple[int, float, int]]
    _freed: list[int]  #: starts of removed amounts

    def __init__(self) -> None:
        self._times, self._amounts = [-inf], [0]
        self._known, self._freed = {}, []

    def add(self, start: int, end: int, amount: int) -> None:
        """Add an amount, which may be negative, during [start, end)."""
        if start >= end or not amount:
            return
        if amount < 0 and self._known:
            self._freed.append(start)
            if len(self._freed) > _REMEMBERED:
                self._forget()
        first, last = self._edge(start), self._edge(end)
        amounts = self._amounts
        for step in range(first, last):
            amounts[step] += amount
        for edge in (last, first):
            if amounts[edge] == amounts[edge - 1]:
                del amounts[edge], self._times[edge]

    def _edge(self, moment: int) -> int:
        """The index of the step that begins at this moment; a step is split if needed."""
        step = bisect_left(self._times, moment)
        if step == len(self._times) or self._times[step] != moment:
            self._times.insert(step, moment)
            self._amounts.insert(step, self._amounts[step - 1])
        return step

    def over(
        self, start: int, end: int, most: int, *, length: int | None = None, bound: float = inf
    ) -> Excess | None:
        """The last span of [start, end) with more than `most` (≥ 0) in use; None: there is none.

        Its `until` is the first later start from which the whole length fits. If only the time before `bound`
        counts, the window ends there, and `length` is the full length.
        """
        times, amounts = self._times, self._amounts
        first, step = bisect_right(times, start) - 1, bisect_left(times, end) - 1
        if first == step:
            if amounts[step] <= most:
                return None
        elif max(amounts[first : step + 1]) <= most:
            return None
        while amounts[step] <= most:
            step -= 1
        if bound == inf:
            until = self._later(start, step, most, end - start)
        else:
            until = self._fits(step, times[step], most, end - start if length is None else length, bound)
        return Excess(int(max(times[step], start)), int(until), amounts[step])

    def _later(self, start: int, step: int, most: int, length: int) -> float:
        """The same as `_fits`, resumed from the answer to an earlier question with the same amount and length."""
        since, key, begin = self._times[step], (most, length), start
        known = self._known.get(key)
        if known is not None and known[0] <= start <= known[1]:
            begin, reached, seen = known
            # A start is possible now only if something was freed while it would run.
            reached = min([reached, *(moment - length for moment in self._freed[seen:])])
            if reached < start:
                begin = start  # the time between was not examined since
            if reached > since:
                since, step = reached, bisect_right(self._times, reached) - 1
        found = self._fits(step, since, most, length)
        if len(self._known) >= _REMEMBERED:
            self._forget()
        self._known[key] = (begin, found, len(self._freed))
        return found

    def _forget(self) -> None:
        self._known.clear()
        self._freed.clear()

    def _fits(self, step: int, since: float, most: int, length: int, bound: float = inf) -> float:
        """The first possible start from `since` on, which lies in this step."""
        times, amounts = self._times, self._amounts
        last = len(times) - 1
        while True:
            if amounts[step] > most:
                while amounts[step] > most:  # the last step of all is zero
                    step += 1
                since = times[step]
            if since >= bound:
                return bound
            until = min(since + length, bound)
            while amounts[step] <= most:
                if step == last or times[step + 1] >= until:
                    return since
                step += 1

    @property
    def last(self) -> float:
        """From this moment on nothing is in use; -inf: nothing ever was."""
        return self._times[-1]
