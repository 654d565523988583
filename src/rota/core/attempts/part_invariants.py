"""What always holds of parts."""

from __future__ import annotations

from rota.core.attempts.part_index import PartIndex
from rota.core.states import State
from rota.core.world import World


def parts_as_leased(world: World) -> list[str]:
    """I3: every part belongs to a lease, and a job with open parts keeps everything it holds."""
    wrong = []
    index = world.use(PartIndex)
    there = {(host, id) for host, ids in index.at.items() for id in ids}
    for job in world.jobs.values():
        lease = job.lease
        parts = lease.parts if lease is not None else None
        for host, part in (parts or {}).items():
            if (host, job.id) not in there:
                wrong.append(f"I3: job {job.id} has a part on {host} that no index knows of")
            there.discard((host, job.id))
            if part.runner and part.runner not in world.runners:
                wrong.append(f"I3: a part of job {job.id} is at runner {part.runner}, which is forgotten")
        over = lease is not None and lease.ended is not None
        if over != (job.id in index.closing):
            wrong.append(f"I3: job {job.id} is {'not ' if over else ''}known to wait for its parts")
        if over and (not parts or job.state not in (State.FINISHING, State.LOST)):
            wrong.append(f"I3: the attempt of job {job.id} is over, it has {parts} and is {job.state.label}")
        if lease is not None and lease.withheld is not None:
            seats = world.runners[lease.runner].seats
            if lease.withheld.seat not in seats or lease.started_at is not None or over:
                wrong.append(f"I3: job {job.id} is withheld and has begun, or has no seat")
    wrong += [f"I3: {host} has a part of job {id}, which has no lease" for host, id in there]
    wrong += [f"I3: job {id} waits for parts and is gone" for id in index.closing if id not in world.jobs]
    return wrong
