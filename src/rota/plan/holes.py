"""Where waiting jobs might do better after something became free, so that only those are tried again.

A *run* is a stretch of time, touching something that became free, in which at least so many resources are
free throughout. A job can only begin earlier inside a run that is long enough, or that reaches its own
place; whoever has no such run need not be looked at.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from math import inf

from rota.plan.slots import Slots


class _Runs:
    """Where the runs of one number begin and end, ascending, and the longest up to each."""

    __slots__ = ("begins", "ends", "known", "longest")

    def __init__(self) -> None:
        self.begins: list[float] = []
        self.ends: list[float] = []
        self.longest: list[float] = []
        self.known = 0  #: so many changes are taken into account

    def measure(self, first: int) -> None:
        most = self.longest[first - 1] if first else -inf
        for at in range(first, len(self.begins)):
            most = max(most, self.ends[at] - self.begins[at])
            self.longest.append(most)


class Holes:
    """Spans that became free, and the runs through them, by number of resources."""

    def __init__(self, slots: Slots, now: float, freed: list[tuple[float, float]]) -> None:
        self._slots = slots
        self._now = now
        self.starts: list[float] = []  #: spans that became free, merged and ascending
        self.ends: list[float] = []
        self._runs: dict[int, _Runs] = {}  #: by number of resources
        self._changes: list[tuple[float, float]] = []
        for start, end in freed:
            self._merge(start, end)

    def __bool__(self) -> bool:
        return bool(self.starts)

    def _merge(self, start: float, end: float) -> None:
        start = max(start, self._now)
        if start >= end:
            return
        first = bisect_left(self.ends, start)
        last = bisect_right(self.starts, end)
        if first < last:
            start, end = min(start, self.starts[first]), max(end, self.ends[last - 1])
        self.starts[first:last] = [start]
        self.ends[first:last] = [end]

    def add(self, start: float, end: float) -> None:
        """This became free as well."""
        self._merge(start, end)
        self.changed(start, end)

    def changed(self, start: float, end: float) -> None:
        """Something was taken or given from start to end."""
        self._changes.append((start, end))

    def may_improve(self, number: int, length: float, start: float) -> float | None:
        """From when on to look for an earlier start than this one; None: there is none."""
        runs = self._runs.get(number)
        if runs is None:
            runs = self._runs[number] = self._all(number)
        elif runs.known != len(self._changes):
            self._catch_up(number, runs)
        begins = runs.begins
        before = bisect_left(begins, start)
        if not before:
            return None
        if runs.longest[before - 1] >= length:
            return begins[bisect_left(runs.longest, length)]
        if runs.ends[before - 1] >= start:
            return begins[before - 1]  # it reaches the job's own place
        return None

    def _all(self, number: int) -> _Runs:
        runs = _Runs()
        for begin, end in zip(self.starts, self.ends, strict=True):
            for run in self._find(number, begin, end):
                if not runs.ends or run[0] > runs.ends[-1]:
                    runs.begins.append(run[0])
                    runs.ends.append(run[1])
        runs.known = len(self._changes)
        runs.measure(0)
        return runs

    def _catch_up(self, number: int, runs: _Runs) -> None:
        """Look again where something changed since."""
        begins, ends = runs.begins, runs.ends
        for start, end in self._changes[runs.known :]:
            first = bisect_left(ends, start)
            last = bisect_right(begins, end)
            low = min(start, begins[first]) if first < last else start
            high = max(end, ends[last - 1]) if first < last else end
            new = self._find(number, low, high)
            if new:
                first = min(first, bisect_left(ends, new[0][0]))
                last = max(last, bisect_right(begins, new[-1][1]))
            begins[first:last] = [run[0] for run in new]
            ends[first:last] = [run[1] for run in new]
            del runs.longest[first:]
        runs.known = len(self._changes)
        runs.measure(len(runs.longest))

    def touches(self, start: float, end: float) -> bool:
        """Did something become free between start and end?"""
        at = bisect_right(self.ends, start)
        return at < len(self.starts) and self.starts[at] < end

    def reaches_back(self, number: int, start: float) -> float:
        """Since when so many have been free without a break until this moment."""
        slots = self._slots
        at = slots.index(start)
        if slots.times[at] < start:
            at += 1  # what is free just before this moment is free in the span in which it lies
        while at and slots.counts[at - 1] >= number and start > self._now:
            at -= 1
            start = max(slots.times[at], self._now)
        return start

    def _find(self, number: int, low: float, high: float) -> list[tuple[float, float]]:
        """The runs that touch a span that became free, between two moments."""
        slots = self._slots
        times, counts = slots.times, slots.counts
        last_slot = len(times) - 1
        found: list[tuple[float, float]] = []
        span = bisect_right(self.ends, low)
        reached = -inf
        while span < len(self.starts) and self.starts[span] <= high:
            begin, end = max(self.starts[span], reached), self.ends[span]
            span += 1
            if begin >= end:
                continue
            at = slots.index(begin)
            while at <= last_slot and times[at] < end:
                if counts[at] < number:
                    at += 1
                    continue
                left = at
                while left and counts[left - 1] >= number and times[left] > self._now:
                    left -= 1
                while at <= last_slot and counts[at] >= number:
                    at += 1
                reached = times[at] if at <= last_slot else inf
                run = (max(times[left], self._now), reached)
                if not found or found[-1] != run:
                    found.append(run)
        return found
