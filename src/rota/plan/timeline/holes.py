"""Which planned jobs might start earlier after resources became free, so that only those are planned again.

A job can only start earlier in a *run*: a span in which enough resources are free throughout, and which touches a
hole, that is, a span that became free since the job was planned. The run must be long enough, or reach the job's
own place. Only numbers of resources are compared: a job with such a run may improve, a job without one cannot.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from math import inf
from typing import Final, NamedTuple

from rota.plan.timeline.slots import Slots

#: So many spans of the plan are examined together.
_PIECE: Final = 16
_ENDLESS: Final = 2000  #: the octave of a run without an end
_AT_ONCE: Final = 64  #: so many numbers are compared by one call of C code


class _Span(NamedTuple):
    """A span in which resources became free. Its bound stays valid: later holes are spans of their own."""

    start: float
    end: float
    longest: float  #: upper bound for the length of runs through it


class _Level:
    """Spans in which at least so many resources may be free, by octave of the length of their runs."""

    __slots__ = ("known", "spans")

    def __init__(self) -> None:
        self.known = 0  #: how many holes were examined
        self.spans: dict[int, list[_Span]] = {}

    def add(self, span: _Span) -> None:
        octave = _octave(span.longest)
        spans = self.spans.get(octave)
        if spans is None:
            self.spans[octave] = [span]
        else:
            insort(spans, span)

    def change(self, octave: int, changed: dict[int, _Span]) -> None:
        """The runs through these spans of an octave are shorter than assumed, or do not exist."""
        spans = self.spans[octave]
        gone = []
        for at, span in changed.items():
            if _octave(span.longest) == octave and span.longest:
                spans[at] = span
            else:
                gone.append(at)
        for at in reversed(gone):
            del spans[at]
        if not spans:
            del self.spans[octave]
        for at in gone:
            if changed[at].longest:
                self.add(changed[at])


class Holes:
    """Holes, the spans that became free, and the runs through them."""

    def __init__(self, slots: Slots, now: float, freed: list[tuple[float, float]]) -> None:
        self._slots = slots
        self._now = now
        self.starts: list[float] = []  #: holes, merged and ascending
        self.ends: list[float] = []
        #: holes as they came, with the largest free number in each then; it can only have decreased
        self._freed: list[tuple[float, float, int]] = []
        self._levels: dict[int, _Level] = {}  #: by number of resources, rounded down
        #: job that found nothing better since the last hole → resources it might take instead of its own
        self.spare: dict[object, int] = {}
        for start, end in set(freed):
            self.add(start, end)

    def __bool__(self) -> bool:
        return bool(self.starts)

    def add(self, start: float, end: float) -> None:
        """Another span became free."""
        start = max(start, self._now)
        if start >= end:
            return
        self.spare.clear()
        times, counts = self._slots.times, self._slots.counts
        most = max(counts[bisect_right(times, start) - 1 : bisect_left(times, end)])
        self._freed.append((start, end, most))
        first = bisect_left(self.ends, start)
        last = bisect_right(self.starts, end)
        if first < last:
            start, end = min(start, self.starts[first]), max(end, self.ends[last - 1])
        self.starts[first:last] = [start]
        self.ends[first:last] = [end]

    def touches(self, start: float, end: float) -> bool:
        """Is there a hole between start and end?"""
        at = bisect_right(self.ends, start)
        return at < len(self.starts) and self.starts[at] < end

    def may_improve(self, number: int, length: float, before: float) -> float | None:
        """From when on to search for a start before this one; None: there is none."""
        octave = number.bit_length() - 3
        floor = number if octave <= 0 else number >> octave << octave
        level = self._levels.get(floor)
        if level is None:
            level = self._levels[floor] = _Level()
        if level.known < len(self._freed):
            self._look(level, floor)
        if not level.spans:
            return None
        found, times = before, self._slots.times
        least = _octave(length)
        for octave, spans in list(level.spans.items()):
            if octave < least:
                continue
            shorter: dict[int, _Span] = {}
            for at, (start, end, longest) in enumerate(spans):
                if start - length >= found:
                    break
                if longest < length:
                    continue
                first, last = bisect_right(times, start) - 1, bisect_left(times, end)
                begin, longest = self._run(first, last, number, length)
                if begin < found:
                    found = begin
                elif begin == inf:
                    if number != floor:
                        longest = self._run(first, last, floor, inf)[1]
                    shorter[at] = _Span(start, end, longest)
            if shorter:
                level.change(octave, shorter)
        return found if found < before else None

    def near(self, number: int, length: float, place: tuple[float, float], own: int, last: float) -> float | None:
        """From when on to search for a start up to `last` that overlaps its own place, where it holds `own`."""
        start, end = place
        times, counts = self._slots.times, self._slots.counts
        here = bisect_left(times, start)
        if number <= own and last <= start and counts[here - 1] < number:
            return None
        begin, at = start, here
        earliest = max(start - length, self._now)
        while at and counts[at - 1] >= number and begin > earliest:
            at -= 1
            begin = times[at]
        begin = max(begin, earliest)
        if begin > last or not self.touches(begin, max(end, last + length)):
            return None
        if number <= own:
            return begin if begin < start or last > start else None
        run, at = begin, here if here < len(times) and times[here] == start else here - 1
        while at < len(times) and times[at] < run + length:
            if counts[at] + (own if times[at] < end else 0) < number:
                if at + 1 == len(times):
                    return None
                run = times[at + 1]
                if run > last:
                    return None
            at += 1
        return run

    def _look(self, level: _Level, floor: int) -> None:
        """Examine the holes that came since the last call."""
        new = [(start, end) for start, end, most in self._freed[level.known :] if most >= floor]
        level.known = len(self._freed)
        for start, end in merged(new, self._now) if len(new) > 1 else new:
            self._enter(level, floor, start, end)

    def _enter(self, level: _Level, floor: int, start: float, end: float) -> None:
        """Enter a hole in pieces, so that a search need not examine all of a long one."""
        times = self._slots.times
        first = bisect_right(times, start) - 1
        last = bisect_left(times, end)
        for at in range(first, last, _PIECE):
            longest = self._run(at, min(at + _PIECE, last), floor, inf)[1]
            if longest:
                until = times[at + _PIECE] if at + _PIECE < last else end
                level.add(_Span(max(start, times[at]), until, longest))

    def _run(self, first: int, last: int, number: int, length: float) -> tuple[float, float]:
        """The start of the first long enough run through these spans (inf: none), and the longest length."""
        times, counts, now = self._slots.times, self._slots.counts, self._now
        if max(counts[first:last], default=0) < number:
            return inf, 0.0
        longest, at = 0.0, first
        while at < last:
            if counts[at] < number:
                at += 1
                continue
            left = at
            if at == first:
                left = _run_start(counts, max(bisect_right(times, now) - 1, 0), at, number)
            begin = times[left] if times[left] > now else now
            enough = bisect_left(times, begin + length, at)
            at = _run_end(counts, at, enough, number)
            if at == enough:  # not followed any further
                return begin, length
            longest = max(longest, times[at] - begin)
        return inf, longest


def _run_end(counts: list[int], at: int, end: int, number: int) -> int:
    """The first index from here to `end` with less than this number, else `end`."""
    while at < end:
        until = min(at + _AT_ONCE, end)
        if min(counts[at:until]) < number:
            while counts[at] >= number:
                at += 1
            return at
        at = until
    return at


def _run_start(counts: list[int], first: int, at: int, number: int) -> int:
    """The first index of the run that ends before `at`, which is not before `first`."""
    while at > first:
        since = max(at - _AT_ONCE, first)
        if min(counts[since:at]) < number:
            while counts[at - 1] >= number:
                at -= 1
            return at
        at = since
    return at


def _octave(length: float) -> int:
    return int(length).bit_length() if length < inf else _ENDLESS


def merged(spans: list[tuple[float, float]], now: float) -> list[tuple[float, float]]:
    """The union of these spans, from now on, as disjoint spans."""
    found: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        start = max(start, now)
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        elif start < end:
            found.append((start, end))
    return found
