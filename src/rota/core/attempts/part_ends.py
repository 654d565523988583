"""A part of a lease (`core.attempts.parts`) is over: as it was asked, or because its runner is gone, or never was
ready."""

from __future__ import annotations

from rota.core.attempts.attempt import conclude, revive, void_attempt
from rota.core.attempts.parts import ask, drop_part, forget_part, lease_of, parts_by_host, release_part, remember
from rota.core.attempts.suspension import host_left
from rota.core.jobs.job import Job
from rota.core.turn import Turn
from rota.core.world import World


def part_shut(world: World, turn: Turn, job: Job, host: str) -> None:
    """Nothing is left of a job on this host."""
    lease = lease_of(job)
    if lease.ended is None:
        release_part(world, turn, job, host)  # nobody asked for that; the next runner there opens it again
        host_left(world, turn, job, host)
        return
    drop_part(world, job, host)
    if lease.parts is None:
        conclude(world, turn, job, lease.ended, host=lease.host)
    else:
        remember(world, turn)  # whoever said so may never speak to the next manager, nor be proven dead again
        revive(world, turn, job)


def part_gone(world: World, turn: Turn, job: Job, host: str, why: str) -> None:
    """The runner that held a part is gone, and with it everything that it had started there."""
    part_shut(world, turn, job, host)
    lease = job.lease
    if lease is None or lease.ended is not None:
        return
    if lease.withheld is not None:
        void_attempt(world, turn, job, f"its part on {host} is gone before it began: {why}")
    elif not job.kill and not job.preempted:
        # What ran there has ended, and whoever started it knows. The job goes on.
        turn.note(job.id, job.attempt, "part", f"everything of it on {host} has ended: {why}")
        ask(world, turn, job, host)
    if job.lease is lease:
        revive(world, turn, job)


def part_failed(world: World, turn: Turn, job: Job, host: str, why: str) -> None:
    """A host cannot be made ready for its part of a job, and has nothing of it."""
    lease = lease_of(job)
    part_shut(world, turn, job, host)
    if lease.ended is not None:
        return
    if lease.withheld is not None:
        void_attempt(world, turn, job, f"{host} could not be made ready for it: {why}")
    else:
        forget_part(world, turn, job, host)
        turn.note(job.id, job.attempt, "part", f"it goes on without {host}, which could not be made ready: {why}")


def void_unheld(world: World, turn: Turn) -> None:
    """Jobs that have not begun do not wait for a host on which nobody answers: they are planned anew."""
    for host, ids in list(world.parts_at.items()):
        runner = world.runners.get(world.runner_at.get(host, ""))
        if runner is not None and not runner.silent:
            continue
        for id in sorted(ids):
            job = world.jobs[id]
            asked = parts_by_host(job)[host].runner or id in world.server_hooks.running  # or will be
            if lease_of(job).withheld is not None and not asked:
                void_attempt(world, turn, job, f"nobody answers on {host}")
