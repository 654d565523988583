"""Preparations of a lease before it is sent to its runner, one after the other.

Features add them (`Points.preparation`), in their order: the prologue on the manager's host, then the parts of a
job over several hosts. Meanwhile the lease is withheld, and so is its seat.
"""

from __future__ import annotations

from rota.core.attempts.lease_refs import ref_of
from rota.core.effects import SendWork
from rota.core.jobs.job import Job
from rota.core.states import State
from rota.core.turn import Turn
from rota.core.world import World
from rota.plan.placement.given import Given


def must_prepare(world: World, job: Job, given: Given | None) -> bool:
    """Must something be done before a lease with this grant is sent?"""
    return any(each.wanted(world, job, given) for each in world.points.preparation)


def is_before(world: World, job: Job, name: str) -> bool:
    """Is a preparation of this job under way that comes before this one?"""
    lease = job.lease
    if lease is None or lease.withheld is None or lease.preparing == name:
        return False
    names = [each.name for each in world.points.preparation]
    return lease.preparing in names[: names.index(name)]


def go_on(world: World, turn: Turn, job: Job) -> None:
    """The preparation that was under way, if any, is done: begin the next one, or send the lease."""
    lease = job.lease
    assert lease is not None
    assert lease.withheld is not None
    done = not lease.preparing
    for each in world.points.preparation:
        if done and each.wanted(world, job, lease.given):
            lease.preparing = each.name
            each.begin(world, turn, job)
            return
        done = done or each.name == lease.preparing
    lease.preparing = ""
    seat, lease.withheld = lease.withheld, None
    if job.state is State.STARTING:
        job.reason = None
    turn.effects.append(SendWork(lease.runner, [seat], [job], [ref_of(job, lease)]))
