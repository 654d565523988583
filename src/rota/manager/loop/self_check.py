"""Checks the invariants of the world for `rota doctor`, in steps, so that the loop goes on in between."""

from __future__ import annotations

import asyncio

from rota.core.invariants import check_each
from rota.core.world import World

#: With more live jobs than this the invariants are not checked on the fly.
CHECK_UP_TO_JOBS = 50_000


class SelfCheck:
    """Requests that come during a check share its result."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._looking: asyncio.Task[list[str]] | None = None

    async def result(self) -> list[str]:
        """One sentence for each broken invariant."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().create_task(self._look())
        return await asyncio.shield(self._looking)  # others wait for it too

    async def _look(self) -> list[str]:
        wrong: list[str] = []
        if self._world.live > CHECK_UP_TO_JOBS:
            return wrong  # too many to check while clients wait
        for found in check_each(self._world):
            wrong += found
            await asyncio.sleep(0)
        return wrong
