"""Rebuilds the world from the store, before the manager listens."""

from __future__ import annotations

import msgspec

from rota.core.attempts.parts import PARTS
from rota.core.learning.estimate import largest_of
from rota.core.recovery import OpenAttempt, Remembered, recover
from rota.core.site.limits import minute_of_day
from rota.core.submit.spec_library import Library
from rota.core.stored import StoreSnapshot
from rota.core.world import World
from rota.host import local_zone
from rota.manager.views.rows import job_from_row
from rota.plan.dispatch.planning import Planning
from rota.plan.policy.limits import ARRAY_LIMIT, Limit
from rota.pools.base import Pool


def world_from(snapshot: StoreSnapshot, pool: Pool, *, wall: float, mono: float, generation: int) -> World:
    """The world as it was when the last batch was committed."""
    # Seat numbers start anew with each manager, so that an old number never means a new seat.
    world = World(Planning(first_seat=(generation << 32) + 1))
    world.zone = local_zone()
    world.site_version = generation << 32  # never equal to a version from before the restart
    world.placement.limits.minute = minute_of_day(world, wall)
    known = {host.host for host in pool.hosts()} | {name for kind, name in snapshot.site if kind == "node"}
    for host in pool.hosts():
        world.capacity[host.host] = host.capacity
        world.placement.host_known(host.host, host.capacity)
    world.largest = largest_of(list(world.capacity.values()))
    # The only host of a planned pool may have been renamed. Hosts of a delegated pool come with their runners.
    local = next((host.host for host in pool.hosts()), "")
    recover(
        world,
        jobs=[job_from_row(row, snapshot.specs[row.spec_id]) for row in snapshot.jobs],
        open_attempts=[
            OpenAttempt(
                row.job, row.number, row.token, row.runner, row.host if row.host in known or not local else local,
                row.leased_at, row.started_at, row.pid or 0, row.seat or 0, row.size, row.given,
            )
            for row in snapshot.open_attempts
        ],
        specs=snapshot.specs,
        outcomes=snapshot.outcomes,
        tally=snapshot.tally,
        next_job=snapshot.next_job,
        mono=mono,
        remembered=Remembered(
            limits=snapshot.limits,
            dep_groups=snapshot.dep_groups,
            bad_members=snapshot.bad_members,
            edges=snapshot.edges,
            edge_specs=snapshot.edge_specs,
            observations=snapshot.observations,
            site=snapshot.site,
            host_states=snapshot.host_states,
            parts=snapshot.meta.get(PARTS) or "",
            replaced=snapshot.replaced,
        ),
    )  # fmt: skip
    world.runner_hosts = {row[0]: row[1] for row in snapshot.runners}
    for id, _host, boot_id, pid, start_time, _joined_at in snapshot.runners:
        if id in world.runners:
            runner = world.runners[id]
            runner.boot_id, runner.pid, runner.start_time = boot_id, pid, start_time
    return world


def library_from(snapshot: StoreSnapshot) -> Library:
    """The specifications and environments that are stored."""
    return Library(
        specs=snapshot.specs,
        env_ids=snapshot.env_ids,
        next_spec=snapshot.next_spec,
        next_env=snapshot.next_env,
    )


def unused_limits(snapshot: StoreSnapshot) -> list[str]:
    """Limits of arrays without a live job: no later job can name them. Other limits stay until they are removed,
    even if only jobs have declared them, since later jobs may name them."""
    declared = {name: msgspec.json.decode(text, type=Limit) for name, text in snapshot.limits.items()}
    by_jobs = {name for name, limit in declared.items() if limit.by_jobs and ARRAY_LIMIT.fullmatch(name)}
    if by_jobs:
        for number in {row.spec_id for row in snapshot.jobs}:
            by_jobs.difference_update(use.name for use in snapshot.specs[number].limits)
    return sorted(by_jobs)
