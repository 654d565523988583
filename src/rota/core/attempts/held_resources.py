"""The cores held by attempts and by ended jobs, counted in one place for all views.

Memory is not counted here: a suspended attempt keeps everything but its cores.
"""

from __future__ import annotations

from collections.abc import Iterator

from rota.core.attempts.parts import all_leased
from rota.core.attempts.suspension_phases import has_given_up
from rota.core.jobs.job import Job
from rota.core.machines.provision_records import Provisions
from rota.core.world import World
from rota.plan.size import CORE


def holders(world: World) -> Iterator[tuple[Job, str]]:
    """Every job whose attempt has started, with its first host. A lease that was only sent ahead holds nothing
    yet."""
    for job, host in all_leased(world):
        if job.lease is not None and job.lease.started_at is not None:
            yield job, host


def provisioned_for(world: World) -> Iterator[tuple[Job, str]]:
    """Every job whose machines are being made ready for it, with its first host: it holds them already."""
    found = world.find(Provisions)
    for id in sorted(found.jobs) if found is not None else ():
        job = world.jobs[id]
        if job.lease is not None:
            yield job, world.runners[job.lease.runner].host


def cores_held(job: Job, host: str) -> dict[str, int]:
    """Host → hundredths of cores that are taken from all other jobs. `host` is the job's first host."""
    lease = job.lease
    if lease is None:
        return {}
    given = lease.given
    if given is None or not given.nodes:
        held = {host: job.size.cpus}
    else:
        held = {node: CORE * cores for node, cores in given.nodes}
        if not given.elsewhere:
            held[host] = given.size.cpus  # it may be a fraction of a core
    return dict.fromkeys(held, 0) if has_given_up(lease) else held
