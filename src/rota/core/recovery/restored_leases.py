"""Leases that come from a backup.

An attempt may have ended after the backup was made, and its runner may have forgotten it. So a runner that does
not hold the lease proves nothing; only its report about that very lease does.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from rota.core.attempts.noop_jobs import is_noop_runner
from rota.core.jobs.job import Job, Reason
from rota.core.restart import Restart
from rota.core.states import State
from rota.core.world import World, move

#: Keys of `Changes.meta`: when the database was restored; from what, if not from a backup; its leases then, as
#: JSON; and the last restoration that a manager has started from.
RESTORED_AT = "restored_at"
RESTORED_FROM = "restored_from"
RESTORED_LEASES = "restored_leases"
RESTORED_SEEN = "restored_seen"


def doubt_restored(world: World, restart: Restart) -> None:
    """In a restored database, jobs that were leased at the time of the backup may have ended since."""
    meta = restart.snapshot.meta
    restored_at = meta.get(RESTORED_AT)
    if not restored_at:
        return
    leases = msgspec.json.decode(meta.get(RESTORED_LEASES) or "[]", type=list[tuple[int, int]])
    jobs = mark_restored(world, leases)
    if meta.get(RESTORED_SEEN) != restored_at:
        origin = meta.get(RESTORED_FROM) or "a backup"
        why = f"restored at {restored_at} from {origin} in which it was leased; what became of it is unknown"
        declare_lost(world, jobs, why=why)


def mark_restored(world: World, leases: Iterable[tuple[int, int]]) -> list[Job]:
    """Mark these leases, given as (job, attempt), as coming from a backup. Returns the jobs still leased.

    Those of noop jobs are not in doubt: nothing of them is executed, so nobody else can have ended them.
    """
    found = []
    for id, attempt in leases:
        job = world.jobs.get(id)
        if job is None or job.lease is None or job.attempt != attempt or is_noop_runner(job.lease.runner):
            continue
        job.lease.restored = True
        found.append(job)
    return found


def declare_lost(world: World, jobs: list[Job], *, why: str) -> None:
    """Declare these jobs lost at once: their runners are not expected back.

    A runner that comes back and holds the lease revives the job. If it comes back without the lease, the attempt
    ends as lost and the retries decide.
    """
    for job in jobs:
        assert job.lease is not None
        job.reason = Reason("kill_requested" if job.kill else "lost", why)
        move(world, job, State.LOST)
        world.runners[job.lease.runner].silent = True
