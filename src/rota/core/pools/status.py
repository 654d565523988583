"""The status of a delegated pool for views: numbers per group, errors, and its runners."""

from __future__ import annotations

from msgspec import Struct

from rota.core.pools.records import NOT_STARTED, Intent
from rota.core.pools.state import Pools
from rota.core.world import World
from rota.plan.need import Need


class GroupStatus(Struct):
    """Runners of one need."""

    wanted: int = 0
    pending: int = 0  #: asked for, and not started as far as is known
    running: int = 0
    error: str | None = None
    retry_at: float | None = None  #: wall time


class RunnerStatus(Struct, frozen=True):
    """A runner that was asked for."""

    name: str
    runner: str  #: its id, once it has joined
    engine_id: str
    host: str  #: as the engine calls it, or else as it calls itself
    state: str
    need: Need


class PoolStatus(Struct, frozen=True):
    """A delegated pool as users see it: its error, its groups of waiting jobs and its runners."""

    error: str | None
    groups: dict[Need, GroupStatus]
    runners: list[RunnerStatus]


def pool_status(world: World, name: str) -> PoolStatus | None:
    """The state of a delegated pool; None: there is none of this name."""
    pools = world.find(Pools)
    pool = pools.pools.get(name) if pools is not None else None
    if pool is None:
        return None
    groups = {need: GroupStatus(wanted=wanted.number) for need, wanted in pool.wanted.items()}
    for intent in pool.intents.values():
        group = groups.setdefault(intent.need, GroupStatus())
        if intent.state in NOT_STARTED:
            group.pending += 1
        else:
            group.running += 1
    for need, error in (pool.fruitless | pool.errors).items():
        group = groups.setdefault(need, GroupStatus())
        group.error, group.retry_at = error.error, error.retry_wall
    failed = pool.survey_error
    return PoolStatus(
        failed.error if failed is not None else None,
        groups,
        [_runner(world, each) for each in pool.intents.values()],
    )


def _runner(world: World, intent: Intent) -> RunnerStatus:
    state = "withdrawn" if intent.withdrawn else intent.state.label
    known = world.runners.get(intent.runner) if intent.runner and not intent.host else None
    host = known.machine if known is not None else intent.host
    return RunnerStatus(intent.name, intent.runner, intent.engine_id, host, state, intent.need)
