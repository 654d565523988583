"""Requests about the manager itself: its state, pausing and stopping it, copying its database, credentials."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable
from typing import Final

import msgspec

from rota.core import events
from rota.core.site.manager_pause import leased, starts_nothing, unstarted
from rota.core.world import World
from rota.errors import BadInput, EnvironmentFault
from rota.manager.host.gateway import GatewayProcess
from rota.manager.loop.deployment import Deployment
from rota.manager.loop.self_check import SelfCheck
from rota.manager.loop.turns import TurnLoop
from rota.manager.metrics.metrics_view import ManagerMetrics
from rota.manager.peers.peer import Peer
from rota.manager.peers.runners import Runners
from rota.manager.requests.credentials import Credentials
from rota.manager.views.status import ManagerStatus
from rota.store.base import Store
from rota.store.home.backup import back_up
from rota.wire import codec
from rota.wire import messages as m
from rota.wire.views import BackupView, PauseView, SettingsView, UiLink

log = logging.getLogger("rota.manager")

#: How long runners that are connected get to hand back what has not started.
_RECALL_S: Final = 10.0
_LOOK_AGAIN_S: Final = 0.01

_HAPPENS: Final = {
    "pause": events.ManagerPaused,
    "drain": events.ManagerDrained,
    "resume": events.ManagerResumed,
}


class ManagerControl:
    """Does what an administrator asks of the manager."""

    def __init__(
        self,
        deployment: Deployment,
        world: World,
        store: Store,
        *,
        turns: TurnLoop,
        runners: Runners,
        gateway: GatewayProcess,
        credentials: Credentials,
        status: ManagerStatus,
        metrics: ManagerMetrics,
        stop: Callable[[bool], None],
    ) -> None:
        self._deployment = deployment
        self._world = world
        self._store = store
        self._turns = turns
        self._runners = runners
        self._gateway = gateway
        self._credentials = credentials
        self._status = status
        self._metrics = metrics
        self._self_check = SelfCheck(world)
        self._stop = stop  #: stops the manager; True: ends running jobs first

    async def control(self, peer: Peer, ask: m.Control) -> None:
        """Take one request. Raises `RotaError` to refuse it."""
        by, turns, credentials, args = peer.asker(ask.n), self._turns, self._credentials, ask.args
        match ask.verb:
            case "status":
                turns.answer(by, await self._status.view())
            case "doctor":
                turns.answer(by, await self._self_check.result())
            case "ping":
                turns.answer(by, None)
            case "metrics":
                turns.answer(by, await self._metrics.view())
            case "settings":
                settings = msgspec.structs.asdict(self._deployment.settings)
                turns.answer(by, SettingsView(os.getpid(), settings))
            case "ui-link":
                turns.acknowledge(by, self._ui_link(peer))
            case "ui-redeem":
                turns.acknowledge(by, credentials.redeem(args.get("code", "")))
            case "ui-leave":
                turns.acknowledge(by, None)
                credentials.log_out(peer)
            case "stop":
                log.info("%s stops the manager", peer.user)
                turns.answer(by, None)
                self._stop(args.get("kill") == "true")
            case "pause" | "drain" | "resume":
                turns.acknowledge(by, await self._pause_or_resume(ask.verb, peer.user))
            case "backup":
                turns.acknowledge(by, await self._back_up(peer, ask))
            case "token-add":
                turns.acknowledge(by, await credentials.add(args))
            case "token-check":
                turns.answer(by, credentials.is_valid(args.get("token", "")))
            case "token-list":
                turns.answer(by, credentials.views())
            case "token-remove":
                credentials.remove(args.get("name", ""))
                turns.acknowledge(by, None)
            case _:
                raise BadInput(f"the manager does not know '{ask.verb}'")

    def _ui_link(self, peer: Peer) -> UiLink:
        self._credentials.refuse_session(peer)
        self._deployment.idle_stop_s = None  # an open page wants the manager to stay
        url = self._gateway.start()
        return UiLink(url, self._credentials.code(peer))

    # -- pause, drain, resume

    async def _pause_or_resume(self, verb: str, user: str) -> PauseView:
        world = self._world
        if world.stopping:
            raise EnvironmentFault("the manager is stopping", hint="start it again with 'rota manager start'")
        log.info("%s asked to %s the manager", user, verb)
        self._turns.happened(_HAPPENS[verb]())
        await self._turns.committed()
        if verb != "resume":
            await self._handed_back()
        return PauseView(
            paused=world.paused,
            draining=world.draining,
            running=leased(world),
            unreachable=sum(len(unstarted(world, runner)) for runner in world.runners.values()),
        )

    async def _handed_back(self) -> None:
        """Wait until connected runners have started or handed back everything that was sent to them.

        Runners that do not answer are asked again when they come back.
        """
        limit = time.monotonic() + _RECALL_S
        while self._runners.hold_leases(unstarted_only=True) and starts_nothing(self._world):
            if time.monotonic() > limit:
                return
            await asyncio.sleep(_LOOK_AGAIN_S)

    # -- backup

    async def _back_up(self, peer: Peer, ask: m.Control) -> BackupView:
        """Copy the database in a thread of its own, and report progress to the client."""
        loop = asyncio.get_running_loop()

        def progress(share: float) -> None:
            if self._world.stopping or peer.closed:
                raise EnvironmentFault("the manager stopped before the backup was done", hint="make it again")
            loop.call_soon_threadsafe(peer.send, m.Item(ask.n, codec.body(share)))

        home, path, force = self._deployment.home.path, ask.args.get("path", ""), ask.args.get("force") == "true"
        # Not one of the readers: a large copy takes long, and they are few.
        made = await loop.run_in_executor(
            None, lambda: back_up(home, path, force=force, store=self._store, progress=progress)
        )
        log.info("%s backed up %d jobs to %s", peer.user, made.jobs, made.path)
        return BackupView(made.path, made.bytes, made.jobs, made.generation)
