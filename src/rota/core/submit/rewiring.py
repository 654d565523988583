"""Change the dependencies, and perhaps the settings, of jobs that were added again.

Three steps, each for many jobs: new specifications (`respecify_again`), then group ancestry (`update_ancestry`),
then states (`reevaluate_waiting`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from types import MappingProxyType

import msgspec

from rota.core.jobs.dependencies import (
    enter_waiting,
    register_dependencies,
    unregister_dependencies,
    waiting_state,
    with_companions,
)
from rota.core.jobs.group_ancestry import GroupAncestry
from rota.core.jobs.job import After, Job
from rota.core.jobs.respecification import respecify
from rota.core.rows import AfterRow, EdgeRow
from rota.core.states import TERMINAL, State
from rota.core.submit.upload import KnownEntry
from rota.core.turn import Turn
from rota.core.world import World, dequeue, memberships


def respecify_again(world: World, turn: Turn, job: Job, known: KnownEntry, after: tuple[After, ...]) -> list[str]:
    """Give a job that was added again its new specification and dependencies. See `rewire`."""

    def change() -> None:
        if known.spec != job.spec or known.input_bytes not in (None, job.input_bytes):
            respecify(world, turn, job, known.spec_id, known.spec, known.input_bytes)

    joined = rewire(world, turn, job, after, change=change)
    turn.note(job.id, job.attempt, "modified", "added again with other dependencies or settings")
    return joined


def rewire(
    world: World, turn: Turn, job: Job, after: tuple[After, ...], *, change: Callable[[], None]
) -> list[str]:
    """Give a job that neither runs nor is complete other dependencies, after `unlink`; `change` may respecify it.

    Returns the groups that it joined. It waits for nothing until `reevaluate_waiting`.
    """
    was = job.spec.dep_groups
    for name in was:
        world.groups[name].leave(job.id, job.state)
        world.groups[name].wait_for(world.ancestry.get(job.id), -1)
    unregister_dependencies(world, job)
    change()
    for name in job.spec.dep_groups:
        turn.changes.dep_groups.setdefault(name, 0)
        world.groups[name].join(job.id, job.state)
        world.groups[name].wait_for(world.ancestry.get(job.id))
    relink(world, turn, job, after)
    return [name for name in job.spec.dep_groups if name not in was]


def unlink(turn: Turn, jobs: Container[int]) -> None:
    """Drop the rows of this batch about what these jobs depend on: they are outdated."""
    changes = turn.changes
    changes.children = [row for row in changes.children if row.child not in jobs]
    changes.edges = [row for row in changes.edges if row.child not in jobs]


def relink(world: World, turn: Turn, job: Job, after: tuple[After, ...]) -> None:
    """Write the new dependencies of a job, after `unlink`. The caller updates the indexes."""
    changes = turn.changes
    job.after = after
    changes.reafter[job.id] = AfterRow(job.id, msgspec.json.encode(after).decode() if after else None)
    changes.children.extend(EdgeRow(each.parent, job.id) for each in after)
    if job.id in world.ancestry:
        changes.edges.extend(EdgeRow(each.parent, job.id) for each in after)


def update_ancestry(
    world: World,
    turn: Turn,
    before: Mapping[int, GroupAncestry | None],
    ended: Mapping[int, Job] = MappingProxyType({}),
) -> None:
    """Recompute the group ancestry of jobs with new dependencies, and of all their dependents.

    `before`: the old ancestry of each. `ended`: dependents that have left memory; others of these keep theirs.
    """
    known = {**ended, **world.jobs} if ended else world.jobs
    pending = set(before)
    if not any(_has_group_ancestry(world, world.jobs.get(id)) or before[id] for id in pending):
        return
    behind = _behind(known, pending)
    old = {id: world.ancestry.get(id) for id in behind} | dict(before)
    for id in old:
        world.ancestry.forget(id)
    for id in old:
        world.ancestry.find(id, lambda id: (each.parent for each in known[id].after) if id in old else ())
    for id, was in old.items():
        now = world.ancestry.get(id)
        if now is was:
            continue
        job = known[id]
        for name in memberships(world, job):
            world.groups[name].wait_for(was, -1)
            world.groups[name].wait_for(now)
        if was is None:
            turn.changes.edges.extend(EdgeRow(each.parent, id) for each in job.after)


def _has_group_ancestry(world: World, job: Job | None) -> bool:
    parents = job.after if job is not None else ()
    return any(isinstance(each.parent, str) or each.parent in world.ancestry for each in parents)


def _behind(known: Mapping[int, Job], jobs: set[int]) -> set[int]:
    """The known jobs that depend on these, directly or not."""
    children: dict[int, list[int]] = {}
    for job in known.values():
        for each in job.after:
            if isinstance(each.parent, int):
                children.setdefault(each.parent, []).append(job.id)
    found: set[int] = set()
    pending = list(jobs)
    while pending:
        for child in children.get(pending.pop(), ()):
            if child not in found and child not in jobs:
                found.add(child)
                pending.append(child)
    return found


def reevaluate_waiting(world: World, turn: Turn, jobs: Iterable[Job]) -> None:
    """Put these jobs into the state that follows from their dependencies. Ended jobs are left until they are
    re-opened."""
    concerned: dict[int, None] = {}
    for job in jobs:
        if job.state not in TERMINAL:
            register_dependencies(world, job)
            concerned[job.id] = None
    for id in with_companions(world, concerned):
        job = world.jobs[id]
        target = waiting_state(world, job)
        if job.state in (State.READY, State.DEPENDENT, State.BLOCKED) and target is not job.state:
            if job.state is State.READY:
                dequeue(world, job)
            enter_waiting(world, turn, job, target)
