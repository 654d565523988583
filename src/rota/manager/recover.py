"""From a store to a world that can go on: what a manager does before it listens."""

from __future__ import annotations

from rota.core.recovery import OpenAttempt, recover
from rota.core.world import World
from rota.manager.intake import Library
from rota.manager.rows import job_from_row
from rota.plan.packing import Packing
from rota.pools.base import Pool
from rota.store.base import Snapshot


def world_from(snapshot: Snapshot, pool: Pool, *, mono: float, generation: int) -> World:
    """The world as it was when the last batch was committed."""
    # Seats are named anew by every manager, so that an old name never means a new seat.
    world = World(Packing(first_seat=(generation << 32) + 1))
    known = {host.host for host in pool.hosts()}
    for host in pool.hosts():
        world.capacity[host.host] = host.capacity
        world.placement.host_known(host.host, host.capacity)
    local = next(iter(known))
    recover(
        world,
        jobs=[job_from_row(row, snapshot.specs[row.spec_id]) for row in snapshot.jobs],
        open_attempts=[
            OpenAttempt(
                row.job, row.number, row.token, row.runner, row.host if row.host in known else local,
                row.leased_at, row.started_at, row.pid or 0, row.seat or 0,
            )
            for row in snapshot.open_attempts
        ],
        specs=snapshot.specs,
        outcomes=snapshot.outcomes,
        tally=snapshot.tally,
        next_job=snapshot.next_job,
        mono=mono,
    )  # fmt: skip
    for id, _host, boot_id, pid, start_time, _joined_at in snapshot.runners:
        if id in world.runners:
            runner = world.runners[id]
            runner.boot_id, runner.pid, runner.start_time = boot_id, pid, start_time
    return world


def library_from(snapshot: Snapshot) -> Library:
    """The specifications and environments that are stored."""
    return Library(
        specs=snapshot.specs,
        env_ids=snapshot.env_ids,
        next_spec=snapshot.next_spec,
        next_env=snapshot.next_env,
    )
