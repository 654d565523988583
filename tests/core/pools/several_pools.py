"""The engine with its own host and two delegated pools, whose engine starts what is wanted when it is told to."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import msgspec

from rota.core import events
from rota.core.pools.demand import Demand
from rota.core.pools.state import PoolRules, Pools
from rota.core.states import State
from rota.plan.dispatch.planning import Planning
from rota.plan.need import Need
from rota.plan.placement.placement import Placement
from rota.plan.size import Capacity
from tests.core.machine import Machine
from tests.core.runners import ModelRunner

FAR, WIDE = "far", "wide"


class SeveralPools(Machine):
    """Local host with `cpus`, and the pools `far` and `wide`."""

    def __init__(
        self,
        *,
        most: dict[str, int] | None = None,
        placement: Callable[[int], Placement] = lambda first_seat: Planning(first_seat=first_seat),
        **more: Any,
    ) -> None:
        self.most = {FAR: 3, WIDE: 2} if most is None else most
        self.made: dict[str, tuple[str, Need]] = {}  #: runner → its pool and group
        self._names = count(1)
        super().__init__(placement=placement, **more)
        self.witness._capacity = dict(self.capacity)

    def _boot(self) -> None:
        super()._boot()
        self.world.settings = msgspec.structs.replace(self.world.settings, pools=self.most)
        self.world.use(Pools).configure({name: PoolRules(max_runners=most) for name, most in self.most.items()})
        self.world.use(Demand)

    def wanted(self) -> dict[str, dict[Need, int]]:
        """Runners that each pool should have, as last stated."""
        self.advance(1.0)
        pools = self.world.use(Pools).pools
        return {name: {need: w.number for need, w in pools[name].wanted.items()} for name in self.most}

    def totals(self) -> dict[str, int]:
        return {name: sum(needs.values()) for name, needs in self.wanted().items()}

    def serve(self, pool: str, number: int = 1 << 30) -> list[ModelRunner]:
        """The engine of this pool starts what is wanted and not there yet."""
        started = []
        for group, wanted in self.wanted()[pool].items():
            there = sum(1 for its in self.made.values() if its == (pool, group))
            for _ in range(min(wanted - there, number)):
                number -= 1
                started.append(self.start_made(pool, group))
        self.pump()
        return started

    def start_made(self, pool: str, group: Need) -> ModelRunner:
        name = f"{pool}-{next(self._names)}"
        model = ModelRunner(name, name, self.witness)
        size = group.size
        self.witness._capacity[name] = Capacity(size.cpus, size.mem, size.disk, size.gpus, pool)
        self.runners[name], self.made[name] = model, (pool, group)
        self.happened(msgspec.structs.replace(model.join(), made_for=group, pool=pool))
        return model

    def leave_idle(self) -> None:
        """Runners without work leave, as the manager agrees."""
        self.pump()
        for name in list(self.made):
            model, known = self.runners[name], self.world.runners.get(name)
            if known is not None and not known.leases and not model.busy and not model.waiting:
                self.happened(events.RunnerIdled(runner=name))
                self.pump()
                self.disconnect(model)
                del self.made[name], self.runners[name]

    def pool_of(self, job: int) -> str:
        """Where a running job is."""
        host = self.running()[job][0].host
        return self.world.capacity[host].pool

    def ready(self) -> list[int]:
        return [job.id for job in self.world.jobs.values() if job.state is State.READY]
