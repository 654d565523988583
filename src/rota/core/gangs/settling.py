"""Keep gangs whole: what follows for the others when a member becomes ready, waits again, fails or is preempted.

Decided from the states of the members alone, before jobs are placed, so it is the same after a restart. Either
members hold leases or they wait; where some do and others do not, the leases are given back or the gang ends.
"""

from __future__ import annotations

from rota.core.attempts.attempt import void_attempt
from rota.core.attempts.lease_refs import ref_of
from rota.core.effects import KillAttempts
from rota.core.gangs.gang_state import Gang, Gangs, failed_members, forget, open_members, store
from rota.core.gangs.meeting_points import answer_callers
from rota.core.gangs.member_failure import CODE, KEEP
from rota.core.jobs.dependencies import end_job, enter_waiting, waiting_state
from rota.core.jobs.job import Job, Reason
from rota.core.states import State
from rota.core.turn import Turn
from rota.core.world import World, dequeue, move, write
from rota.plan.placement.queue import GangOffer, Offer


def settle_gangs(world: World, turn: Turn) -> None:
    """Settle all marked gangs."""
    gangs = world.use(Gangs)
    stored = False
    while gangs.dirty:
        key = next(iter(gangs.dirty))
        del gangs.dirty[key]
        gang = gangs.by_key.get(key)
        if gang is not None:
            stored = _settle(world, turn, gang) or stored
    if stored:
        store(world, turn)


def _settle(world: World, turn: Turn, gang: Gang) -> bool:
    """Make one gang whole. True: what is stored of it may have changed."""
    jobs = open_members(world, gang)
    leased = [job for job in jobs if job.lease is not None]
    waiting = [job for job in jobs if job.lease is None]
    failed = failed_members(world, gang)
    if leased:
        if waiting or failed:
            _part_ways(world, turn, gang, leased=leased, waiting=waiting, failed=failed)
    elif failed:
        for job in waiting:
            _end_waiting(world, turn, gang, job, failed[0])
    elif waiting:
        _offer(world, turn, gang, waiting)
    answer_callers(world, turn, gang)
    changed = len(jobs) < len(gang.members)
    if not open_members(world, gang):
        forget(world, gang)
    return changed


def _part_ways(
    world: World, turn: Turn, gang: Gang, *, leased: list[Job], waiting: list[Job], failed: list[int]
) -> None:
    """Some members hold leases and others do not: release the leases, or let members that have begun go on."""
    began = any(_has_begun(job) for job in leased) or len(leased) + len(waiting) + len(failed) < len(gang.members)
    cause = failed[0] if failed else waiting[0].id
    if began and leased[0].spec.on_member_failure == KEEP:
        why = f"it could not begin with the others of gang '{gang.name}'"
        for job in waiting:
            _end_waiting(world, turn, gang, job, cause, why)
        return
    for job in leased:
        _release(world, turn, gang, job, cause)


def _has_begun(job: Job) -> bool:
    return job.lease is not None and job.lease.started_at is not None


def _release(world: World, turn: Turn, gang: Gang, job: Job, cause: int) -> None:
    """Take the lease of a member back. One that was never executed costs nothing."""
    lease = job.lease
    assert lease is not None
    if lease.ended is not None or lease.broken or job.kill or job.preempted:
        return  # it is being ended already
    why = _because(world, gang, cause)
    other = world.jobs.get(cause)
    if other is not None and other.avoid:  # a machine that cannot be provisioned is of no use to the others either
        job.avoid = tuple(dict.fromkeys((*job.avoid, *other.avoid)))
    if lease.withheld is not None:
        void_attempt(world, turn, job, why)
        return
    lease.broken, lease.broken_code = why, CODE
    job.reason = Reason(CODE, why)
    if job.state not in (State.LOST, State.FINISHING):
        move(world, job, State.FINISHING)
    write(turn, job)
    turn.note(job.id, job.attempt, "gang", why)
    turn.effects.append(KillAttempts(lease.runner, [ref_of(job, lease)]))


def _because(world: World, gang: Gang, cause: int) -> str:
    """Why the others cannot go on: how this member ended."""
    outcome = world.outcome(cause)
    what = "failed" if outcome == State.FAILED else "was cancelled" if outcome == State.CANCELLED else "is gone"
    job = world.jobs.get(cause)
    if job is not None and outcome == 0:
        what = "could not begin" if job.state is not State.DELAYED else "failed, and all are tried again"
    return f"member {gang.roles[cause]} of gang '{gang.name}' (job {cause}) {what}"


def _end_waiting(world: World, turn: Turn, gang: Gang, job: Job, cause: int, why: str = "") -> None:
    """End a member that waits: the gang cannot begin any more."""
    if job.state is State.READY:
        dequeue(world, job)
    other = world.jobs.get(cause)
    cancelled = world.outcome(cause) != State.FAILED and not why
    if cancelled:
        by = other.reason.message if other is not None and other.reason is not None else "cancelled"
        reason = Reason("kill_requested", f"{by}, with member {gang.roles[cause]} of gang '{gang.name}'")
    else:
        reason = Reason(CODE, why or _because(world, gang, cause))
    state = State.CANCELLED if cancelled else State.FAILED
    end_job(world, turn, job, state, reason=reason, outcome=None)


def _offer(world: World, turn: Turn, gang: Gang, waiting: list[Job]) -> None:
    """Offer the gang as one, if all members are ready and it is not in the queue."""
    for job in waiting:
        if job.state is State.READY and (state := waiting_state(world, job)) is not State.READY:
            dequeue(world, job)
            enter_waiting(world, turn, job, state)
    ready = all(job.state is State.READY for job in waiting)
    if gang.offered or not ready:
        return
    gang.offered = waiting[0].id
    members = tuple(Offer(job.spec, job.need, job.rank_key, [job.id]) for job in waiting)
    first = waiting[0].spec
    names = tuple(gang.roles[job.id] for job in waiting)
    world.placement.offer_gang(GangOffer(gang.offered, members, first.gang_same, first.gang_share, names))


def withdraw(world: World, gang: Gang) -> None:
    """Take the gang out of the queue."""
    if gang.offered:
        world.placement.withdraw_gang(gang.offered)
        gang.offered = 0
