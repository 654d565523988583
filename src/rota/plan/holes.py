"""Where waiting jobs might do better after something became free, so that only those are tried again.

A *run* is a stretch of time, touching something that became free, in which at least so many resources are
free throughout. A job can only begin earlier inside a run that is long enough, or that reaches its own
place; whoever has no such run need not be looked at.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from math import inf

from rota.plan.slots import Slots


class Holes:
    """Spans that became free, and the runs through them, by number of resources."""

    def __init__(self, slots: Slots, now: float, freed: list[tuple[float, float]]) -> None:
        self._slots = slots
        self._now = now
        self.starts: list[float] = []  #: spans that became free, merged and ascending
        self.ends: list[float] = []
        #: number → runs, ascending: where they begin and end, and the longest up to each
        self._runs: dict[int, tuple[list[float], list[float], list[float]]] = {}
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
        for number, (begins, ends, longest) in self._runs.items():
            first = bisect_left(ends, start)
            last = bisect_right(begins, end)
            low = min(start, begins[first]) if first < last else start
            high = max(end, ends[last - 1]) if first < last else end
            # Runs grow into their neighbours only where something became free, which lies in between.
            new = self._find(number, low, high)
            if new:
                first = min(first, bisect_left(ends, new[0][0]))
                last = max(last, bisect_right(begins, new[-1][1]))
            begins[first:last] = [run[0] for run in new]
            ends[first:last] = [run[1] for run in new]
            del longest[first:]
            self._measure(begins, ends, longest)

    def may_improve(self, number: int, length: float, start: float) -> float | None:
        """From when on to look for an earlier start than this one; None: there is none."""
        found = self._runs.get(number)
        if found is None:
            found = self._runs[number] = ([], [], [])
            for begin, end in zip(self.starts, self.ends, strict=True):
                for run in self._find(number, begin, end):
                    if not found[1] or run[0] > found[1][-1]:
                        found[0].append(run[0])
                        found[1].append(run[1])
            self._measure(*found)
        begins, ends, longest = found
        before = bisect_left(begins, start)
        if not before:
            return None
        if longest[before - 1] >= length:
            return begins[bisect_left(longest, length)]
        if ends[before - 1] >= start:
            return begins[before - 1]  # it reaches the job's own place
        return None

    def touches(self, start: float, end: float) -> bool:
        """Did something become free between start and end?"""
        at = bisect_right(self.ends, start)
        return at < len(self.starts) and self.starts[at] < end

    @staticmethod
    def _measure(begins: list[float], ends: list[float], longest: list[float]) -> None:
        most = longest[-1] if longest else -inf
        for at in range(len(longest), len(begins)):
            most = max(most, ends[at] - begins[at])
            longest.append(most)

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
