"""How well a schedule served its jobs: slowdown, flow, wait, makespan and utilisation."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import Final

from msgspec import Struct

#: Shorter jobs count as this long, so that a wait of seconds is not a large slowdown.
SHORTEST_S: Final = 10.0


class ScheduledJob(Struct, frozen=True, gc=False):
    """When one job ran, and on how many processors."""

    submit: float
    start: float
    end: float
    procs: int


class Metrics(Struct, frozen=True, kw_only=True):
    """Averages over all jobs, makespan and utilisation. All are 0 without jobs."""

    avg_bounded_slowdown: float = 0
    avg_flow_s: float = 0
    avg_wait_s: float = 0
    makespan_s: float = 0  #: from the first submission to the last end
    utilisation: float = 0  #: of all processors, from the first submission to the last end


def measure(jobs: Sequence[ScheduledJob], processors: int) -> Metrics:
    """The metrics of a schedule on so many processors."""
    if not jobs:
        return Metrics()
    makespan = max(job.end for job in jobs) - min(job.submit for job in jobs)
    used = fsum((job.end - job.start) * job.procs for job in jobs)
    return Metrics(
        avg_bounded_slowdown=plain(fsum(map(bounded_slowdown, jobs)) / len(jobs)),
        avg_flow_s=plain(fsum(job.end - job.submit for job in jobs) / len(jobs)),
        avg_wait_s=plain(fsum(job.start - job.submit for job in jobs) / len(jobs)),
        makespan_s=plain(makespan),
        utilisation=plain(used / (processors * makespan)) if makespan > 0 else 0,
    )


def bounded_slowdown(job: ScheduledJob) -> float:
    """The time from submission to end divided by the run time (at least `SHORTEST_S`); never below 1."""
    return max(1.0, (job.end - job.submit) / max(SHORTEST_S, job.end - job.start))


def plain(number: float) -> float:
    """The number, as an int if it is whole."""
    return int(number) if number == int(number) else number
