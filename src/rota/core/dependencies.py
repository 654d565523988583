"""Who waits for whom: release, block and unblock dependents as their parents end.

A dependent keeps a count of parents that do not satisfy it yet, so that a parent's end costs the same
whatever the number of its dependent's other parents.
"""

from __future__ import annotations

from rota.core.effects import NotifyReopened, NotifySettled
from rota.core.job import Condition, Job, Outcome, Reason
from rota.core.states import TERMINAL, State
from rota.core.turn import Turn
from rota.core.world import NO_JOB, OPEN, World, dequeue, enqueue, finish, move, write
from rota.errors import BadInput

#: Of a long cycle only so many jobs are named.
_MOST_SHOWN = 12


def satisfied(condition: int, outcome: int) -> bool:
    """Does a parent that ended like this let its dependent run?"""
    if condition == Condition.ANY:
        return outcome in TERMINAL
    if condition == Condition.OK:
        return outcome == State.COMPLETE
    return outcome in (State.FAILED, State.CANCELLED)


def register(world: World, job: Job) -> State:
    """Enter a job's dependencies into the indexes; the state it should begin in.

    A parent that was removed is waited for no more. One that failed or was cancelled in a way that
    satisfies the job is remembered all the same: it may be retried.
    """
    waits = 0
    blockers: set[int] = set()
    for after in job.after:
        outcome = world.outcome(after.parent)
        if outcome == NO_JOB or (outcome == State.COMPLETE and satisfied(after.condition, outcome)):
            continue
        world.children.setdefault(after.parent, {})[job.id, after.condition] = None
        if outcome != OPEN and satisfied(after.condition, outcome):
            continue
        waits += 1
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
    if was in TERMINAL:
        _wait_again(world, turn, job, was)
    move(world, job, state)
    if was is State.BLOCKED or was in TERMINAL:
        announce_reopened(world, turn, job)
    if state is State.BLOCKED:
        announce_blocked(world, turn, job)
        return
    if state is State.READY:
        enqueue(world, turn, job)
    else:
        job.reason = None
    write(turn, job)


def _wait_again(world: World, turn: Turn, parent: Job, was: State) -> None:
    """The parent is about to open again: those that were content with how it ended wait once more.

    What executes already goes on, and what is held or delayed looks again when its time comes.
    """
    for child, condition in world.children.get(parent.id, ()):
        if satisfied(condition, was):
            world.waits[child] = world.waits.get(child, 0) + 1
            job = world.jobs[child]
            if job.state is State.READY:
                dequeue(world, job)
                enter(world, turn, job, State.DEPENDENT)


def announce_blocked(world: World, turn: Turn, blocked: Job) -> None:
    """The job, already BLOCKED, says by whom, and so do all that wait for it. (Chains may be long.)"""
    pending = [blocked]
    while pending:
        job = pending.pop()
        job.reason = _why_blocked(world, job)
        write(turn, job)
        turn.effects.append(NotifySettled(job, State.BLOCKED, None))
        for child, _condition in world.children.get(job.id, ()):
            dependent = world.jobs[child]
            world.blocked_by.setdefault(child, set()).add(job.id)
            if dependent.state is State.DEPENDENT:
                move(world, dependent, State.BLOCKED)
                pending.append(dependent)


def announce_reopened(world: World, turn: Turn, reopened: Job) -> None:
    """The job was terminal or blocked and is no longer: unblock those it had blocked."""
    turn.effects.append(NotifyReopened(reopened.id))
    pending = [reopened.id]
    while pending:
        parent = pending.pop()
        for child, _condition in world.children.get(parent, ()):
            blockers = world.blocked_by.get(child)
            if not blockers or parent not in blockers:
                continue
            blockers.discard(parent)
            job = world.jobs[child]
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
    said = "is blocked itself" if outcome == OPEN else f"is {State(outcome).label}"
    return Reason("dependency_never", f"job {parent}, which it waits for, {said}")


def end_job(
    world: World, turn: Turn, job: Job, state: State, *, reason: Reason | None, outcome: Outcome | None
) -> None:
    """Put a job into a terminal state, with what that means for those who wait for it."""
    finish(world, turn, job, state, reason=reason, outcome=outcome)
    withdraw(world, job)
    if job.id in world.children:
        _parent_ended(world, turn, job.id, state)


def _parent_ended(world: World, turn: Turn, parent: int, state: State) -> None:
    """Release or block those that wait for this job, which reached a terminal state."""
    entries = world.children.pop(parent)
    children = dict.fromkeys(child for child, _condition in entries)
    for child in children:
        if child in world.blocked_by:
            world.blocked_by[child].discard(parent)
    for child, condition in entries:
        if not satisfied(condition, state):
            world.blocked_by.setdefault(child, set()).add(parent)
        elif world.waits[child] > 1:
            world.waits[child] -= 1
        else:
            del world.waits[child]
    # Kept so that a retry of the parent finds them; what is complete stays complete.
    kept = {entry: None for entry in entries if state is not State.COMPLETE or not satisfied(entry[1], state)}
    if kept:
        world.children[parent] = kept
    for child in children:
        job = world.jobs[child]
        if job.state in (State.DEPENDENT, State.BLOCKED):
            target = waiting_state(world, job)
            if target is not job.state:
                enter(world, turn, job, target)


def withdraw(world: World, job: Job) -> None:
    """The job waits for nobody any more: it ended."""
    world.waits.pop(job.id, None)
    world.blocked_by.pop(job.id, None)
    for after in job.after:
        entries = world.children.get(after.parent)
        if entries is not None:
            entries.pop((job.id, after.condition), None)
            if not entries:
                del world.children[after.parent]


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
                if len(cycle) > _MOST_SHOWN:
                    name = {**name, 0: f"… ({len(cycle) - _MOST_SHOWN} more)"}
                    cycle = [*cycle[: _MOST_SHOWN // 2], 0, *cycle[-_MOST_SHOWN // 2 :]]
                shown = " → ".join(name.get(each, str(each)) for each in cycle)
                raise BadInput(f"dependencies form a cycle: {shown}", hint="remove one of these 'after'")
            path.append(node)
            on_path.add(node)
            stack.append((node, True))
            stack.extend((parent, False) for parent in edges.get(node, ()))
