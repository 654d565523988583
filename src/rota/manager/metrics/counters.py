"""Figures that the manager counts for monitoring: how many jobs end, and how long things take."""

from __future__ import annotations

import resource
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final

from rota.core.changes import Changes
from rota.core.jobs.job import Job
from rota.core.states import State
from rota.wire.views import HistogramView

_SHARES: Final = (0.5, 0.9, 0.99)
_KEPT: Final = 1000
BLOCKED: Final = State.BLOCKED.label
#: Of turns of the engine and commits.
QUICK: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
#: Of jobs that wait.
SLOW: Final = (0.1, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0, 604_800.0)


class Histogram:
    """How often something took how long, in the buckets of a Prometheus histogram."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, seconds: float) -> None:
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._sum += seconds

    def view(self) -> HistogramView:
        return HistogramView(list(self._bounds), self._counts[:], self._sum)


class Counters:
    """Counted since this manager started."""

    def __init__(self, since: float) -> None:
        self.settled: dict[str, int] = {}  #: jobs by how they ended
        self.started = 0  #: attempts
        self._since = since
        self._running: dict[int, int] = {}  #: job → the attempt of it that was counted
        self.waits: deque[float] = deque(maxlen=_KEPT)  #: seconds from ready to running
        self.decisions: deque[float] = deque(maxlen=_KEPT)  #: seconds of one turn of the engine
        self.plans: deque[float] = deque(maxlen=_KEPT)  #: the same, of turns with a plan
        self.wait_histogram = Histogram(SLOW)
        self.decision_histogram = Histogram(QUICK)
        self.plan_histogram = Histogram(QUICK)

    def decided(self, seconds: float, *, planned: bool) -> None:
        """A turn took so long."""
        self.decisions.append(seconds)
        self.decision_histogram.add(seconds)
        if planned:
            self.plans.append(seconds)
            self.plan_histogram.add(seconds)

    def committed(self, changes: Changes, jobs: Mapping[int, Job]) -> None:
        """Count the attempts that started. A runner reports only the end of a short one, with its start time."""
        for start in changes.starts:
            self._running[start.job] = start.number
            self._began(jobs.get(start.job), start.started_at)
        for end in changes.ends:
            known, started_at = self._running.pop(end.job, None), end.started_at
            if known != end.number and started_at is not None and started_at >= self._since:
                self._began(jobs.get(end.job), started_at)

    def _began(self, job: Job | None, at: float) -> None:
        self.started += 1
        if job is not None and job.ready_at is not None and job.ready_at <= at:
            self.waits.append(at - job.ready_at)
            self.wait_histogram.add(at - job.ready_at)

    def ended(self, state: str) -> None:
        """A job is settled. One that is blocked has not ended: a retry of what it waits for lets it run."""
        if state == BLOCKED:
            return
        self.settled[state] = self.settled.get(state, 0) + 1


def quantiles(values: Iterable[float]) -> dict[str, float]:
    """Some quantiles of these; nothing where there are none."""
    found = sorted(values)
    return {str(share): found[min(len(found) - 1, int(share * len(found)))] for share in _SHARES} if found else {}


def resident_bytes() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
