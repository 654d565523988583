"""Who waits for whom: release, block and unblock dependents as their parents end.

A dependent keeps a count of parents that do not satisfy it yet, so that a parent's end costs the same
whatever the number of its dependent's other parents.
"""

from __future__ import annotations

from rota.core.effects import NotifyReopened, NotifySettled
from rota.core.job import Condition, Job, Reason
from rota.core.states import TERMINAL, State
from rota.core.turn import Turn
from rota.core.world import NO_JOB, OPEN, World, enqueue, move, write
from rota.errors import BadInput


def satisfied(condition: int, outcome: int) -> bool:
    """Does a parent that ended like this let its dependent run?"""
    if condition == Condition.ANY:
        return outcome in TERMINAL
    if condition == Condition.OK:
        return outcome == State.COMPLETE
    return outcome in (State.FAILED, State.CANCELLED)


def register(world: World, job: Job) -> State:
    """Enter a job's dependencies into the indexes; the state it should begin in."""
    waits = 0
    blockers: set[int] = set()
    for after in job.after:
        outcome = world.outcome(after.parent)
        if outcome not in (OPEN, NO_JOB) and satisfied(after.condition, outcome):
            continue
        waits += 1
        world.children.setdefault(after.parent, []).append((job.id, after.condition))
        parent = world.jobs.get(after.parent)
        if outcome != OPEN or (parent is not None and parent.state is State.BLOCKED):
            blockers.add(after.parent)
    if not waits:
        return State.READY
    world.waits[job.id] = waits
    if blockers:
        world.blocked_by[job.id] = blockers
        return State.BLOCKED
    return State.DEPENDENT


def waiting_state(world: World, job: Job) -> State:
    """Where a job that has nothing else to wait for belongs."""
    if world.blocked_by.get(job.id):
        return State.BLOCKED
    return State.DEPENDENT if world.waits.get(job.id) else State.READY


def enter(world: World, turn: Turn, job: Job, state: State) -> None:
    """Move a job to READY, DEPENDENT or BLOCKED with everything that goes with it."""
    was = job.state
    move(world, job, state)
    if state is State.READY:
        enqueue(world, turn, job)
        write(turn, job)
    elif state is State.DEPENDENT:
        job.reason = None
        write(turn, job)
    else:
        _announce_blocked(world, turn, job)
    if was is State.BLOCKED or was in TERMINAL:
        _announce_reopened(world, turn, job)


def _announce_blocked(world: World, turn: Turn, blocked: Job) -> None:
    """The job, already BLOCKED, says by whom, and so do all that wait for it. (Chains may be long.)"""
    pending = [blocked]
    while pending:
        job = pending.pop()
        job.reason = _why_blocked(world, job)
        write(turn, job)
        turn.effects.append(NotifySettled(job, State.BLOCKED, None))
        for child, _condition in world.children.get(job.id, ()):
            dependent = world.jobs.get(child)
            if dependent is None:
                continue
            world.blocked_by.setdefault(child, set()).add(job.id)
            if dependent.state is State.DEPENDENT:
                move(world, dependent, State.BLOCKED)
                pending.append(dependent)


def _announce_reopened(world: World, turn: Turn, reopened: Job) -> None:
    """The job was terminal or blocked and may end well after all: unblock those it had blocked."""
    turn.effects.append(NotifyReopened(reopened.id))
    pending = [reopened.id]
    while pending:
        parent = pending.pop()
        for child, _condition in world.children.get(parent, ()):
            job = world.jobs.get(child)
            blockers = world.blocked_by.get(child)
            if job is None or not blockers or parent not in blockers:
                continue
            blockers.discard(parent)
            if job.state is State.BLOCKED and not blockers:
                # Its parent is open again, so there is still something to wait for.
                move(world, job, State.DEPENDENT)
                job.reason = None
                write(turn, job)
                turn.effects.append(NotifyReopened(child))
                pending.append(child)


def _why_blocked(world: World, job: Job) -> Reason:
    parent = min(world.blocked_by[job.id])
    outcome = world.outcome(parent)
    if outcome == OPEN:
        said = "is blocked itself"
    elif outcome == NO_JOB:
        said = "does not exist any more"
    else:
        said = f"is {State(outcome).label}"
    return Reason("dependency_never", f"job {parent}, which it waits for, {said}")


def parent_ended(world: World, turn: Turn, parent: int, state: State) -> None:
    """A job reached a terminal state: release or block those that wait for it."""
    children = world.children.pop(parent, None)
    if not children:
        return
    unsatisfied = []
    for entry in children:
        child, condition = entry
        job = world.jobs.get(child)
        if job is None or job.state in TERMINAL:
            continue
        blockers = world.blocked_by.get(child)
        if blockers:
            blockers.discard(parent)
        if satisfied(condition, state):
            left = world.waits[child] - 1
            if left:
                world.waits[child] = left
            else:
                del world.waits[child]
        else:
            unsatisfied.append(entry)
            world.blocked_by.setdefault(child, set()).add(parent)
        if job.state in (State.DEPENDENT, State.BLOCKED):
            target = waiting_state(world, job)
            if target is not job.state:
                enter(world, turn, job, target)
    if unsatisfied:
        # Kept so that a retry of the parent finds them.
        world.children[parent] = unsatisfied


def withdraw(world: World, job: Job) -> None:
    """The job waits for nobody any more (it ended or was removed)."""
    world.waits.pop(job.id, None)
    world.blocked_by.pop(job.id, None)


def refuse_cycle(edges: dict[int, list[int]], *, name: dict[int, str]) -> None:
    """Raise `BadInput`, naming the cycle, if following `edges` (job → parents) ever returns."""
    done: set[int] = set()
    for start in edges:
        path: list[int] = []
        on_path: set[int] = set()
        stack: list[tuple[int, bool]] = [(start, False)]
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
                cycle = [*path[path.index(node) :], node]
                shown = " → ".join(name.get(each, str(each)) for each in cycle)
                raise BadInput(f"dependencies form a cycle: {shown}", hint="remove one of these 'after'")
            path.append(node)
            on_path.add(node)
            stack.append((node, True))
            stack.extend((parent, False) for parent in edges.get(node, ()))
