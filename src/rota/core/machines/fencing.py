"""Fencing: the site's `fence_cmd` succeeded, which proves that a silent host is off."""

from __future__ import annotations

from rota.core.attempts.attempt import end_as_lost, void_attempt
from rota.core.attempts.part_events import part_gone
from rota.core.attempts.parts import jobs_with_part, part_at
from rota.core.effects import KillAttempts
from rota.core.events import HostFenced
from rota.core.machines.runners import retire_idle
from rota.core.machines.suspected_hosts import BY_FENCE, set_state
from rota.core.turn import Turn
from rota.core.world import Runner, World


def to_fence(world: World) -> list[str]:
    """The silent hosts with lost jobs."""
    return sorted({runner.host for runner in world.runners.values() if runner.silent and _has_jobs(world, runner)})


def _has_jobs(world: World, runner: Runner) -> bool:
    if runner.leases:
        return True
    parts = (part_at(world.jobs[id], runner.host) for id in jobs_with_part(world, runner.host))
    return any(part is not None and part.runner == runner.id for part in parts)


def on_host_fenced(world: World, turn: Turn, event: HostFenced) -> None:
    """End what ran on the host; the retries decide. The host is dead until an agent joins there."""
    host = event.host
    there = [runner for runner in world.runners.values() if runner.host == host]
    if not any(runner.silent for runner in there) or any(
        runner.connected and not runner.silent for runner in there
    ):
        return  # it answers again, so the proof concerned another machine
    why = f"node {host} was fenced: {event.why}"
    for runner in there:
        for id in sorted(runner.leases):
            job = world.jobs[id]
            lease = job.lease
            assert lease is not None
            if lease.withheld is not None:
                void_attempt(world, turn, job, why)
            else:
                # If the runner lives after all, it must not go on with it.
                turn.effects.append(KillAttempts(runner.id, [(id, job.attempt, lease.token)]))
                end_as_lost(world, turn, job, why)
    for id in sorted(jobs_with_part(world, host)):
        part_gone(world, turn, world.jobs[id], host, why)
    for runner in there:
        if runner.id in world.runners:
            retire_idle(world, runner)
    set_state(world, turn, host, "dead", by=BY_FENCE, why=event.why)
