"""The pools of a deployment: their groups of waiting jobs, their runners, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from rota.core.machines.hosts import agents, away_word
from rota.core.pools.demand import ready_in
from rota.core.pools.registry import names
from rota.core.pools.status import GroupStatus, PoolStatus, pool_status
from rota.core.world import World
from rota.errors import NotFound
from rota.plan.need import Need
from rota.pool_names import LOCAL, is_delegated
from rota.pool_settings import PoolSettings
from rota.wire.job_parts import size_view
from rota.wire.pool_views import PoolGroupView, PoolRunnerView, PoolsView, PoolView


def view(world: World, pools: Mapping[str, PoolSettings], *, local: bool, name: str = "") -> PoolsView:
    """All pools, or one. `local`: do jobs run on the manager's own host? Raises `NotFound`."""
    known = names(world)
    if name and name not in known:
        raise NotFound(f"there is no pool '{name[:64]}'", hint=f"there are {', '.join(known)}")
    return PoolsView(
        pools=[
            _delegated(world, pools[each]) if is_delegated(each) else _planned(world, each, local=local)
            for each in ((name,) if name else known)
        ]
    )


def _planned(world: World, name: str, *, local: bool) -> PoolView:
    """A pool of our own hosts. What waits for them is in the plan, not in groups."""
    its = {host: each for host, each in agents(world).items() if _pool_of(world, host) == name}
    runners = [
        PoolRunnerView(id=runner.id, engine_id="", host=host, state=away_word(runner) or "running")
        for host, runner in sorted(its.items())
    ]
    off = name == LOCAL and not local
    return PoolView(name=name, engine=name, state="off" if off else "ok", error=None, groups=[], runners=runners)


def _pool_of(world: World, host: str) -> str:
    return world.capacity[host].pool if host in world.capacity else ""


def _delegated(world: World, settings: PoolSettings) -> PoolView:
    name = settings.name
    status = pool_status(world, name) or PoolStatus(None, {}, [])
    ready = ready_in(world, name)
    groups = [
        _group(need, ready.get(need, 0), status.groups.get(need, GroupStatus()))
        for need in dict.fromkeys((*status.groups, *ready))
    ]
    error = status.error or next((group.error for group in groups if group.error is not None), None)
    most = world.settings.pools[name]
    return PoolView(
        name=name,
        engine=settings.engine,
        state="error" if error is not None else "off" if not most else "ok",
        error=error,
        groups=groups,
        runners=[
            PoolRunnerView(id=each.name, engine_id=each.engine_id, host=each.host, state=each.state)
            for each in status.runners
        ],
        max_runners=most,
    )


def _group(need: Need, ready: int, status: GroupStatus) -> PoolGroupView:
    at = status.retry_at
    return PoolGroupView(
        size=size_view(need.size),
        limits=[str(use) for use in need.limits],
        walltime_s=need.walltime_s or None,
        ready=ready,
        wanted=status.wanted,
        pending=status.pending,
        running=status.running,
        error=status.error,
        retry_at=None if at is None else datetime.fromtimestamp(at, UTC),
    )
