"""Decides about an entry of a report whose own handler meets a bug: no job may stay in a wrong state.

Each rule does as little as possible. If it meets a bug as well, the job is frozen (`core.bugs.ledger`).
"""

from __future__ import annotations

import msgspec

from rota.core.attempts.attempt import end_attempt, leased_job, void_attempt
from rota.core.attempts.leases import Started
from rota.core.attempts.part_events import part_shut
from rota.core.attempts.parts import job_of_part, part_at
from rota.core.attempts.reported_times import in_lease
from rota.core.attempts.suspension import change_grant, resume_unconfirmed
from rota.core.attempts.suspension_phases import FREEZING, THAWING, pause_of
from rota.core.effects import NotifyStarted
from rota.core.events import EntrySetAside
from rota.core.jobs.job import AttemptEnd, Job, Lease, Reason
from rota.core.jobs.outcome import Outcome
from rota.core.rows import StartRow
from rota.core.states import State
from rota.core.turn import Turn
from rota.core.world import Runner, World, move, write
from rota.plan.placement.given import Pause


def on_entry_set_aside(world: World, turn: Turn, event: EntrySetAside) -> None:
    """Store an entry that could not be decided in the story of its job, and do the least that must follow."""
    lease = event.lease
    if lease.job:
        said = f"a report that the manager could not decide ({event.field}): {event.said}"
        turn.note(lease.job, lease.attempt, "bug", said)
    runner = world.runners.get(event.runner)
    if runner is None:
        return
    if event.field in ("opened", "shut"):
        _set_aside_part(world, turn, runner, event)
        return
    job = leased_job(world, runner, lease)
    if event.paused is not None:
        job = job or job_of_part(world, runner, lease)
    if job is None or job.lease is None:
        return
    if event.field in ("ended", "returned"):
        _end(world, turn, job, event)
    elif event.started is not None:
        _start(world, turn, job, job.lease, event.started)
    elif event.paused is not None:
        _go_on(world, turn, job, job.lease, frozen=event.paused.frozen)


def _end(world: World, turn: Turn, job: Job, event: EntrySetAside) -> None:
    """The attempt is lost: nothing of it is left, and what it did is not judged."""
    why = "it has ended, and a bug keeps the manager from deciding what that means"
    outcome = event.outcome or Outcome(ended_at=turn.wall)
    end_attempt(world, turn, job, msgspec.structs.replace(outcome, reason="lost", message=why, permanent=False))


def _start(world: World, turn: Turn, job: Job, lease: Lease, started: Started) -> None:
    """It must be on disk that the attempt began, so that it never counts as unexecuted. Its end comes as ever."""
    if lease.started_at is not None:
        return
    lease.started_at = in_lease(lease, started.started_at, turn.wall)
    lease.seat, lease.pid = started.seat, started.pid
    turn.changes.starts.append(StartRow(job.id, job.attempt, lease.started_at, started.pid, started.seat))
    if job.state in (State.SCHEDULED, State.STARTING):
        job.reason = None
        move(world, job, State.RUNNING)
    turn.effects.append(NotifyStarted(job.id, job.attempt, lease.runner))


def _go_on(world: World, turn: Turn, job: Job, lease: Lease, *, frozen: bool) -> None:
    """Whether it stands still cannot be followed, so it runs: nothing waits for its cores, and its end comes."""
    pause = pause_of(lease)
    if pause.phase == FREEZING:
        resume_unconfirmed(world, turn, job, lease)
    elif pause.phase == THAWING and not frozen:
        away_s = 0.0 if pause.since is None else max(0.0, turn.wall - pause.since)
        change_grant(world, turn, job, pause=Pause(before_s=pause.before_s + away_s))
        if job.state is State.SUSPENDED:
            job.reason = None
            move(world, job, State.RUNNING)
            write(turn, job)


def _set_aside_part(world: World, turn: Turn, runner: Runner, event: EntrySetAside) -> None:
    """Fail a job whose part cannot be opened, since it would never begin. Close a part that its host has shut,
    since the job could not end."""
    job = job_of_part(world, runner, event.lease)
    part = None if job is None else part_at(job, runner.host)
    if job is None or job.lease is None or part is None:
        return
    if event.field == "shut":
        part_shut(world, turn, job, runner.host)
    elif job.lease.withheld is not None:
        why = f"a bug keeps the manager from opening its part on {runner.host}"
        void_attempt(world, turn, job, why, then=AttemptEnd(State.FAILED, Reason("bug", why)))
