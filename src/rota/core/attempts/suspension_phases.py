"""Where an attempt is on its way from running to suspended and back, and what that means for its time.

Suspended time is no time: it counts neither as walltime nor as used.
"""

from __future__ import annotations

from typing import Final

from rota.core.jobs.job import Job, Lease
from rota.plan.placement import Away, Pause

FREEZING: Final = "freezing"  #: its processes are being stopped; for the plan it runs
FROZEN: Final = "frozen"  #: suspended
QUEUED: Final = "queued"  #: it was told to resume, and waits for its cores
THAWING: Final = "thawing"  #: its processes are being let go on; for the plan it runs

#: In these its processes stand still, or may.
STILL: Final = frozenset((FROZEN, QUEUED, THAWING))

_RUNS: Final = Pause()
#: An estimate that is nearly over says little.
_LEAST_S: Final = 60.0


def of_lease(lease: Lease) -> Pause:
    return lease.given.pause or _RUNS if lease.given is not None else _RUNS


def is_suspended(lease: Lease) -> bool:
    """Have all its hosts said that its processes stand still?"""
    return of_lease(lease).phase in STILL and of_lease(lease).since is not None


def has_given_up(lease: Lease) -> bool:
    """May others have its cores?"""
    pause = of_lease(lease)
    return not pause.keeps and pause.phase in (FROZEN, QUEUED)


def suspended_s(lease: Lease, now: float) -> float:
    """How long it has been suspended so far."""
    pause = of_lease(lease)
    return pause.before_s + (max(0.0, now - pause.since) if pause.since is not None else 0.0)


def walltime_of(job: Job, lease: Lease) -> float | None:
    """After which it is ended, suspended time not counted."""
    given = lease.given
    return given.walltime_s if given is not None and given.walltime_s is not None else job.spec.walltime_s


def left_s(job: Job, lease: Lease, now: float) -> float:
    """How long it is expected to run from now on, if it runs."""
    began = lease.started_at if lease.started_at is not None else lease.leased_at
    active_s = max(0.0, now - began - suspended_s(lease, now))
    walltime_s = walltime_of(job, lease)
    if walltime_s is not None:
        return max(1.0, walltime_s - active_s)
    return max(_LEAST_S, job.size.time_s - active_s)


def away(job: Job) -> Away | None:
    """What the plan must know of a job that has given up its cores; None: it has not."""
    lease = job.lease
    if lease is None or not has_given_up(lease):
        return None
    pause = of_lease(lease)
    since = pause.since if pause.since is not None else lease.leased_at
    hard = walltime_of(job, lease) is not None
    return Away(since, left_s(job, lease, since), hard, pause.phase == QUEUED)


def expected_end(job: Job) -> float | None:
    """When its walltime is over, if that is another one than it asked for or it was suspended; else None."""
    lease = job.lease
    if lease is None or lease.given is None or lease.started_at is None:
        return None
    pause = of_lease(lease)
    if not pause.before_s and pause.since is None and not lease.given.more_s and not _moved(job, lease):
        return None
    limit = walltime_of(job, lease) or job.size.time_s
    return lease.started_at + pause.before_s + limit


def _moved(job: Job, lease: Lease) -> bool:
    return lease.given is not None and lease.given.changed
