"""Signals to running jobs on all their hosts, among them the one that asks for a checkpoint."""

from __future__ import annotations

from typing import Final

from rota.core.answers import Acted
from rota.core.attempts.noop_jobs import is_noop
from rota.core.attempts.suspension import runners_of
from rota.core.effects import SendReply, SignalAttempts
from rota.core.events import JobsSignalled
from rota.core.jobs.job import Job
from rota.core.states import State
from rota.core.turn import Turn
from rota.core.world import World

#: The default signal that asks for a checkpoint.
CHECKPOINT: Final = "USR2"


def checkpoint_signal(job: Job) -> str:
    """The signal that asks this job for a checkpoint."""
    return job.spec.signal or CHECKPOINT


def signal_before_end(job: Job) -> str:
    """The signal that asks a preempted job for a checkpoint before it is ended; empty: none.

    Sent even if no start was reported: a runner starts leases by itself, so only it knows.
    """
    asks = job.spec.checkpoint_s is not None or bool(job.spec.signal)
    return checkpoint_signal(job) if asks and job.preempted and not job.kill else ""


def on_jobs_signalled(world: World, turn: Turn, event: JobsSignalled) -> None:
    """Send a signal to running jobs. All other jobs are left unchanged."""
    changed, unchanged = [], []
    for id in event.jobs:
        job = world.jobs.get(id)
        if job is None or job.state is not State.RUNNING or job.lease is None or is_noop(world, id):
            unchanged.append(id)
            continue
        changed.append(id)
        name = event.signal or checkpoint_signal(job)
        what = "signal" if event.signal else "checkpoint"
        turn.note(id, job.attempt, what, f"{name} for {event.by.user}")
        runners = runners_of(world, job)
        # The first process writes the checkpoint; the signal might kill the others.
        for runner, ref in runners if event.signal else runners[:1]:
            lease = (ref.job, ref.attempt, ref.token)
            turn.effects.append(SignalAttempts(runner, [lease], name, bool(event.signal)))
    turn.effects.append(SendReply(event.by, Acted(changed, unchanged)))
