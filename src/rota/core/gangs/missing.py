"""Which members keep a waiting gang from beginning."""

from __future__ import annotations

from rota.core.gangs.gang_state import Gang, open_members
from rota.core.jobs.job import Job
from rota.core.states import State
from rota.core.world import World


def waits_by_itself(world: World, job: Job) -> bool:
    """Does this member wait for something of its own, and not only for other members?"""
    if job.state in (State.DEPENDENT, State.BLOCKED):
        return bool(world.unmet_parents.get(job.id))
    return job.state is not State.READY


def missing_members(world: World, gang: Gang) -> list[int]:
    """The members for which a waiting gang waits: if all are ready, the ones without a machine, else the ones that
    are not ready."""
    jobs = open_members(world, gang)
    if any(job.lease is not None for job in jobs):
        return []
    if waiting := [job.id for job in jobs if waits_by_itself(world, job)]:
        return waiting
    if not gang.offered:
        return []
    first = world.jobs[gang.offered]
    reasons = world.placement.why(first.need, first.rank_key, first.id)
    return next((list(each.members) for each in reasons if each.members), [])
