"""What to think of leases that come from a backup.

Since the backup was made they may have ended, and their runner may have been told to forget them. So
that a runner does not hold one proves nothing: only its word about that very lease does.
"""

from __future__ import annotations

from collections.abc import Iterable

from rota.core.jobs.job import Job, Reason
from rota.core.states import State
from rota.core.world import World, move

#: Keys of `Changes.meta`: when the database was restored, from what (if not from a backup), JSON of the leases it
#: held then, and the restoration that a manager has already started from.
RESTORED_AT = "restored_at"
RESTORED_FROM = "restored_from"
RESTORED_LEASES = "restored_leases"
RESTORED_SEEN = "restored_seen"


def mark_restored(world: World, leases: Iterable[tuple[int, int]]) -> list[Job]:
    """Remember which leases of a world that was just recovered come from a backup, as (job, attempt);
    the jobs of those that are still open."""
    found = []
    for id, attempt in leases:
        job = world.jobs.get(id)
        if job is not None and job.lease is not None and job.attempt == attempt:
            job.lease.restored = True
            found.append(job)
    return found


def declare_lost(world: World, jobs: list[Job], *, why: str) -> None:
    """Declare these jobs lost at once: whoever had them is not expected back.

    A runner that comes all the same and holds one revives it; if it does not hold it, the attempt ends as
    lost and its retries decide.
    """
    for job in jobs:
        assert job.lease is not None
        job.reason = Reason("kill_requested" if job.kill else "lost", why)
        move(world, job, State.LOST)
        world.runners[job.lease.runner].silent = True
