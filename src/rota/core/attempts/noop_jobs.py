"""Jobs of type `noop`: they hold resources and execute nothing.

Their leases belong to a runner that is not a process: the engine itself starts such a job, and ends it at its
walltime or when it is killed.
"""

from __future__ import annotations

from collections.abc import Set
from math import inf

import msgspec

from rota.core.accounts.accounting import count_start
from rota.core.attempts.attempt import end_attempt
from rota.core.attempts.seats import take_lease
from rota.core.effects import NotifyStarted
from rota.core.feature import Feature
from rota.core.jobs.job import Job, Lease
from rota.core.jobs.outcome import Outcome
from rota.core.machines.machine_use import job_began, job_took
from rota.core.rows import AttemptRow, StartRow
from rota.core.states import State
from rota.core.turn import Turn
from rota.core.world import Runner, World, move
from rota.plan.placement.given import Given

#: Name prefix of that runner; a host follows.
_NOWHERE = "nowhere@"


class NoopJobs:
    """State of the feature `noop jobs`."""

    __slots__ = ("running",)

    def __init__(self) -> None:
        self.running: set[int] = set()


def is_noop(world: World, job: int) -> bool:
    """Is this a running job of type noop?"""
    return job in running_noops(world)


def running_noops(world: World) -> Set[int]:
    """The running jobs of type noop."""
    found = world.find(NoopJobs)
    return found.running if found is not None else frozenset()


def is_noop_runner(runner: str) -> bool:
    """Is this the name of a runner that is not a process?"""
    return runner.startswith(_NOWHERE)


def noop_runner(world: World, host: str) -> Runner:
    """The runner for noop jobs whose first host is this one."""
    name = _NOWHERE + host
    runner = world.runners.get(name)
    if runner is None:
        runner = world.runners[name] = Runner(name, host)
        runner.heard_at = inf  # its heartbeat never times out
    return runner


def begin_noop(world: World, turn: Turn, job: Job, host: str, given: Given) -> None:
    """Start the job: from now on it holds its resources."""
    runner = noop_runner(world, host)
    move(world, job, State.SCHEDULED)
    job.attempt += 1
    token = int(turn.random() * (1 << 53)) + 1
    job.lease = Lease(token=token, runner=runner.id, leased_at=turn.wall, given=given, started_at=turn.wall)
    job.learned = given.size
    take_lease(runner, job)
    job_took(world, job, host)
    job_began(world, job, host)
    size, what = msgspec.json.encode(given.size).decode(), msgspec.json.encode(given).decode()
    turn.changes.attempts.append(
        AttemptRow(job.id, job.attempt, token, runner.id, host, turn.wall, job.spec_id, size, what)
    )
    turn.changes.starts.append(StartRow(job.id, job.attempt, turn.wall, 0, 0))
    move(world, job, State.RUNNING)
    count_start(turn, job, turn.wall)
    world.use(NoopJobs).running.add(job.id)
    turn.effects.append(NotifyStarted(job.id, job.attempt, runner.id))


def restore_noop(world: World, job: Job, host: str) -> None:
    """Restore a running noop job after a restart."""
    assert job.lease is not None
    take_lease(noop_runner(world, host), job)
    world.use(NoopJobs).running.add(job.id)
    job.state, job.reason = State.RUNNING, None
    world.placement.adopt_lease(host, job.need)


def end_noop(world: World, turn: Turn, job: Job, *, reason: str, message: str) -> None:
    """End the job and free its resources."""
    lease = job.lease
    assert lease is not None
    world.use(NoopJobs).running.discard(job.id)
    ended_at = max(turn.wall, lease.started_at or 0.0)
    outcome = Outcome(reason=reason, message=message, started_at=lease.started_at, ended_at=ended_at)
    end_attempt(world, turn, job, outcome)
    runner = world.runners.get(lease.runner)
    if runner is not None and not runner.leases:
        del world.runners[runner.id]


def end_due_noops(world: World, turn: Turn) -> None:
    """End noop jobs whose walltime is over."""
    for id in sorted(running_noops(world)):
        job = world.jobs[id]
        end = _end_of(job)
        if end is not None and end <= turn.wall:
            assert job.lease is not None
            took = end - (job.lease.started_at or end)
            end_noop(world, turn, job, reason="walltime", message=f"over its walltime of {took:g} s")


def next_end(world: World) -> float | None:
    """Return the wall time at which the next noop job ends."""
    ends = [end for id in running_noops(world) if (end := _end_of(world.jobs[id])) is not None]
    return min(ends, default=None)


def _end_of(job: Job) -> float | None:
    lease = job.lease
    if lease is None or lease.started_at is None:
        return None
    walltime_s = lease.given.walltime_s if lease.given is not None else job.spec.walltime_s
    return None if walltime_s is None else lease.started_at + walltime_s


def _index_as_leased(world: World) -> list[str]:
    """The index has exactly the leases at runners that are not processes."""
    runners = (runner for runner in world.runners.values() if is_noop_runner(runner.id))
    wrong = {id for runner in runners for id in runner.leases} ^ world.use(NoopJobs).running
    return [f"I3: noop job {id} is not both leased and known" for id in sorted(wrong)]


FEATURE = Feature(
    name="noop jobs",
    state=NoopJobs,
    invariant=_index_as_leased,
    on_timer=end_due_noops,
    next_due=next_end,
)
