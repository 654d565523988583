"""Asks a delegated pool for runners: how many it should have for each reservation group.

The numbers follow the queue up and down. Changes are batched for a moment, and all numbers are repeated every
minute, since an earlier request may have been lost.
"""

from __future__ import annotations

import asyncio
import logging

from rota.core.site.manager_pause import starts_nothing
from rota.core.world import World
from rota.plan.need import Need
from rota.pools.base import DelegatedPool

log = logging.getLogger("rota.manager")

GATHER_S = 0.05
RESTATE_S = 60.0


class Demand:
    """The present demand for runners."""

    def __init__(self, world: World, pool: DelegatedPool, *, max_runners: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._world = world
        self._pool = pool
        self._max_runners = max_runners
        self._stated: dict[Need, int] | None = None
        self._stated_at = 0.0
        self._due = False

    def look_soon(self) -> None:
        """The demand may have changed: check soon."""
        if not self._due:
            self._due = True
            self._loop.call_later(GATHER_S, self._look)

    def _look(self) -> None:
        self._due = False
        now = self._loop.time()
        wanted = self.wanted()
        if wanted == self._stated and now - self._stated_at < RESTATE_S:
            return
        self._stated, self._stated_at = wanted, now
        try:
            self._pool.want(wanted)
        except Exception:
            # A failure of the other engine must not stop this one: it is asked again in a minute.
            log.exception("cannot ask pool '%s' for runners", self._pool.name)

    def wanted(self) -> dict[Need, int]:
        """Runners that should exist: all that hold jobs, and one for each job that could start."""
        world = self._world
        wanted: dict[Need, int] = {}
        for runner in world.runners.values():
            if runner.made_for is not None and runner.leases:
                wanted[runner.made_for] = wanted.get(runner.made_for, 0) + 1
        left = self._max_runners - sum(wanted.values())
        if not starts_nothing(world):
            for need, number in world.placement.demand().items():
                more = min(number, left)
                if more > 0:
                    wanted[need] = wanted.get(need, 0) + more
                    left -= more
        return wanted
