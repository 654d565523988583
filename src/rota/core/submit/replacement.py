"""Replace a job by another: the old one leaves its groups and its dependencies, and keeps its history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rota.core.events import FormerJob
from rota.core.jobs.dependencies import unregister_dependencies
from rota.core.jobs.job import After, Job, Reason
from rota.core.rows import ReplacedRow
from rota.core.states import TERMINAL, State
from rota.core.submit.rewiring import reevaluate_waiting, relink, unlink, update_ancestry
from rota.core.turn import Turn
from rota.core.world import OPEN, World, finish


def retire(world: World, turn: Turn, replaced: Mapping[int, tuple[FormerJob, int]]) -> set[str]:
    """Retire replaced jobs: no job waits for them any more and they never change again.

    Blocked ones are ended here; all others have ended. Returns the groups that they left.
    """
    if not replaced:
        return set()
    left: set[str] = set()
    turn.changes.edges = [row for row in turn.changes.edges if row.child not in replaced]
    for id, (former, by) in replaced.items():
        if world.outcome(id) == OPEN:
            _end_blocked(world, turn, world.jobs[id])
        state, reach = State(world.outcome(id)), world.ancestry.get(id)
        for name in former.spec.dep_groups:
            left.add(name)
            group = world.groups[name]
            group.leave(id, state)
            group.wait_for(reach, -1)
            if state is State.COMPLETE:
                turn.changes.dep_groups[name] = turn.changes.dep_groups.get(name, 0) - 1
        world.ancestry.forget(id)
        if world.keys.get(former.key) == id:
            del world.keys[former.key]
        world.mark_replaced(id)
        if world.uploads:
            world.successors[id] = by
        turn.changes.replaced.append(ReplacedRow(id, by))
    return left


def _end_blocked(world: World, turn: Turn, job: Job) -> None:
    reason = Reason("replaced", "its input has no such line any more")
    finish(world, turn, job, State.CANCELLED, reason=reason, outcome=None)
    unregister_dependencies(world, job)


def redirect_dependents(
    world: World, turn: Turn, successors: Mapping[int, int], *, ended: Mapping[int, Job], but: Iterable[int]
) -> None:
    """Make dependents of replaced jobs depend on the successors.

    `ended`: dependents that have left memory; the change matters if they are re-opened. Complete dependents stay
    complete and executing ones go on. `but`: dependents whose dependencies are up to date already.
    """
    if not successors:
        return
    apart = set(but)
    moved = [
        job
        for job in (*world.jobs.values(), *(job for id, job in ended.items() if id not in world.jobs))
        if job.after and job.id not in apart and not world.is_replaced(job.id)
        and any(each.parent in successors for each in job.after)
    ]  # fmt: skip
    before = {job.id: world.ancestry.get(job.id) for job in moved if job.id in world.jobs}
    unlink(turn, {job.id for job in moved})
    for job in moved:
        if job.state not in TERMINAL:
            unregister_dependencies(world, job)
        after = (
            After(successors[each.parent], each.condition) if each.parent in successors else each  # type: ignore[index]
            for each in job.after
        )
        relink(world, turn, job, tuple(dict.fromkeys(after)))
    update_ancestry(world, turn, before)
    reevaluate_waiting(world, turn, moved)
