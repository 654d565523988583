"""Finds ended attempts by time without an index by time, which would cost something at every end.

For each hour the store keeps the blocks of job ids in which attempts ended. Jobs end roughly in the order of
their ids, so these blocks are few and rarely change. An attempt that lasted less than 2^n hours can overlap a
window only if it ended at most 2^n hours after it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct

from rota.core.rows import EndRow
from rota.plan.placement.given import Given
from rota.plan.size import Size

_HOUR_S: Final = 3600
_BLOCK_BITS: Final = 12
#: Nothing lasts for longer than 2^20 hours, and no clock shows more seconds than the latest.
_LONGEST: Final = 20
_LATEST: Final = 253_402_300_799.0
#: Size of the cache of places already on disk.
_REMEMBERED: Final = 10_000

#: (span, hour, block of job ids)
Place = tuple[int, int, int]


class PastAttempt(Struct, frozen=True, array_like=True, gc=False):
    """An ended attempt of a job that still exists."""

    job: int
    number: int
    host: str
    started_at: float
    ended_at: float
    outcome: str
    spec: int
    group: str
    size: Size | None = None  #: where it was not that of the specification
    given: Given | None = None  #: what the planner gave it
    pipeline_element: str | None = None


class PastSum(Struct, frozen=True, array_like=True, gc=False):
    """The sum of attempts with the same hosts, first slice and last slice."""

    place: str  #: a host; or hosts with their cores, as JSON
    first: int  #: the slice in which they begin
    last: int  #: and that in which they end
    spec: int  #: the specification that tells their cores; 0: it is known
    attempts: int
    failed: int
    cpus: float  #: hundredths of cores, or attempts where the specification or the place tells them
    begin_s: float  #: the sum of their starts after the beginning, each times its cpus
    end_s: float  #: and of their ends
    ended: int  #: so many of them ended before the window does


def place_of(job: int, started_at: float | None, ended_at: float | None) -> Place | None:
    """The place of an attempt; None: its end is unknown."""
    if ended_at is None or not 0.0 < ended_at <= _LATEST:
        return None
    hours = 0.0 if started_at is None else (ended_at - started_at) / _HOUR_S
    span = 0 if hours < 1.0 else min(int(hours).bit_length(), _LONGEST)
    return span, int(ended_at) // _HOUR_S, job >> _BLOCK_BITS


class Places:
    """Finds the places of a batch that are not on disk yet. For the writer's thread only."""

    def __init__(self) -> None:
        self._written: set[Place] = set()

    def new(self, ends: Iterable[EndRow]) -> list[Place]:
        found = {place_of(row.job, row.started_at, row.ended_at) for row in ends}
        return [place for place in found if place is not None and place not in self._written]

    def written(self, places: Iterable[Place]) -> None:
        if len(self._written) > _REMEMBERED:
            self._written.clear()
        self._written.update(places)


def hours_of(since: float, until: float) -> list[tuple[int, int, int]]:
    """(span, first hour, last hour) of the ends of all attempts that overlap a window."""
    first, last = _hour(since), _hour(until)
    return [(span, first, last + (1 << span)) for span in range(_LONGEST + 1)]


def hours_of_ends(since: float, until: float) -> list[tuple[int, int, int]]:
    """The same for attempts that end within the window, of any length."""
    return [(span, _hour(since), _hour(until)) for span in range(_LONGEST + 1)]


def id_ranges(blocks: Iterable[int]) -> list[tuple[int, int]]:
    """Blocks as ranges of job ids, both ends inclusive."""
    ranges: list[list[int]] = []
    for block in sorted(blocks):
        if ranges and ranges[-1][1] == block - 1:
            ranges[-1][1] = block
        else:
            ranges.append([block, block])
    return [(low << _BLOCK_BITS, ((high + 1) << _BLOCK_BITS) - 1) for low, high in ranges]


def overlaps(row: Any, since: float, until: float) -> bool:
    """Does an attempt overlap a window?"""
    return (
        row.outcome not in (None, "void")
        and row.started_at is not None
        and row.ended_at is not None
        and row.started_at < until
        and row.ended_at > since
    )


def _hour(at: float) -> int:
    return int(min(max(at, 0.0), _LATEST)) // _HOUR_S
