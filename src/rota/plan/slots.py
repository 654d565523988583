"""What is free, over time: a list of spans, each with the set of resources that nobody holds or has planned.

A search looks at a span's number of free resources before it looks at the set, jumps past spans that
can not be part of an answer, and remembers from when on there is no use in looking.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from math import inf

from rota.plan.shapes import Shape

#: Chooses resources out of those that are free from a start to an end; 0 if they do not suffice.
Pick = Callable[[int, float, float], int]


class Slots:
    """Spans of time and the resources that are free in each; the last has no end."""

    def __init__(self, free: int, start: float = -inf) -> None:
        self.times = [start]
        self.free = [free]
        self.counts = [free.bit_count()]

    @classmethod
    def within(cls, free: int, start: float, end: float) -> Slots:
        """These resources from a start to an end, and nothing besides."""
        slots = cls(0)
        slots.give(free, start, end)
        return slots

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
        """This moment, or the beginning of a span that is less than two microseconds later.

        Quotas and limits count in microseconds: what they say is over may go on for a fraction of one.
        """
        at = bisect_left(self.times, moment)
        return self.times[at] if at < len(self.times) and self.times[at] - moment < 2e-6 else moment

    def forget_before(self, now: float) -> None:
        """What was free in the past is of no interest, once there is much of it."""
        past = self.index(now)
        if past > 64:
            del self.times[:past], self.free[:past], self.counts[:past]

    def _split(self, moment: float) -> int:
        """The span that begins at this moment; there is one from now on."""
        at = bisect_left(self.times, moment)
        if at == len(self.times) or self.times[at] != moment:
            self.times.insert(at, moment)
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
        free, counts = self.free, self.counts
        for at in range(first, last):
            free[at] ^= what
            counts[at] += more
        self._merge(last)
        self._merge(first)

    def cover(self, what: int, start: float, end: float) -> None:
        """Nobody else may have these resources from start to end, whether they are free or not."""
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
        """These resources are free from start to end, whether they were before or not."""
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
        """Join a span with the one before if they are alike."""
        if 0 < at < len(self.times) and self.free[at] == self.free[at - 1]:
            del self.times[at], self.free[at], self.counts[at]

    def common(self, start: float, end: float) -> int:
        """What is free all the time from start to end."""
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
        pick: Pick | None = None,
        also: Sequence[float] = (),
    ) -> tuple[float, int] | None:
        """The first start from `after` on, before `before`, from which it fits for so long, and what to take.

        A start is `after`, the beginning of a span, or one of the moments in `also` (ascending).
        """
        times, free, counts = self.times, self.free, self.counts
        number = len(times)
        eligible, least = shape.eligible, shape.least
        choose = shape.choose
        start = after
        first = self.index(after)
        while start < before:
            # The window begins in the span `first`; `at` runs to its end.
            common = eligible
            end = start + length
            at = first
            blocked = -1
            while True:
                if counts[at] < least:
                    blocked = at
                    break
                common &= free[at]
                at += 1
                if at == number or times[at] >= end:
                    break
            if blocked >= 0:
                # No window may touch this span.
                first = blocked + 1
                if first == number:
                    return None
                while counts[first] < least:
                    first += 1
                    if first == number:
                        return None
                start = times[first]
                continue
            if common.bit_count() >= least:
                taken = choose(common) if pick is None else pick(common, start, end)
                if taken:
                    return start, taken
                if also:
                    nearest = bisect_right(also, start)
                    if nearest < len(also) and (first + 1 == number or also[nearest] < times[first + 1]):
                        start = also[nearest]
                        continue
            # Look back from the end of the window for the span that spoils it.
            first = max(first + 1, self._spoiler(first, at, shape, exact=pick is None))
            if first >= number:
                return None
            start = times[first]
        return None

    def _spoiler(self, first: int, after_last: int, shape: Shape, *, exact: bool) -> int:
        """The first span after `first` from which on the window up to `after_last` might do.

        Every window that begins earlier reaches at least as far, so it does not fit either.
        """
        free, eligible, least = self.free, shape.eligible, shape.least
        common = eligible
        at = after_last - 1
        while at > first:
            common &= free[at]
            if common.bit_count() < least or (exact and not shape.may_fit(common)):
                return at + 1
            at -= 1
        return first + 1


class Counted(Slots):
    """Only numbers matter: which resources a job takes is nobody's concern."""

    def __init__(self, free: int, start: float = -inf) -> None:
        self.times = [start]
        self.free = [free]
        self.counts = self.free  # the same list: what is free is a number

    def copy(self) -> Slots:
        new = Counted(0)
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
        pick: Pick | None = None,
        also: Sequence[float] = (),
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
