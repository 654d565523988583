"""Leases of jobs that are no longer frozen.

While a job was frozen, its runner was told to forget it, and its room may have been given to another job. So it is
in doubt whether anything of the attempt is left, and where: only its runner can tell.
"""

from __future__ import annotations

import msgspec

from rota.core.jobs.job import Job
from rota.core.recovery.restored_leases import mark_restored
from rota.core.restart import Restart
from rota.core.site.plan_facts import leases_out
from rota.core.world import World
from rota.plan.dispatch.plan_leases import ids_of
from rota.plan.placement.leases import Held
from rota.plan.schedule.timesharing import may_share


def doubt_frozen(world: World, restart: Restart) -> None:
    """It proves nothing that a runner does not hold such a lease: the attempt is lost, and the retries decide."""
    ledger = world.bugs
    if not ledger.doubtful:
        return
    leased = mark_restored(world, ledger.doubtful)
    still = {(job.id, job.attempt) for job in leased}
    still |= {each for each in ledger.doubtful if each[0] in ledger.frozen}
    world.bugs = msgspec.structs.replace(ledger, doubtful=frozenset(still))
    _leave_room_to_others(world, leased)


def _leave_room_to_others(world: World, doubtful: list[Job]) -> None:
    """Such a job is in no seat until its runner says so, and has no resource that another job was given.

    Work is sent only to a runner that has been told to forget the job, so nothing of it is left there.
    """
    held = {each.job: each for each in leases_out(world)}
    for job in doubtful:
        lease, mine = job.lease, held.get(job.id)
        assert lease is not None
        lease.seat = 0
        others = [each for id, each in held.items() if id != job.id]
        if lease.given is not None and mine is not None and any(_collide(mine, each) for each in others):
            lease.given = msgspec.structs.replace(lease.given, resources="", cpu_list="")
            held[job.id] = mine._replace(resources="")


def _collide(one: Held, other: Held) -> bool:
    """Do both have the same resource, though they may not share it?"""
    if one.away is not None or other.away is not None:
        return False
    if one.ask.types.inner or other.ask.types.inner or may_share(one.ask, other.ask):
        return False
    return not set(ids_of(one.resources)).isdisjoint(ids_of(other.resources))
