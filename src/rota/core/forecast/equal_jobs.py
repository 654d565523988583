"""Expected times of equal jobs that wait one after the other, computed by position instead of one by one."""

from __future__ import annotations

from bisect import bisect_left
from math import inf

from rota.core.forecast.expectation import FAR, NO_ESTIMATE, Expected, Unknown
from rota.plan.forecast.waiting_jobs import FAR_S, EqualJobs, Stretch
from rota.plan.policy.limits import Limit
from rota.plan.size import Capacity, Size


class PlacedJobs:
    """A run of equal jobs and their expected times."""

    __slots__ = ("_firsts", "_stretches", "_wall", "last", "line", "possible", "trouble")

    def __init__(self, line: EqualJobs, trouble: Unknown, last: dict[str, int], *, possible: bool = True) -> None:
        self.line = line
        self.trouble = trouble
        self.last = last  #: report group → position of its last job
        self.possible = possible
        self._stretches: list[Stretch] = []
        self._firsts: list[int] = []
        self._wall = 0.0

    def take(self, stretches: list[Stretch], wall: float) -> None:
        self._stretches, self._wall = stretches, wall
        self._firsts = [stretch.first for stretch in stretches]

    def of(self, id: int) -> Expected | None:
        place = bisect_left(self.line.jobs, id)
        if place >= len(self.line.jobs) or self.line.jobs[place] != id:
            return None
        return self.at(place)

    def at(self, place: int) -> Expected:
        """The expected times of the job at this position."""
        stage = bisect_left(self._firsts, place + 1) - 1
        if stage < 0 or not self.possible:
            return Expected(unknown=self.trouble)
        stretch = self._stretches[stage]
        if place - stretch.first >= stretch.pace.number:
            return Expected(unknown=FAR)
        start = stretch.pace.start(place - stretch.first)
        if start == inf:
            return Expected(unknown=self.trouble if self.line.length is not None else NO_ESTIMATE)
        if start - self._wall > FAR_S:
            return Expected(unknown=FAR)
        if self.line.length is None:
            return Expected(start, None, NO_ESTIMATE)
        return Expected(start, start + self.line.length)


def units(limit: Limit | None, wanted: int, exclusive: bool) -> int:
    """Units that a job takes of a limit; exclusive use takes all."""
    most = capacity(limit)
    return max(wanted, most) if exclusive and most else wanted


def capacity(limit: Limit | None) -> int | None:
    """Units of a limit on all hosts together; None: unlimited."""
    if limit is None:
        return None
    return sum(units for _host, units in limit.hosts) if limit.hosts else limit.capacity


def fitting(size: Size, host: Capacity) -> int:
    """How many jobs of this size fit on an empty host."""
    parts = ((size.cpus, host.cpus), (size.mem, host.mem), (size.disk, host.disk), (size.gpus, host.gpus))
    fits = [has // wants for wants, has in parts if wants]
    return min(fits) if size.cpus else min([*fits, host.zero_cpu_jobs])
