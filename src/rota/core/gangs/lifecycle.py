"""The registration of gangs as a feature: where they take part in the life of jobs and leases."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from rota.core.events import MemberArrived, MemberLeft
from rota.core.feature import Feature
from rota.core.gangs.gang_state import (
    GANGS,
    Gangs,
    KeptGang,
    failed_members,
    find_gang,
    gang_of,
    mark,
    open_members,
)
from rota.core.gangs.meeting_points import on_member_arrived, on_member_left
from rota.core.gangs.member_failure import CODE, Others, after_failure
from rota.core.gangs.settling import settle_gangs, withdraw
from rota.core.gangs.starting import PREPARATION
from rota.core.jobs.job import AttemptEnd, Job
from rota.core.jobs.outcome import Outcome
from rota.core.learning.estimate import estimate
from rota.core.machines.provision_records import PROVISION
from rota.core.restart import Restart
from rota.core.states import LEASED, TERMINAL, State
from rota.core.turn import Turn
from rota.core.world import World

#: Actions on one member that apply to all.
_ALWAYS = frozenset(("hold", "release", "suspend", "resume", "preempt", "walltime"))


def _queued(world: World, _turn: Turn | None, jobs: list[Job]) -> bool:
    """Keep a member out of the queue: the gang is offered as a whole when all are ready."""
    if not jobs[0].spec.gang:
        return False
    for job in jobs:
        estimate(world, job)
        mark(world, gang_of(world, job))
    return True


def _unqueued(world: World, job: Job) -> bool:
    if not job.spec.gang:
        return False
    gang = gang_of(world, job)
    withdraw(world, gang)
    mark(world, gang)
    return True


def _rejoin(world: World, _turn: Turn, job: Job) -> None:
    """A member waits again. If others do so already, it begins with them: they are not offered without it."""
    if job.spec.gang:
        gang = gang_of(world, job)
        withdraw(world, gang)
        mark(world, gang)


def _waits_with(world: World, job: Job) -> Iterable[int]:
    return gang_of(world, job).members if job.spec.gang else ()


def _acts_on(world: World, action: str, jobs: list[int]) -> list[int]:
    """Add the other members of gangs to the targets of such an action."""
    found: dict[int, None] = {}
    for id in jobs:
        gang = find_gang(world, id)
        if gang is None:
            found[id] = None
            continue
        members = open_members(world, gang)
        if action == "resumed":
            gang.resumable.add(id)
            resuming = [each.id for each in members if each.state is State.SUSPENDED]
            if gang.resumable >= set(resuming):
                found |= dict.fromkeys(resuming)
                gang.resumable.clear()
            continue
        if action in ("suspend", "resume"):
            gang.resumable.clear()
        begun = any(each.lease is not None and each.lease.started_at is not None for each in members)
        found[id] = None
        if action in _ALWAYS or (action == "kill" and not begun):
            found |= dict.fromkeys(each.id for each in members)
    return list(found)


def _retried(world: World, job: Job, code: str, _outcome: Outcome) -> bool | None:
    """May a member be tried again? Only with the others."""
    gang = find_gang(world, job.id)
    if gang is None:
        return None
    others = [each for each in open_members(world, gang) if each.id != job.id]
    if code == CODE:  # another member ended it: that one is retried or could not begin
        return not failed_members(world, gang)
    if code == PROVISION:  # no member has begun: the others are released, and this one's retries decide for all
        return None
    left = [_retries_left(each) for each in others if each.lease is not None]
    again = after_failure(job.spec.on_member_failure, retried=True, retries_left=left) is Others.AGAIN
    return None if again else False  # its own settings decide, too


def _retries_left(job: Job) -> int:
    """Retries of a member that holds a lease. One of which only parts are left has been decided about already."""
    ended = None if job.lease is None else job.lease.ended
    return job.retries_left if ended is None else int(ended.state is State.DELAYED)


def _look(world: World, _turn: Turn, job: Job) -> None:
    gang = find_gang(world, job.id)
    if gang is not None:
        mark(world, gang)


def _job_ended(world: World, turn: Turn, job: Job) -> None:
    gang = find_gang(world, job.id)
    if gang is not None and job.state is not State.COMPLETE:
        gang.fell.add(job.id)
    _look(world, turn, job)


def _look_at_end(world: World, turn: Turn, job: Job, _ended: AttemptEnd, _host: str) -> None:
    _look(world, turn, job)


def _restore(world: World, restart: Restart) -> None:
    kept = msgspec.json.decode(restart.snapshot.meta.get(GANGS) or "[]", type=list[KeptGang])
    members = [job for job in world.jobs.values() if job.spec.gang]
    if not members:
        return
    gangs = world.use(Gangs)
    gangs.kept = {(each.submission, each.name): each for each in kept}
    for job in members:
        mark(world, gang_of(world, job))


def _whole(world: World) -> list[str]:
    """A gang is in the queue only as a whole; its members are known; none is leased while another is queued."""
    wrong = []
    gangs = world.use(Gangs)
    for gang in gangs.by_key.values():
        jobs = open_members(world, gang)
        name = f"gang '{gang.name}' of {gang.key[0]}"
        leased = [job.id for job in jobs if job.lease is not None]
        if gang.offered and (leased or any(job.state is not State.READY for job in jobs)):
            wrong.append(f"{name} is queued, and not all members are ready")
        if gang.key not in gangs.dirty and leased and len(leased) < len(jobs):
            wrong += _not_ending(world, jobs, name)
        if not jobs and gang.key not in gangs.dirty:
            wrong.append(f"{name} has ended and is remembered")
    for job in world.jobs.values():
        if job.spec.gang and job.state not in TERMINAL:
            found = gangs.by_key.get((job.submission, job.spec.gang))
            if found is None or job.id not in found.roles:
                wrong.append(f"job {job.id} is in no gang")
    return wrong


def _not_ending(world: World, jobs: list[Job], name: str) -> list[str]:
    """The members that hold leases while others wait, and that are not ending."""
    return [
        f"{name}: job {job.id} is {job.state.label} while others wait"
        for job in jobs
        if job.state in LEASED
        and job.lease is not None
        and not (job.lease.broken or job.lease.ended or job.kill or job.preempted)
    ]


FEATURE = Feature(
    name="gangs",
    state=Gangs,
    handlers={MemberArrived: on_member_arrived, MemberLeft: on_member_left},
    restore=_restore,
    invariant=_whole,
    before_placing=settle_gangs,
    queued=_queued,
    unqueued=_unqueued,
    waits_with=_waits_with,
    acts_on=_acts_on,
    retried=_retried,
    preparation=PREPARATION,
    lease_voided=_look,
    attempt_over=_look_at_end,
    lease_dropped=_look,
    job_ended=_job_ended,
    job_reopened=_rejoin,
)
