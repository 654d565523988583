"""Actions of users on jobs: kill, hold, release, retry, confirm dead.

Each changes the jobs that it can, and answers which it did and did not change. Repeating one has no effect.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappush

from rota.core.answers import Acted
from rota.core.attempts.attempt import end_attempt, void_attempt
from rota.core.attempts.lease_refs import ref_of
from rota.core.attempts.noop_jobs import end_noop, is_noop
from rota.core.attempts.part_events import part_shut
from rota.core.attempts.parts import await_parts, forget_part, is_silent, jobs_with_part
from rota.core.attempts.seats import vacate_seat
from rota.core.effects import CloseParts, KillAttempts, NotifyReopened, SendReply
from rota.core.events import DeathConfirmed, JobsHeld, JobsKilled, JobsReleased, JobsRetried
from rota.core.gangs.gang_state import gang_of, open_members
from rota.core.jobs.allowed_actions import can_hold, can_kill, can_release
from rota.core.jobs.dependencies import end_job, enter_waiting, propagate, register_dependencies, waiting_state
from rota.core.jobs.job import Job, Lease, Reason
from rota.core.jobs.outcome import Outcome
from rota.core.jobs.retry import next_attempt_text, reservation_over
from rota.core.machines.runners import retire_idle
from rota.core.states import RETRYABLE, State
from rota.core.turn import Turn
from rota.core.world import World, acted_on, dequeue, move, reopen, write


def on_jobs_killed(world: World, turn: Turn, event: JobsKilled) -> None:
    """Kill jobs: waiting ones are cancelled at once, leased ones when nothing of them is left."""
    changed, unchanged = [], []
    kills: dict[str, list[tuple[int, int, int]]] = {}
    for id in acted_on(world, "kill", event.jobs):
        job = world.jobs.get(id)
        if not can_kill(job):
            unchanged.append(id)
            continue
        changed.append(id)
        turn.note(id, job.attempt, "kill", f"asked for by {event.by.user}")
        if job.lease is None:
            cancel(world, turn, job, Reason("kill_requested", f"cancelled by {event.by.user}"))
            continue
        _kill(world, turn, job, job.lease, f"being killed by {event.by.user}", kills)
    turn.effects.extend(KillAttempts(runner, leases) for runner, leases in kills.items())
    turn.effects.append(SendReply(event.by, Acted(changed, unchanged)))


def kill_on_hosts(world: World, turn: Turn, hosts: set[str], *, why: str) -> None:
    """Kill what executes on these hosts; not jobs that only hold resources there."""
    kills: dict[str, list[tuple[int, int, int]]] = {}
    there = {id for runner in world.runners.values() if runner.host in hosts for id in runner.leases}
    for host in hosts:
        there |= jobs_with_part(world, host)
    for runner in world.runners.values():
        there |= {id for id in runner.leases if _holds_some_of(world.jobs[id], hosts)}
    for id in sorted(there):
        job = world.jobs[id]
        if job.lease is not None and not job.kill and not {"cosystem", "noop"} & set(job.spec.types):
            turn.note(id, job.attempt, "kill", why)
            _kill(world, turn, job, job.lease, f"being killed: {why}", kills)
    turn.effects.extend(KillAttempts(runner, leases) for runner, leases in kills.items())


def _holds_some_of(job: Job, hosts: set[str]) -> bool:
    """Does a job that executes elsewhere hold resources of these hosts?"""
    given = job.lease.given if job.lease is not None else None
    return given is not None and given.elsewhere and any(host in hosts for host, _cores in given.nodes)


def _kill(
    world: World, turn: Turn, job: Job, lease: Lease, why: str, kills: dict[str, list[tuple[int, int, int]]]
) -> None:
    job.kill = True
    if is_noop(world, job.id):
        end_noop(world, turn, job, reason="kill_requested", message=why)
        return
    if lease.ended is not None:
        await_parts(world, turn, job)  # only its parts are left, and they are being closed
        return
    if lease.withheld is not None:
        void_attempt(world, turn, job, "it was killed before it began")
        return
    job.reason = Reason("kill_requested", why)
    if job.state not in (State.LOST, State.FINISHING):
        move(world, job, State.FINISHING)
    write(turn, job)
    kills.setdefault(lease.runner, []).append((job.id, job.attempt, lease.token))


def kill_jobs(world: World, turn: Turn, jobs: Iterable[int], *, why: str) -> None:
    """Kill these jobs, which have leases, unless they are being killed."""
    kills: dict[str, list[tuple[int, int, int]]] = {}
    for id in jobs:
        job = world.jobs[id]
        if job.lease is not None and not job.kill:
            turn.note(id, job.attempt, "kill", why)
            _kill(world, turn, job, job.lease, f"being killed: {why}", kills)
    turn.effects.extend(KillAttempts(runner, leases) for runner, leases in kills.items())


def cancel(world: World, turn: Turn, job: Job, reason: Reason) -> None:
    """Cancel a waiting job."""
    if job.state is State.READY:
        dequeue(world, job)
    end_job(world, turn, job, State.CANCELLED, reason=reason, outcome=None)


def on_jobs_held(world: World, turn: Turn, event: JobsHeld) -> None:
    """Hold waiting jobs: they do not start until they are released."""
    changed, unchanged = [], []
    for id in acted_on(world, "hold", event.jobs):
        job = world.jobs.get(id)
        if not can_hold(job):
            unchanged.append(id)
            continue
        was = job.state
        if was is State.READY:
            dequeue(world, job)
        move(world, job, State.HELD)
        if was is State.BLOCKED:
            turn.effects.append(NotifyReopened(id))
            propagate(world, turn, [job])
        job.reason = Reason("held", f"held by {event.by.user}")
        write(turn, job)
        turn.note(id, job.attempt, "held", f"by {event.by.user}")
        changed.append(id)
    turn.effects.append(SendReply(event.by, Acted(changed, unchanged)))


def on_jobs_released(world: World, turn: Turn, event: JobsReleased) -> None:
    """Release held jobs. One with a delay that is not over is delayed again."""
    changed, unchanged = [], []
    for id in acted_on(world, "release", event.jobs):
        job = world.jobs.get(id)
        if not can_release(job):
            unchanged.append(id)
            continue
        changed.append(id)
        turn.note(id, job.attempt, "released", f"by {event.by.user}")
        if job.due_at is not None and job.due_at > turn.wall:
            move(world, job, State.DELAYED)
            heappush(world.delayed_until, (job.due_at, id))
            job.reason = Reason("delayed", next_attempt_text(world, job.due_at, turn.wall))
            write(turn, job)
        else:
            job.due_at = None
            enter_waiting(world, turn, job, waiting_state(world, job))
    turn.effects.append(SendReply(event.by, Acted(changed, unchanged)))


def on_jobs_retried(world: World, turn: Turn, event: JobsRetried) -> None:
    """Re-open failed and cancelled jobs, except reservations whose time is over."""
    changed: list[int] = []
    unchanged: list[int] = []
    elsewhere: dict[int, bool] = {}
    if world.points.retried_by_user:
        known = [job for id in event.jobs if (job := world.jobs.get(id) or event.loaded.get(id)) is not None]
        for see_to in world.points.retried_by_user:
            elsewhere |= see_to(world, turn, known, event.by.user)
    for id in event.jobs:
        if id in elsewhere:
            (changed if elsewhere[id] else unchanged).append(id)
            continue
        job = world.jobs.get(id) or event.loaded.get(id)
        over = job is not None and reservation_over(world, job, turn.wall)  # no time is left to run in
        if not over and reopen_for_retry(world, turn, id, job, by=event.by.user, why="retry"):
            changed.append(id)
        else:
            unchanged.append(id)
    turn.effects.append(SendReply(event.by, Acted(changed, unchanged)))


def reopen_for_retry(world: World, turn: Turn, id: int, loaded: Job | None, *, by: str, why: str) -> bool:
    """Re-open a failed or cancelled job with all its retries. False: it cannot be.

    `loaded`: the job from disk, if it is not in memory.
    """
    job = world.jobs.get(id) or loaded
    if job is None or job.state not in RETRYABLE or world.outcome(id) != job.state or world.is_replaced(id):
        return False
    if job.spec.gang and _others_hold_leases(world, job):
        return False
    if id not in world.jobs:
        world.jobs[id] = job
        world.keys.setdefault(job.key, id)
    reopen(world, turn, job)
    job.tries = 0
    turn.note(id, job.attempt, "retried", f"{why} by {by}")
    enter_waiting(world, turn, job, register_dependencies(world, job))
    return True


def _others_hold_leases(world: World, job: Job) -> bool:
    """Does a member of its gang still run, so that it could not begin with it?"""
    gang = gang_of(world, job)
    return any(each.lease is not None for each in open_members(world, gang))


def on_death_confirmed(world: World, turn: Turn, event: DeathConfirmed) -> None:
    """End lost jobs that an operator declares dead."""
    changed, unchanged = [], []
    for id in event.jobs:
        job = world.jobs.get(id)
        if job is None or job.state is not State.LOST or job.lease is None:
            unchanged.append(id)
            continue
        changed.append(id)
        turn.note(id, job.attempt, "confirmed-dead", f"by {event.by.user}")
        _end_dead_attempt(world, turn, job, job.lease, f"lost; declared dead by {event.by.user}")
    turn.effects.append(SendReply(event.by, Acted(changed, unchanged)))


def _end_dead_attempt(world: World, turn: Turn, job: Job, lease: Lease, message: str) -> None:
    """End a lost attempt on its silent hosts; where a runner answers, have it killed there."""
    runner = world.runners.get(lease.runner)
    silent = {host: part.runner for host, part in (lease.parts or {}).items() if is_silent(world, part)}
    # If these runners live after all, they must not go on with it.
    turn.effects.extend(CloseParts(name, [ref_of(job, lease)]) for name in silent.values())
    if lease.ended is not None:
        for host in silent:
            part_shut(world, turn, job, host)
        if job.lease is not None:
            await_parts(world, turn, job)
    else:
        assert runner is not None
        for host in silent:
            forget_part(world, turn, job, host)
        if lease.withheld is not None:
            void_attempt(world, turn, job, message)
        elif silent and not runner.silent:
            lease.broken = message
            job.reason = Reason("kill_requested" if job.kill else "lost", message)
            move(world, job, State.FINISHING)
            write(turn, job)
            turn.effects.append(KillAttempts(runner.id, [ref_of(job, lease)]))
        else:
            turn.effects.append(KillAttempts(runner.id, [ref_of(job, lease)]))
            size = job.size
            end_attempt(world, turn, job, Outcome(reason="lost", message=message, ended_at=turn.wall))
            vacate_seat(world, runner, job=job.id, seat=lease.seat, size=size)
    for name in {lease.runner, *silent.values()} & world.runners.keys():
        retire_idle(world, world.runners[name])
