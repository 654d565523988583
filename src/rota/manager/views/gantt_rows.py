"""Places bars on the lines of a host so that none overlap. Pure.

What had cores of its own is drawn on them. Of the rest only the host is known: it gets the first lines that are
free for all its time, in order of start, which finds room whenever there was room.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from itertools import accumulate
from typing import NamedTuple


class ChartBar(NamedTuple):
    """Some cores of a host from one moment to another."""

    host: str
    start: float
    end: float
    wanted: int  #: lines
    #: host → the lines that it had; empty: any
    known: Mapping[str, Sequence[int]] = {}


def placed(bars: Sequence[ChartBar], cores: Mapping[str, int]) -> list[dict[str, list[int]]]:
    """For each bar, host → lines; nothing where there is no room, or nothing is wanted."""
    found: list[dict[str, list[int]]] = [{} for _ in bars]
    by_host: defaultdict[str, list[int]] = defaultdict(list)
    for number, bar in enumerate(bars):
        for host in bar.known or (bar.host,):
            by_host[host].append(number)
    for host, numbers in by_host.items():
        lines = _Lines(cores.get(host, 0))
        for number in numbers:
            bar = bars[number]
            for line in bar.known.get(host, ()):
                lines.reserved[line].append((bar.start, bar.end))
        lines.settle()
        for number in sorted(numbers, key=lambda number: (bars[number].start, number)):
            bar = bars[number]
            known = bar.known.get(host)
            mine = lines.free_for(bar) if known is None else [line for line in known if line < lines.count]
            if mine:
                found[number][host] = mine
    return found


def lines_needed(bars: Iterable[ChartBar]) -> dict[str, int]:
    """For each host, how many lines its bars need at least."""
    needed: dict[str, int] = {}
    changes: defaultdict[str, list[tuple[float, int]]] = defaultdict(list)
    for bar in bars:
        for host, lines in bar.known.items():
            needed[host] = max(needed.get(host, 0), max(lines, default=-1) + 1)
        if not bar.known and bar.end > bar.start:
            changes[bar.host] += [(bar.start, bar.wanted), (bar.end, -bar.wanted)]
        needed.setdefault(bar.host, min(1, bar.wanted))
    for host, its in changes.items():
        at_once = 0
        for _moment, more in sorted(its):
            at_once += more
            needed[host] = max(needed.get(host, 0), at_once)
    return needed


class _Lines:
    """The lines of one host, from the first bar to the last."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._free = list(range(count))  #: in order
        self._taken: list[tuple[float, int]] = []  #: (until, line)
        #: line → spans in which it is known to be in use
        self.reserved: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)

    def settle(self) -> None:
        """Call when everything is reserved: sorts by start, each with the latest end so far."""
        for spans in self.reserved.values():
            spans.sort()
            latest = accumulate((end for _start, end in spans), max)
            spans[:] = [(start, end) for (start, _end), end in zip(spans, latest, strict=True)]

    def free_for(self, bar: ChartBar) -> list[int]:
        """Takes lines that are free for the whole bar."""
        while self._taken and self._taken[0][0] <= bar.start:
            insort(self._free, heappop(self._taken)[1])
        mine: list[int] = []
        for line in self._free:
            if len(mine) == bar.wanted:
                break
            if not self.reserved or not self._in_use(line, bar):
                mine.append(line)
        if len(mine) < bar.wanted:
            return []
        for line in mine:
            del self._free[bisect_left(self._free, line)]
            heappush(self._taken, (bar.end, line))
        return mine

    def _in_use(self, line: int, bar: ChartBar) -> bool:
        """Is the line known to be in use during this bar?"""
        spans = self.reserved.get(line, ())
        at = bisect_left(spans, (bar.end,))
        return at > 0 and spans[at - 1][1] > bar.start
