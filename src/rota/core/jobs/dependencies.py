"""Dependencies: release, block and unblock dependents as their parents end, re-open or grow.

A parent is a job or a dependency group. Each dependent has a count of unmet parents, so the end of a parent costs
the same however many other parents its dependents have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from rota.core.effects import NotifyReopened, NotifySettled
from rota.core.jobs.dependency_rules import UNDECIDED, Verdict, satisfied, verdict_on
from rota.core.jobs.group_ancestry import GroupAncestry
from rota.core.jobs.job import Condition, Job, Parent, Reason
from rota.core.jobs.outcome import Outcome
from rota.core.learning.estimate import estimate, offer
from rota.core.states import LEASED, TERMINAL, State
from rota.core.turn import Turn
from rota.core.world import NO_JOB, OPEN, World, dequeue, enqueue, finish, memberships, move, write
from rota.errors import BadInput

#: Jobs named in the message about a cycle.
_MOST_SHOWN = 12

_MOVABLE = (State.DEPENDENT, State.BLOCKED, State.READY)


def verdict(world: World, parent: Parent, condition: int) -> Verdict:
    """Return (does the parent satisfy this condition?, can it never do so?).

    A parent that was removed, or replaced without a successor, satisfies every condition.
    """
    if isinstance(parent, str):
        return world.groups[parent].verdict(condition)
    outcome = world.outcome(parent)
    if outcome == OPEN:
        job = world.jobs.get(parent)  # a frozen job is not there, and never ends
        return UNDECIDED if job is None else verdict_on(condition, job.state)
    ok = outcome == NO_JOB or satisfied(condition, outcome) or world.is_replaced(parent)
    return ok, not ok


def _is_final(world: World, parent: Parent) -> bool:
    """Can the outcome change only by a re-opening? True of complete, removed and replaced jobs."""
    if not isinstance(parent, int):
        return False
    return world.outcome(parent) in (State.COMPLETE, NO_JOB) or world.is_replaced(parent)


def register_dependencies(world: World, job: Job) -> State:
    """Enter a job's dependencies into the indexes; returns the state that it should have.

    A satisfied dependency is indexed too if the parent may be retried or grow.
    """
    waits = 0
    blockers: set[Parent] = set()
    for after in job.after:
        ok, never = verdict(world, after.parent, after.condition)
        if ok and _is_final(world, after.parent):
            continue
        world.children.setdefault(after.parent, {})[job.id, after.condition] = ok
        if not ok:
            waits += 1
            if never:
                blockers.add(after.parent)
    if waits:
        world.unmet_parents[job.id] = waits
    if blockers:
        world.blocked_by[job.id] = blockers
    return waiting_state(world, job)


def waiting_state(world: World, job: Job) -> State:
    """Return READY, DEPENDENT or BLOCKED, according to the job's parents and those of its companions."""
    for companions in world.points.waits_with:
        if others := companions(world, job):
            if any(world.blocked_by.get(id) for id in others):
                return State.BLOCKED
            return State.DEPENDENT if any(world.unmet_parents.get(id) for id in others) else State.READY
    if world.blocked_by.get(job.id):
        return State.BLOCKED
    return State.DEPENDENT if world.unmet_parents.get(job.id) else State.READY


def with_companions(world: World, jobs: dict[int, None]) -> dict[int, None]:
    """These jobs, and all that wait with them: a change of one may concern all."""
    for companions in world.points.waits_with:
        for id in list(jobs):
            if (job := world.jobs.get(id)) is not None:
                jobs |= dict.fromkeys(each for each in companions(world, job) if each in world.jobs)
    return jobs


def enter_waiting(world: World, turn: Turn, job: Job, state: State) -> None:
    """Move a job to READY, DEPENDENT or BLOCKED and inform its dependents."""
    was = job.state
    _set_waiting(world, turn, job, state)
    if was in TERMINAL or State.BLOCKED in (was, state):
        propagate(world, turn, [job])


def _set_waiting(world: World, turn: Turn, job: Job, state: State) -> None:
    was = job.state
    move(world, job, state)
    if was in TERMINAL or was is State.BLOCKED:
        turn.effects.append(NotifyReopened(job.id))
    job.reason = None
    if state is State.READY:
        estimate(world, job)
        enqueue(world, turn, job)
    elif state is State.BLOCKED:
        announce_blocked(world, turn, job)
    write(turn, job)


def announce_blocked(world: World, turn: Turn, job: Job) -> None:
    """Explain why a job, already BLOCKED, is blocked, and tell its watchers."""
    job.reason = _why_blocked(world, job)
    turn.effects.append(NotifySettled(job, State.BLOCKED, None))


def propagate(world: World, turn: Turn, jobs: Iterable[Job], *, groups: Iterable[str] = ()) -> None:
    """Pass a change of these jobs, or of the members of these groups, on to all dependents, direct or not.

    Executing jobs go on. Held and delayed jobs are re-evaluated when they leave that state.
    """
    pending: list[Parent] = [*_changed_groups(world, groups)]
    for job in jobs:
        pending += changed_parents(world, job)
    released: dict[int, Job] = {}
    while pending:
        parent = pending.pop()
        children = update_dependents(world, parent)
        if world.points.waits_with:
            children = with_companions(world, children)
        for child in children:
            job = world.jobs[child]
            was = job.state
            if was not in _MOVABLE:
                continue
            target = waiting_state(world, job)
            if target is was:
                continue
            if target is State.READY and was is State.DEPENDENT and job.floor is None and job.learned is None:
                move(world, job, target)
                released[child] = job
                continue
            if was is State.READY and released.pop(child, None) is None:
                dequeue(world, job)
            _set_waiting(world, turn, job, target)
            if State.BLOCKED in (was, target):
                pending += changed_parents(world, job)
    if released:
        _release(world, turn, [released[id] for id in sorted(released)])


def _release(world: World, turn: Turn, jobs: list[Job]) -> None:
    """Offer these jobs, ids ascending, to the placement: perhaps a hundred thousand, if they had one parent.

    Nothing is written: that they are ready follows from the outcomes of their parents.
    """
    for job in jobs:
        job.reason = None
        job.ready_at = turn.wall
    by_spec: dict[int, list[Job]] = {}
    for job in jobs:
        by_spec.setdefault(job.spec_id, []).append(job)
    for equal in by_spec.values():
        offer(world, equal)


def changed_parents(world: World, job: Job) -> list[Parent]:
    """The job itself, and those of its groups whose verdicts changed."""
    changed: list[Parent] = [job.id] if job.id in world.children else []
    changed += _changed_groups(world, job.spec.dep_groups)
    return changed


def _changed_groups(world: World, groups: Iterable[str]) -> list[str]:
    """Select the groups whose verdicts changed, and mark the change as announced."""
    changed = []
    for name in groups:
        group = world.groups[name]
        verdicts = group.verdicts()
        if verdicts != group.announced:
            group.announced = verdicts
            changed.append(name)
    return changed


def update_dependents(world: World, parent: Parent) -> dict[int, None]:
    """Update the indexes for all dependents of this parent, and return them."""
    entries = world.children.get(parent)
    if entries is None:
        return {}
    verdicts: dict[int, Verdict] = {}
    done = _is_final(world, parent)
    waiting, blocked_by = world.unmet_parents, world.blocked_by
    dependents: dict[int, None] = {}
    kept = {}
    for (child, condition), was in entries.items():
        dependents[child] = None
        known = verdicts.get(condition)
        if known is None:
            known = verdicts[condition] = verdict(world, parent, condition)
        ok, never = known
        if ok != was:
            waits = waiting.get(child, 0) + (-1 if ok else 1)
            if waits:
                waiting[child] = waits
            else:
                del waiting[child]
        blockers = blocked_by.get(child)
        if never:
            if blockers is None:
                blockers = blocked_by[child] = set()
            blockers.add(parent)
        elif blockers is not None and parent in blockers and not _never(world, parent, child):
            blockers.discard(parent)
            if not blockers:
                del blocked_by[child]
        if not (ok and done):
            kept[child, condition] = ok
    if kept:
        world.children[parent] = kept
    else:
        del world.children[parent]
    return dependents


def _never(world: World, parent: Parent, child: int) -> bool:
    """With several conditions on one parent: can one of them never hold?"""
    conditions = [after.condition for after in world.jobs[child].after if after.parent == parent]
    return len(conditions) > 1 and any(verdict(world, parent, condition)[1] for condition in conditions)


def _why_blocked(world: World, job: Job) -> Reason:
    if job.id not in world.blocked_by:
        return Reason("gang", f"another member of gang '{job.spec.gang}' is blocked")
    parent = min(world.blocked_by[job.id], key=str)
    if isinstance(parent, str):
        condition = next(after.condition for after in job.after if after.parent == parent)
        culprit = next(culprits(world, parent, condition), None)
        waited = "which it waits for" if condition != Condition.NOT_OK else "which it waits for to fail"
        state_text = (
            "can no longer do that"
            if culprit is None
            else f"has job {culprit}, which {outcome_text(world, culprit)}"
        )
        return Reason("dependency_never", f"group '{parent}', {waited}, {state_text}")
    return Reason("dependency_never", f"job {parent}, which it waits for, {outcome_text(world, parent)}")


def outcome_text(world: World, job: int) -> str:
    """Describe the outcome of a job because of which others can never run."""
    outcome = world.outcome(job)
    if outcome == OPEN:
        return "is blocked itself"
    if outcome == State.FAILED:
        return "failed"
    return "was cancelled" if outcome == State.CANCELLED else "completed"


def culprits(world: World, name: str, condition: int) -> Iterator[int]:
    """Yield the known members of a group that keep a dependent with this condition from ever running."""
    group = world.groups[name]
    if condition == Condition.OK:
        yield from group.bad
    elif condition == Condition.NOT_OK and group.latest:
        yield group.latest
    if group.blocked:
        known = world.jobs
        yield from (id for id in group.open if (job := known.get(id)) is not None and job.state is State.BLOCKED)


def end_job(
    world: World, turn: Turn, job: Job, state: State, *, reason: Reason | None, outcome: Outcome | None
) -> None:
    """Move a job to a terminal state and inform its dependents."""
    finish(world, turn, job, state, reason=reason, outcome=outcome)
    unregister_dependencies(world, job)
    if job.id in world.children or job.spec.dep_groups:
        propagate(world, turn, [job])


def unsatisfied_dependents(world: World, parent: Job) -> dict[int, None]:
    """Dependents that this job does not satisfy, by itself or as a member of a group."""
    entries = world.children.get(parent.id, {})
    found = {child: None for (child, _condition), content in entries.items() if not content}
    for name in memberships(world, parent):
        for child, condition in world.children.get(name, ()):
            if not verdict(world, parent.id, condition)[0]:
                found[child] = None
    return found


def mark_outdated(turn: Turn, job: Job, why: str) -> None:
    """A parent came (back) after the job was leased: the attempt counts, but the job must run again.

    Recorded by clearing `ready_at`. A parent that was merely retried is no reason, nor is any parent for a job
    with `live=false` or for a member of a gang, which cannot run again without the others.
    """
    if job.state in LEASED and job.spec.live and job.ready_at is not None and not job.spec.gang:
        job.ready_at = None
        write(turn, job)
        turn.note(job.id, job.attempt, "outdated", why)


def must_run_again(job: Job) -> bool:
    """Did a parent come (back) while it ran?"""
    return job.ready_at is None and job.spec.live


def unregister_dependencies(world: World, job: Job) -> None:
    """Remove a job that ended from the indexes of what waits."""
    world.unmet_parents.pop(job.id, None)
    world.blocked_by.pop(job.id, None)
    for after in job.after:
        entries = world.children.get(after.parent)
        if entries is not None:
            entries.pop((job.id, after.condition), None)
            if not entries:
                del world.children[after.parent]


#: A node of the graph in which cycles are searched for.
Node = Parent | GroupAncestry


def refuse_cycle(
    starts: Iterable[Node], parents: Callable[[Node], Iterable[Node]], *, name: Callable[[Node], str]
) -> None:
    """Raise `BadInput`, naming the cycle, if a walk along `parents` from one of these returns to where it was."""
    done: set[Node] = set()
    for start in starts:
        path: list[Node] = []
        on_path: set[Node] = set()
        stack: list[tuple[Node, bool]] = [(start, False)]
        while stack:
            node, leaving = stack.pop()
            if leaving:
                path.pop()
                on_path.discard(node)
                done.add(node)
                continue
            if node in done:
                continue
            if node in on_path:
                around = [name(each) for each in path[path.index(node) :]]
                raise _cycle([each for each in around if each])
            path.append(node)
            on_path.add(node)
            stack.append((node, True))
            stack.extend((parent, False) for parent in parents(node))


def _cycle(around: list[str]) -> BadInput:
    around.append(around[0])
    if len(around) > _MOST_SHOWN:
        half = _MOST_SHOWN // 2
        around = [*around[:half], f"… ({len(around) - _MOST_SHOWN} more)", *around[-half:]]
    return BadInput(f"dependencies form a cycle: {' → '.join(around)}", hint="remove one of these 'after'").about(
        "after"
    )
