"""The pools of a deployment by name, and which jobs could ever run in them."""

from __future__ import annotations

from collections.abc import Iterator

from rota.core.jobs.job import Spec
from rota.core.pools import delegable
from rota.core.pools.state import Pools
from rota.core.world import World
from rota.errors import BadInput
from rota.plan.ask import Request
from rota.plan.need import Need, allocation_s
from rota.pool_names import PLANNED


def names(world: World) -> tuple[str, ...]:
    """All pools, in the order in which they are tried."""
    return (*PLANNED, *world.settings.pools)


def refuse_limits_of_hosts(world: World, spec: Spec) -> None:
    """Raise `BadInput` if a job of a delegated pool uses a limit that each of our hosts has."""
    if name := delegable.of_hosts(spec, world.placement.limits):
        raise BadInput(
            f"limit '{name}' is one of each host, and pool '{spec.pool}' has no hosts of ours",
            field="limits",
            hint="use a limit of the whole deployment, or another pool",
        )


def allowed(world: World, need: Need, request: Request) -> Iterator[str]:
    """The delegated pools that jobs of this need may run in and that could ever run them, in order."""
    pools = world.settings.pools
    if not pools or (need.pool and need.pool not in pools):
        return
    if delegable.unfit(request) is not None or delegable.of_hosts(request, world.placement.limits):
        return
    seconds = allocation_s(need, world.settings.vacate_times.grace_s)
    for name in (need.pool,) if need.pool else pools:
        if can_fit(world, name, need, seconds):
            yield name


def could_delegate(world: World, spec: Spec) -> bool:
    """Could a delegated pool ever run such a job?"""
    return next(allowed(world, spec.need(spec.size, 0), spec), None) is not None


def can_fit(world: World, pool: str, need: Need, seconds: float) -> bool:
    """Could the engine of this pool ever start a runner for this need? What is not known is possible."""
    pools = world.find(Pools)
    return pools is None or pools.can_fit(pool, need.size, seconds)
