"""Re-open complete jobs whose dependency group grew, then their dependents, and so on."""

from __future__ import annotations

from collections.abc import Iterable

from rota.core.jobs.dependencies import (
    enter_waiting,
    mark_outdated,
    register_dependencies,
    unregister_dependencies,
)
from rota.core.jobs.job import Job, Parent
from rota.core.states import TERMINAL, State
from rota.core.turn import Turn
from rota.core.world import World, dequeue, reopen


def reopen_dependents(world: World, turn: Turn, groups: Iterable[str], *, ended: dict[int, Job]) -> None:
    """Re-open complete jobs that wait for one of these groups, and their dependents.

    `ended`: dependents that have left memory. Failed and cancelled jobs stay as they are, and so do jobs with
    `live=false`.
    """
    waiting_for: dict[Parent, list[Job]] = {}
    for id in [*world.evicting, *ended]:
        job = world.jobs.get(id) or ended.get(id)
        if job is not None and job.state is State.COMPLETE and job.spec.live and not world.is_replaced(id):
            for after in job.after:
                waiting_for.setdefault(after.parent, []).append(job)
    opened: set[Parent] = set()
    pending: list[Parent] = list(groups)
    while pending:
        parent = pending.pop()
        if isinstance(parent, str):
            for child, _condition in world.children.get(parent, ()):
                mark_outdated(turn, world.jobs[child], f"group '{parent}' has a job that has not ended")
        for job in waiting_for.get(parent, ()):
            if job.state is State.COMPLETE and world.outcome(job.id) == State.COMPLETE:
                _open_again(world, turn, job, parent)
                opened.add(job.id)
                pending += [job.id, *job.spec.dep_groups]
    if opened:
        _wait_again(world, turn, opened)


def _open_again(world: World, turn: Turn, job: Job, parent: Parent) -> None:
    world.jobs[job.id] = job
    world.keys.setdefault(job.key, job.id)
    reopen(world, turn, job)
    job.tries = 0
    why = f"group '{parent}' grew" if isinstance(parent, str) else f"job {parent} was re-opened"
    turn.note(job.id, job.attempt, "reopened", why)
    enter_waiting(world, turn, job, register_dependencies(world, job))


def _wait_again(world: World, turn: Turn, opened: set[Parent]) -> None:
    """Make unended jobs wait again for parents that were complete and are now open.

    Searches all jobs: dependents of a complete parent are no longer indexed.
    """
    for job in list(world.jobs.values()):
        if job.state in TERMINAL or not any(after.parent in opened for after in job.after):
            continue
        unregister_dependencies(world, job)
        target = register_dependencies(world, job)
        mark_outdated(turn, job, "a job that it waits for was re-opened")
        if job.state in (State.READY, State.DEPENDENT, State.BLOCKED) and target is not job.state:
            if job.state is State.READY:
                dequeue(world, job)
            enter_waiting(world, turn, job, target)
