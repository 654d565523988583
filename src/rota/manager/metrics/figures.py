"""Figures of the manager for monitoring: what it counts, and how long things take."""

from __future__ import annotations

import os
import resource
from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from rota.core.states import State
from rota.manager.loop import clock
from rota.manager.metrics.gauges import labelled
from rota.manager.metrics.histogram import QUICK, SLOW, Histogram
from rota.plan.planner.endangered import endangered
from rota.wire.views import MetricsView

if TYPE_CHECKING:
    from rota.core.changes import Changes
    from rota.core.jobs.job import Job
    from rota.manager.loop.service import Manager

_SHARES: Final = (0.5, 0.9, 0.99)
_KEPT: Final = 1000
#: Position of the start in a row of `Changes.ends`.
_STARTED_AT: Final = 7
BLOCKED: Final = State.BLOCKED.label


class Figures:
    """Counted since this manager started."""

    def __init__(self, since: float) -> None:
        self.settled: dict[str, int] = {}  #: jobs by how they ended
        self.started = 0  #: attempts
        self._since = since
        self._running: dict[int, int] = {}  #: job → the attempt of it that was counted
        self.waits: deque[float] = deque(maxlen=_KEPT)  #: seconds from ready to running
        self.decisions: deque[float] = deque(maxlen=_KEPT)  #: seconds of one turn of the engine
        self.plans: deque[float] = deque(maxlen=_KEPT)  #: the same, of those that had a plan to keep
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
        """Count the attempts that began. Of a short one only the end is told, which says when it began."""
        for job, attempt, started_at, *_ in changes.starts:
            self._running[job] = attempt
            self._began(jobs.get(job), started_at)
        for row in changes.ends:
            job, attempt, started_at = row[0], row[1], row[_STARTED_AT]
            known = self._running.pop(job, None)
            if known != attempt and started_at is not None and started_at >= self._since:
                self._began(jobs.get(job), started_at)

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


async def metrics_view(manager: Manager) -> MetricsView:
    """Everything at this moment. What has to be counted is counted beside the loop."""
    gather = labelled(manager.world, clock.now())
    found = _metrics_view(manager)
    found.labelled = await manager.read(gather)
    return found


def _metrics_view(manager: Manager) -> MetricsView:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    world, figures = manager.world, manager.figures
    planner, disk = world.placement.planner, os.statvfs(manager.home.path)
    totals = {
        "commits": float(manager.writer.commits),
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "started": float(figures.started),
    }
    totals |= {f"ended_{state}": float(number) for state, number in figures.settled.items()}
    return MetricsView(
        counts=manager.queries.status([]).counts,
        totals=totals,
        gauges={
            "runners": float(sum(1 for runner in world.runners.values() if runner.connected)),
            "live_jobs": float(world.live),
            "connections": float(len(manager.peers)),
            "resident_bytes": float(resident_bytes()),
            "disk_full": float(manager.writer.full),
            "paused": float(world.paused),
            "draining": float(world.draining),
            "start_time_seconds": manager.started_at,
            "last_commit_time_seconds": manager.writer.last_at,
            "disk_free_bytes": float(disk.f_bavail * disk.f_frsize),
            "reservations": float(len(planner.reserved) if planner is not None else 0),
            "reservations_in_danger": float(sum(1 for _ in endangered(planner)) if planner is not None else 0),
        },
        quantiles={
            "commit": quantiles(manager.writer.times),
            "decision": quantiles(figures.decisions),
            "plan": quantiles(figures.plans),
            "wait": quantiles(figures.waits),
        },
        histograms={
            "commit": manager.writer.histogram.view(),
            "decision": figures.decision_histogram.view(),
            "plan": figures.plan_histogram.view(),
            "wait": figures.wait_histogram.view(),
        },
    )


def quantiles(values: Iterable[float]) -> dict[str, float]:
    """Some quantiles of these; nothing where there are none."""
    found = sorted(values)
    return {str(share): found[min(len(found) - 1, int(share * len(found)))] for share in _SHARES} if found else {}


def resident_bytes() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
