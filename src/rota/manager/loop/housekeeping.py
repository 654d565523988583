"""What the manager does every second: time passes for the engine, children are reaped, old output is removed. A
manager without work stops."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Final

from rota.core import events
from rota.core.invariants import broken
from rota.core.states import LIVE, SETTLED
from rota.core.world import World
from rota.manager.features import ManagerFeatures
from rota.manager.loop import clock
from rota.manager.loop.awake_clock import TICK_S, AwakeClock
from rota.manager.loop.bugs import BugKeeper
from rota.manager.loop.deployment import Deployment
from rota.manager.loop.reexecution import LeftChildren
from rota.manager.loop.self_check import CHECK_UP_TO_JOBS
from rota.manager.loop.turns import TurnLoop
from rota.manager.output.pruning import Pruner
from rota.manager.peers.peer import Peer
from rota.pools.base import Pool

log = logging.getLogger("rota.manager")

_CHECK_EVERY_S: Final = 60.0
#: While a job is in one of these states, the manager has something to do.
_BUSY: Final = LIVE - SETTLED


class Housekeeping:
    """Works once a second. Belongs to the loop's thread."""

    def __init__(
        self,
        deployment: Deployment,
        world: World,
        pool: Pool,
        *,
        turns: TurnLoop,
        awake: AwakeClock,
        peers: Mapping[int, Peer],
        features: ManagerFeatures,
        pruner: Pruner,
        bugs: BugKeeper,
        stop_idle: Callable[[], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._deployment = deployment
        self._world = world
        self._pool = pool
        self._turns = turns
        self._awake = awake
        self._peers = peers
        self._features = features
        self._pruner = pruner
        self._bugs = bugs
        self._stop_idle = stop_idle
        self._busy_at = self._checked_at = time.monotonic()
        self._left_children = LeftChildren() if deployment.again else None

    def start(self) -> None:
        """Begin to work."""
        self._loop.call_later(TICK_S, self._tick)

    def _tick(self) -> None:
        at = self._awake.tick()
        self._loop.call_later(TICK_S, self._tick)
        clock.steady().look()
        self._turns.happened(events.TimerFired())
        with self._bugs.counted("every second: children"):
            if self._left_children is not None:
                self._left_children.reap()
            self._pool.check()
        with self._bugs.counted("every second: features"):
            self._features.tick(at)
        with self._bugs.counted("every second: invariants"):
            self._check_itself(at)
        with self._bugs.counted("every second: old output"):
            self._pruner.tick(at)
        self._consider_stopping(at)

    def _check_itself(self, at: float) -> None:
        if at - self._checked_at > _CHECK_EVERY_S:
            self._checked_at = at
            if self._world.live <= CHECK_UP_TO_JOBS:
                for sentence in broken(self._world):
                    log.error("invariant broken: %s", sentence)

    def busy(self) -> bool:
        """Is there a job that runs, or that will run without further action?"""
        return any(counts[state] for counts in self._world.counts.values() for state in _BUSY)

    def _consider_stopping(self, at: float) -> None:
        idle_stop_s = self._deployment.idle_stop_s
        clients = any(peer.role not in ("", "runner", "gateway") for peer in self._peers.values())
        if self.busy() or clients or self._turns.busy:
            self._busy_at = at
        elif idle_stop_s is not None and at - self._busy_at > idle_stop_s:
            log.info("idle for %g s: stopping", idle_stop_s)
            self._stop_idle()
