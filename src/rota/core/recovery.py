"""Rebuild the world from what the store kept. Recovering twice equals recovering once."""

from __future__ import annotations

from heapq import heapify

from msgspec import Struct

from rota.core.attempts import adopt_seat, take_lease
from rota.core.dependencies import register
from rota.core.job import Job, Lease, Spec
from rota.core.states import LEASED, State
from rota.core.world import OPEN, Runner, World
from rota.plan.size import Size


class OpenAttempt(Struct, frozen=True, gc=False):
    """A lease without a recorded end."""

    job: int
    number: int
    token: int
    runner: str
    host: str
    leased_at: float
    started_at: float | None
    pid: int
    seat: int


def recover(
    world: World,
    *,
    jobs: list[Job],
    open_attempts: list[OpenAttempt],
    specs: dict[int, Spec],
    outcomes: bytes,
    tally: dict[tuple[str, int], int],
    next_job: int,
    mono: float,
) -> None:
    """Fill an empty world. Hosts must be known to the placement already.

    Leased jobs keep their lease, with a fresh countdown: their runner, if it lives, will join and say
    what it holds. The stored state of a live job is that of its last non-routine change, so leases
    decide first.
    """
    world.specs = specs
    world.next_job = next_job
    world.outcomes = bytearray(outcomes)
    for (group, state), number in tally.items():
        world.counts[group][state] += number
    leases = {attempt.job: attempt for attempt in open_attempts}
    for job in jobs:
        world.jobs[job.id] = job
        world.keys[job.key] = job.id
        world.outcomes[job.id] = OPEN
    ready: dict[tuple[int, Size], list[int]] = {}
    for job in jobs:
        waiting = register(world, job) if job.after else State.READY
        lease = leases.get(job.id)
        if lease is not None:
            _restore_lease(world, job, lease, mono)
        elif job.state in (State.HELD, State.DELAYED):
            pass
        else:
            job.state = waiting
        if job.due_at is not None:
            world.due.append((job.due_at, job.id))
        if job.state is State.READY:
            ready.setdefault((job.spec.priority, job.spec.size), []).append(job.id)
        world.counts[job.spec.group][job.state] += 1
    heapify(world.due)
    _block_transitively(world, jobs)
    for (priority, size), ids in ready.items():
        world.placement.offer(size, priority=priority, jobs=ids)


def _restore_lease(world: World, job: Job, found: OpenAttempt, mono: float) -> None:
    job.attempt = max(job.attempt, found.number)
    job.lease = Lease(
        token=found.token,
        runner=found.runner,
        leased_at=found.leased_at,
        started_at=found.started_at,
        seat=found.seat,
        pid=found.pid,
    )
    runner = world.runners.get(found.runner)
    if runner is None:
        runner = world.runners[found.runner] = Runner(found.runner, found.host)
        runner.heard = mono
    take_lease(runner, job)
    # A kill that was asked for before the crash is still wanted.
    job.kill = job.state is State.FINISHING or (job.reason is not None and job.reason.code == "kill_requested")
    if job.kill:
        job.state = State.FINISHING
    elif job.state not in LEASED or job.state is State.LOST:
        job.reason = None
        job.state = State.RUNNING if found.started_at is not None else State.SCHEDULED
    world.placement.adopt(0, found.host, job.spec.size, leases=1)
    if found.seat in runner.seats:
        # Two in one seat: one of them is over, which its runner will say.
        job.lease.seat = 0
        return
    # It may have started without our knowing where: room is kept until its runner says what is true.
    seat = found.seat or -job.id
    adopt_seat(world, runner, seat, job)
    world.placement.started(seat, mono)


def _block_transitively(world: World, jobs: list[Job]) -> None:
    """Parents may have been restored after their dependents: those behind a blocked job are blocked."""
    pending = [job.id for job in jobs if job.state is State.BLOCKED]
    while pending:
        parent = pending.pop()
        for child, _condition in world.children.get(parent, ()):
            job = world.jobs[child]
            world.blocked_by.setdefault(child, set()).add(parent)
            if job.state is State.DEPENDENT:
                counts = world.counts[job.spec.group]
                counts[State.DEPENDENT] -= 1
                counts[State.BLOCKED] += 1
                job.state = State.BLOCKED
                pending.append(child)
