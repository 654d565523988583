"""The name of the lease of a job, as effects carry it.

The records in `leases` are loaded by clients and runners, which need neither jobs nor the planner.
"""

from __future__ import annotations

from rota.core.jobs.job import Job, Lease


def ref_of(job: Job, lease: Lease) -> tuple[int, int, int]:
    """(job, attempt, token): the name of the job's lease."""
    return job.id, job.attempt, lease.token
