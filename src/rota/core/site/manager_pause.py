"""Pause, drain and resume the manager: nothing new starts, and leases that have not started are recalled.

A pause is stored and lasts until the manager is resumed; a drain ends with the process.
"""

from __future__ import annotations

from rota.core.attempts.attempt import void_attempt
from rota.core.attempts.parts import closing_jobs
from rota.core.bugs.ledger import BUGS, resumed
from rota.core.effects import RecallLeases, StartAnew
from rota.core.events import ManagerDrained, ManagerPaused, ManagerResumed, RunnerJoined
from rota.core.jobs.job import Reason
from rota.core.restart import Restart
from rota.core.turn import Turn
from rota.core.world import Runner, World

#: Key of `Changes.meta` for a pause, and its values.
PAUSED = "paused"
YES, NO = "yes", ""


def starts_nothing(world: World) -> bool:
    """Is every start forbidden now?"""
    return world.paused or world.draining or world.stopping or world.bugs.safe_mode != ""


def why_nothing_starts(world: World) -> Reason | None:
    """Why no ready job may start; None: jobs may."""
    if world.stopping:
        return Reason("draining", "the manager is stopping")
    if world.draining:
        return Reason("draining", "the manager is draining: it starts nothing and stops when nothing runs")
    if world.bugs.safe_mode:
        return Reason("bug", f"nothing starts because of a bug ({world.bugs.safe_mode}); see 'rota doctor'")
    if world.paused:
        return Reason("paused", "the manager is paused; 'rota manager resume' lets jobs start")
    return None


def unstarted(world: World, runner: Runner) -> list[tuple[int, int, int]]:
    """The leases sent to a runner whose start is not known."""
    found = []
    for id in sorted(runner.leases):
        job = world.jobs[id]
        if job.lease is not None and job.lease.started_at is None and job.lease.withheld is None:
            found.append((id, job.attempt, job.lease.token))
    return found


def restore_pause(world: World, restart: Restart) -> None:
    """A pause outlives the manager."""
    world.paused = restart.snapshot.meta.get(PAUSED) == YES


def leased(world: World) -> int:
    """The number of jobs that run or may be running."""
    return sum(len(runner.leases) for runner in world.runners.values()) + len(closing_jobs(world))


def on_manager_paused(world: World, turn: Turn, _event: ManagerPaused) -> None:
    """Start nothing more, not even after a restart."""
    world.paused = True
    turn.changes.meta[PAUSED] = YES
    _recall_all(world, turn)


def on_manager_drained(world: World, turn: Turn, _event: ManagerDrained) -> None:
    """Start nothing more in this process."""
    world.draining = True
    _recall_all(world, turn)


def on_manager_resumed(world: World, turn: Turn, _event: ManagerResumed) -> None:
    """End a pause, a drain or safe mode, and decide again what was left out because of bugs. Leases being recalled
    come back all the same."""
    if world.paused:
        turn.changes.meta[PAUSED] = NO
    world.paused = world.draining = False
    if world.bugs.frozen:
        jobs = ", ".join(map(str, sorted(world.bugs.frozen)))
        turn.effects.append(StartAnew(f"jobs that were left out come back: {jobs}"))  # they are not in memory
    if world.bugs.total:
        world.bugs = resumed(world.bugs, version=world.bugs.version, at=turn.wall)
        turn.changes.meta[BUGS] = world.bugs.text()


def recall_from_joined(world: World, turn: Turn, runner: Runner, _event: RunnerJoined) -> None:
    """Recall leases from a runner that was away when all others were asked."""
    if starts_nothing(world):
        _recall(world, turn, runner)


def _recall_all(world: World, turn: Turn) -> None:
    for runner in world.runners.values():
        _recall(world, turn, runner)


def _recall(world: World, turn: Turn, runner: Runner) -> None:
    for id in sorted(runner.leases):
        job = world.jobs[id]
        if job.lease is not None and job.lease.withheld is not None and not job.lease.stays:
            void_attempt(world, turn, job, "nothing may start now; it was still waiting for its hosts")
    if leases := unstarted(world, runner):
        turn.effects.append(RecallLeases(runner.id, leases))
