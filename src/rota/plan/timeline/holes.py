"""Where waiting jobs might do better after something became free, so that only those are tried again.

A job can only do better in a stretch of time that touches something that became free since it was placed,
and in which enough is free throughout: a *run*, long enough, or one that reaches the job's own place. Only
numbers are compared here: whoever has such a run may do better, whoever has none can not.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from math import inf
from typing import Final, NamedTuple

from rota.plan.timeline.slots import Slots

#: So many spans of the plan are looked at together.
_PIECE: Final = 16
_ENDLESS: Final = 2000  #: the octave of a run without an end


class _Span(NamedTuple):
    """A span in which something became free. What is known of it holds on: what becomes free later is another."""

    start: float
    end: float
    longest: float  #: no run through it lasts longer


class _Level:
    """The spans in which at least so many may be free for some time, by octave of that time, ascending."""

    __slots__ = ("known", "spans")

    def __init__(self) -> None:
        self.known = 0  #: so much of what became free was looked at
        self.spans: dict[int, list[_Span]] = {}

    def add(self, span: _Span) -> None:
        octave = _octave(span.longest)
        spans = self.spans.get(octave)
        if spans is None:
            self.spans[octave] = [span]
        else:
            insort(spans, span)

    def change(self, octave: int, changed: dict[int, _Span]) -> None:
        """These places of an octave are of a shorter time now, or of none."""
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
    """Spans that became free, and the runs through them."""

    def __init__(self, slots: Slots, now: float, freed: list[tuple[float, float]]) -> None:
        self._slots = slots
        self._now = now
        self.starts: list[float] = []  #: spans that became free, merged and ascending
        self.ends: list[float] = []
        #: the same as it came, with the most that was free in it then: it has only become less
        self._freed: list[tuple[float, float, int]] = []
        self._levels: dict[int, _Level] = {}  #: by number of resources, rounded down
        #: who found nothing better since something became free last → what they might exchange their own for
        self.spare: dict[object, int] = {}
        for start, end in set(freed):
            self.add(start, end)

    def __bool__(self) -> bool:
        return bool(self.starts)

    def add(self, start: float, end: float) -> None:
        """This became free as well."""
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
        """Did something become free between start and end?"""
        at = bisect_right(self.ends, start)
        return at < len(self.starts) and self.starts[at] < end

    def may_improve(self, number: int, length: float, before: float) -> float | None:
        """From when on to look for a start before this one; None: there is none."""
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
        """From when on to look for a start up to `last` that makes use of its own place, where it holds `own`."""
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
        """Look at what became free since."""
        new = [(start, end) for start, end, most in self._freed[level.known :] if most >= floor]
        level.known = len(self._freed)
        for start, end in merged(new, self._now) if len(new) > 1 else new:
            self._enter(level, floor, start, end)

    def _enter(self, level: _Level, floor: int, start: float, end: float) -> None:
        """In pieces, so that not all of a long span is looked at where a part would do."""
        times = self._slots.times
        first = bisect_right(times, start) - 1
        last = bisect_left(times, end)
        for at in range(first, last, _PIECE):
            longest = self._run(at, min(at + _PIECE, last), floor, inf)[1]
            if longest:
                until = times[at + _PIECE] if at + _PIECE < last else end
                level.add(_Span(max(start, times[at]), until, longest))

    def _run(self, first: int, last: int, number: int, length: float) -> tuple[float, float]:
        """Where the first run begins that is so long (inf: none is) and goes through these; the longest."""
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
                while left and counts[left - 1] >= number and times[left] > now:
                    left -= 1
            begin = times[left] if times[left] > now else now
            while at < len(times) and counts[at] >= number:
                at += 1
            lasts = (times[at] if at < len(times) else inf) - begin
            if lasts >= length:
                return begin, lasts
            if lasts > longest:
                longest = lasts
        return inf, longest


def _octave(length: float) -> int:
    return int(length).bit_length() if length < inf else _ENDLESS


def merged(spans: list[tuple[float, float]], now: float) -> list[tuple[float, float]]:
    """The same time as fewer spans, none of which meet."""
    found: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        start = max(start, now)
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        elif start < end:
            found.append((start, end))
    return found
