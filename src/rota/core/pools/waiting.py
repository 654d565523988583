"""Why a ready job waits for a delegated pool, in words."""

from __future__ import annotations

from typing import NamedTuple

from rota.core.jobs.job import Job
from rota.core.pools.demand import Demand
from rota.core.pools.registry import allowed
from rota.core.pools.status import GroupStatus, pool_status
from rota.core.world import World
from rota.plan.reasons import Waits
from rota.pool_names import is_delegated


class PoolWait(NamedTuple):
    """What a ready job waits for in a delegated pool."""

    waits: Waits
    #: False: the pool has room and was not asked for a runner, so something else, such as a limit, keeps the job.
    holds: bool = True


def waits_for_pool(world: World, job: Job) -> PoolWait | None:
    """What keeps this ready job from running in a delegated pool; None: it would not run in one."""
    named, need = job.spec.pool, job.need
    if is_delegated(named) and named not in world.settings.pools:
        hint = f"rota modify {job.id} --pool none"
        return PoolWait(Waits("pool", f"pool '{named}' is not configured any more", hint=hint))
    pools = tuple(allowed(world, need, job.spec))
    if not pools:
        if not is_delegated(named):
            return None
        said = f"never fits: the engine of pool '{named}' starts no runner for it"
        return PoolWait(Waits("unsatisfiable", said))
    demand, group = world.find(Demand), need.group
    at = demand.turns.get(group) if demand is not None and not named else None
    if at is not None and at.leaving:
        said = f"runners for it are being withdrawn from pool '{at.leaving}' before pool '{at.pool}' is asked"
        return PoolWait(Waits("pool", said, hint=f"rota pool status {at.pool}"))
    pool = at.pool if at is not None else pools[0]
    counted = demand.counted.get(pool, {}).get(group, 0) if demand is not None else 0
    return _at_pool(world, pool, job, counted)


def _at_pool(world: World, pool: str, job: Job, counted: int) -> PoolWait:
    status = pool_status(world, pool)
    groups = status.groups if status is not None else {}
    group = groups.get(job.need.group, GroupStatus())
    error = group.error or (status.error if status is not None else None)
    most = world.settings.pools[pool]
    holds = True
    if error:
        said = f"pool '{pool}' cannot start a runner for it: {error}"
    elif group.pending:
        one = group.pending == 1
        are = "1 runner for such jobs waits" if one else f"{group.pending:,} runners for such jobs wait"
        said = f"{are} to be started by the engine of pool '{pool}'"
    elif not counted and sum(each.wanted for each in groups.values()) >= most:
        said = f"pool '{pool}' has reached its maximum number of runners ({most:,})"
    else:
        said, holds = f"pool '{pool}' is asked for a runner", counted > 0
    return PoolWait(Waits("pool", said, hint=f"rota pool status {pool}"), holds)
