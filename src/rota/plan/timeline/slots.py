"""Free resources over time: a list of spans (slots), each with the resources that no job holds or will hold.

A search compares the number of free resources before the set, and jumps past slots that cannot be part of an
answer.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import accumulate
from math import inf
from operator import and_, itemgetter
from typing import NamedTuple

from rota.plan.snapshot import state
from rota.plan.timeline.shapes import Shape

#: Chooses among the resources that are free from a start to an end; 0 if they are not enough.
Pick = Callable[[int, float, float], int]


class Choosing(NamedTuple):
    """A custom choice, for jobs that need more than free resources."""

    pick: Pick
    also: Sequence[float] = ()  #: moments at which more may be chosen, ascending


@state
class Slots:
    """Spans of time and the free resources of each; the last span has no end."""

    times: list[float]
    free: list[int]
    counts: list[int]

    def __init__(self, free: int, start: float = -inf) -> None:
        self.times = [start]
        self.free = [free]
        self.counts = [free.bit_count()]

    @classmethod
    def within(cls, free: int, start: float, end: float) -> Slots:
        """Slots in which only these resources are free, from start to end."""
        slots = cls(0)
        slots.give(free, start, end)
        return slots

    @classmethod
    def holding(cls, free: int, now: float, held: Iterable[tuple[float, float, int]]) -> Slots:
        """Slots from now on in which these (start, end, resources) are held. They may overlap."""
        spans = [(max(start, now), end, mask & free) for start, end, mask in held if mask and start < end > now]
        found = cls(free, now)
        if not found._sweep(spans):
            for start, end, mask in spans:
                found.cover(mask, start, end)
        return found

    def _sweep(self, spans: list[tuple[float, float, int]]) -> bool:
        """Take all these spans in one pass over time. False: some overlap, and nothing was done."""
        changes = [(start, -mask.bit_count(), mask) for start, _end, mask in spans]
        changes += [(end, mask.bit_count(), mask) for _start, end, mask in spans if end < inf]
        changes.sort(key=itemgetter(0))
        times, frees, counts = self.times[:], self.free[:], self.counts[:]
        free, count = frees[0], counts[0]
        for moment, more, mask in changes:
            free ^= mask
            count += more
            if moment == times[-1]:
                frees[-1], counts[-1] = free, count
            else:
                times.append(moment)
                frees.append(free)
                counts.append(count)
        # What two spans hold at once is flipped twice, so that more seems free than their numbers leave.
        if counts != [each.bit_count() for each in frees]:
            return False
        self.times, self.free, self.counts = times, frees, counts
        return True

    def copy(self) -> Slots:
        new = Slots.__new__(type(self))
        new.times, new.free, new.counts = self.times[:], self.free[:], self.counts[:]
        return new

    def __len__(self) -> int:
        return len(self.times)

    def index(self, moment: float) -> int:
        """The span in which this moment lies."""
        return bisect_right(self.times, moment) - 1

    def following(self, moment: float) -> float:
        """When the next span begins."""
        at = bisect_right(self.times, moment)
        return self.times[at] if at < len(self.times) else inf

    def snapped(self, moment: float) -> float:
        """This moment, or the start of a span less than two microseconds later.

        Quotas and limits count whole microseconds, so their ends may be a fraction of one early.
        """
        at = bisect_left(self.times, moment)
        return self.times[at] if at < len(self.times) and self.times[at] - moment < 2e-6 else moment

    def forget_before(self, now: float) -> None:
        """Drop past spans once there are many."""
        past = self.index(now)
        if past > 64:
            del self.times[:past], self.free[:past], self.counts[:past]

    def _split(self, moment: float) -> int:
        """The index of the span that begins at this moment; a span is split if needed."""
        times = self.times
        at = bisect_left(times, moment)
        if at == len(times) or times[at] != moment:
            times.insert(at, moment)
            self.free.insert(at, self.free[at - 1])
            self.counts.insert(at, self.counts[at - 1])
        return at

    def take(self, what: int, start: float, end: float) -> None:
        """These resources, all of them free, are held from start to end."""
        self._flip(what, -what.bit_count(), start, end)

    def give(self, what: int, start: float, end: float) -> None:
        """These resources, which were held, are free from start to end."""
        self._flip(what, what.bit_count(), start, end)

    def _flip(self, what: int, more: int, start: float, end: float) -> None:
        if start >= end:
            return
        first = self._split(start)
        last = self._split(end) if end != inf else len(self.times)
        if last - first == 1:
            self.free[first] ^= what
            self.counts[first] += more
        else:
            self.free[first:last] = [free ^ what for free in self.free[first:last]]
            self.counts[first:last] = [count + more for count in self.counts[first:last]]
        self._merge(last)
        self._merge(first)

    def cover(self, what: int, start: float, end: float) -> None:
        """Mark these resources as taken from start to end, whether they are free or not."""
        if start >= end:
            return
        first = self._split(start)
        last = self._split(end) if end != inf else len(self.times)
        rest = ~what
        for at in range(first, last):
            free = self.free[at] = self.free[at] & rest
            self.counts[at] = free.bit_count()
        self._merge(last)
        self._merge(first)

    def uncover(self, what: int, start: float, end: float) -> None:
        """Mark these resources as free from start to end, whether they were free before or not."""
        if start >= end:
            return
        first = self._split(start)
        last = self._split(end) if end != inf else len(self.times)
        for at in range(first, last):
            free = self.free[at] = self.free[at] | what
            self.counts[at] = free.bit_count()
        self._merge(last)
        self._merge(first)

    def _merge(self, at: int) -> None:
        """Join a span with the one before if both have the same free resources."""
        free = self.free
        if 0 < at < len(free) and free[at] == free[at - 1]:
            del self.times[at], free[at], self.counts[at]

    def common(self, start: float, end: float) -> int:
        """The resources that are free all the time from start to end."""
        at = self.index(start)
        found = self.free[at]
        times, free = self.times, self.free
        at += 1
        while at < len(times) and times[at] < end:
            found &= free[at]
            at += 1
        return found

    def earliest(
        self,
        shape: Shape,
        length: float,
        *,
        after: float,
        before: float = inf,
        choosing: Choosing | None = None,
    ) -> tuple[float, int] | None:
        """The first start from `after` on, before `before`, from which it fits for so long, and what to take.

        A start is `after`, the beginning of a span, or one of the moments at which more may be chosen.
        """
        times, free, counts = self.times, self.free, self.counts
        number, least, eligible = len(times), shape.least, shape.eligible
        pick, also = choosing or (None, ())
        start, first = after, self.index(after)
        # The window is the spans from `first` up to `at`. Its intersection is kept like a queue of two
        # stacks: `since` is that of the spans from `middle` on, `until` those of the last one, two, … before.
        middle = at = first
        since = eligible
        until: list[int] = []
        while start < before:
            end = start + length
            last = bisect_left(times, end, at)
            if last == first:
                last += 1
            if last > at:
                if min(counts[at:last]) < least:
                    # No window may touch these spans.
                    first = last - 1
                    while counts[first] >= least:
                        first -= 1
                    first += 1
                    while first < number and counts[first] < least:
                        first += 1
                    if first == number:
                        return None
                    start, middle, at = times[first], first, first
                    since, until = eligible, []
                    continue
                since = reduce(and_, free[at:last], since)
                at = last
            common = since if first >= middle else since & until[middle - 1 - first]
            if common.bit_count() >= least:
                taken = shape.choose(common) if pick is None else pick(common, start, end)
                if taken:
                    return start, taken
                if also:
                    nearest = bisect_right(also, start)
                    if nearest < len(also) and (first + 1 == number or also[nearest] < times[first + 1]):
                        start = also[nearest]
                        continue
            # Every window that begins before the span that breaks this one includes that span too.
            first += 1
            if first < middle:
                first = middle - _so_far(until[: middle - first], since, shape, exact=pick is None)
            if first >= middle:
                until = list(accumulate(reversed(free[first:at]), and_))
                middle, since = at, eligible
                first = at - _so_far(until, eligible, shape, exact=pick is None)
            if first == number:
                return None
            start = times[first]
        return None


def _so_far(sets: Sequence[int], within: int, shape: Shape, *, exact: bool) -> int:
    """How many of these sets, each a subset of the one before, may fit."""
    low, high = 0, len(sets)
    while low < high:
        middle = (low + high + 1) >> 1
        common = sets[middle - 1] & within
        if common.bit_count() >= shape.least and (not exact or shape.may_fit(common)):
            low = middle
        else:
            high = middle - 1
    return low


@state
class CountedSlots(Slots):
    """Slots that count resources without distinguishing them."""

    def __init__(self, free: int, start: float = -inf) -> None:
        self.times = [start]
        self.free = [free]
        self.counts = self.free  # the same list: free resources are a number

    def copy(self) -> Slots:
        new = CountedSlots(0)
        new.times = self.times[:]
        new.free = new.counts = self.free[:]
        return new

    def forget_before(self, now: float) -> None:
        past = self.index(now)
        if past > 64:
            del self.times[:past], self.free[:past]

    def _split(self, moment: float) -> int:
        at = bisect_left(self.times, moment)
        if at == len(self.times) or self.times[at] != moment:
            self.times.insert(at, moment)
            self.free.insert(at, self.free[at - 1])
        return at

    def _add(self, more: int, start: float, end: float) -> None:
        if start >= end:
            return
        first = self._split(start)
        last = self._split(end) if end != inf else len(self.times)
        free = self.free
        for at in range(first, last):
            free[at] += more
        self._merge(last)
        self._merge(first)

    def take(self, what: int, start: float, end: float) -> None:
        self._add(-what, start, end)

    def give(self, what: int, start: float, end: float) -> None:
        self._add(what, start, end)

    def _merge(self, at: int) -> None:
        if 0 < at < len(self.times) and self.free[at] == self.free[at - 1]:
            del self.times[at], self.free[at]

    def common(self, start: float, end: float) -> int:
        first = self.index(start)
        last = bisect_left(self.times, end)
        return min(self.free[first : max(last, first + 1)])

    def earliest(
        self,
        shape: Shape,
        length: float,
        *,
        after: float,
        before: float = inf,
        choosing: Choosing | None = None,
    ) -> tuple[float, int] | None:
        times, free = self.times, self.free
        number, least = len(times), shape.least
        start, at = after, self.index(after)
        while start < before:
            end = start + length
            while free[at] >= least:
                at += 1
                if at == number or times[at] >= end:
                    return start, least
            while free[at] < least:
                at += 1
                if at == number:
                    return None
            start = times[at]
        return None
