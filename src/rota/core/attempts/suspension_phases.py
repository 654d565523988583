"""The phases of an attempt from running to suspended and back, and the times that follow.

Suspended time counts neither as walltime nor as used time.
"""

from __future__ import annotations

from typing import Final

from rota.core.jobs.job import Job, Lease
from rota.plan.placement.given import Pause
from rota.plan.placement.leases import Away

FREEZING: Final = "freezing"  #: its processes are being frozen; the plan still counts it as running
FROZEN: Final = "frozen"  #: suspended
QUEUED: Final = "queued"  #: told to resume, it waits for its cores
THAWING: Final = "thawing"  #: its processes are being thawed; the plan counts it as running

#: Phases in which its processes are, or may be, frozen.
STILL: Final = frozenset((FROZEN, QUEUED, THAWING))

_RUNS: Final = Pause()
#: An estimate with less than this left says little.
_LEAST_S: Final = 60.0


def pause_of(lease: Lease) -> Pause:
    """The suspension of an attempt; its phase is empty while it runs."""
    return lease.given.pause or _RUNS if lease.given is not None else _RUNS


def is_suspended(lease: Lease) -> bool:
    """Have all its hosts reported its processes as frozen?"""
    return pause_of(lease).phase in STILL and pause_of(lease).since is not None


def has_given_up(lease: Lease) -> bool:
    """May others have its cores?"""
    pause = pause_of(lease)
    return not pause.keeps and pause.phase in (FROZEN, QUEUED)


def suspended_s(lease: Lease, now: float) -> float:
    """Seconds for which it has been suspended so far."""
    pause = pause_of(lease)
    return pause.before_s + (max(0.0, now - pause.since) if pause.since is not None else 0.0)


def walltime_of(job: Job, lease: Lease) -> float | None:
    """Seconds, without suspended time, after which it is ended; None: no walltime."""
    given = lease.given
    return given.walltime_s if given is not None and given.walltime_s is not None else job.spec.walltime_s


def left_s(job: Job, lease: Lease, now: float) -> float:
    """Seconds that it is expected to run from now on."""
    began = lease.started_at if lease.started_at is not None else lease.leased_at
    active_s = max(0.0, now - began - suspended_s(lease, now))
    walltime_s = walltime_of(job, lease)
    if walltime_s is not None:
        return max(1.0, walltime_s - active_s)
    return max(_LEAST_S, job.size.time_s - active_s)


def away(job: Job) -> Away | None:
    """The plan's view of a job that gave up its cores; None: it has them."""
    lease = job.lease
    if lease is None or not has_given_up(lease):
        return None
    pause = pause_of(lease)
    since = pause.since if pause.since is not None else lease.leased_at
    hard = walltime_of(job, lease) is not None
    return Away(since, left_s(job, lease, since), hard, pause.phase == QUEUED)


def expected_end(job: Job) -> float | None:
    """The end of its walltime, if that was moved by a suspension or a new walltime; else None."""
    lease = job.lease
    if lease is None or lease.given is None or lease.started_at is None:
        return None
    pause = pause_of(lease)
    if not pause.before_s and pause.since is None and not lease.given.more_s and not _moved(job, lease):
        return None
    limit = walltime_of(job, lease) or job.size.time_s
    return lease.started_at + pause.before_s + limit


def _moved(job: Job, lease: Lease) -> bool:
    return lease.given is not None and lease.given.changed
