"""The manager: all its components, wired together here and nowhere else, and its life from start to stop.

A component gets what it uses in its constructor. This module imports all others; only startup imports it, and
listening.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from functools import partial
from typing import Final

from rota.core import events
from rota.core.admission.admission import Admission
from rota.core.attempts.noop_jobs import running_noops
from rota.core.bugs.undecided import Undecided
from rota.core.site.manager_pause import leased
from rota.core.submit.spec_library import Library
from rota.core.world import World
from rota.errors import RotaError
from rota.manager.feature import ManagerFeature, Services
from rota.manager.features import BUILT_IN, ManagerFeatures, engine_features
from rota.manager.host.gateway import GatewayProcess
from rota.manager.loop import clock
from rota.manager.loop.awake_clock import AwakeClock
from rota.manager.loop.bugs import BugKeeper
from rota.manager.loop.deployment import Deployment
from rota.manager.loop.engine_settings import engine_settings
from rota.manager.loop.housekeeping import Housekeeping
from rota.manager.loop.perform import Performer
from rota.manager.loop.readers import Readers
from rota.manager.loop.reexecution import tell_clients
from rota.manager.loop.turns import TurnLoop
from rota.manager.metrics.counters import Counters
from rota.manager.metrics.metrics_view import ManagerMetrics
from rota.manager.metrics.rates import Rates
from rota.manager.output.outputs import OutputChecks, SegmentFiles
from rota.manager.output.pruning import Pruner
from rota.manager.output.segment_copies import SegmentCopies
from rota.manager.peers.certificate import DeploymentCertificate
from rota.manager.peers.channels import ChannelRouter
from rota.manager.peers.connections import Connections
from rota.manager.peers.logins import Logins
from rota.manager.peers.peer import Peer, hang_up
from rota.manager.peers.runner_messages import RunnerMessages
from rota.manager.peers.runners import Runners
from rota.manager.peers.tickets import Tickets
from rota.manager.requests.actions import Actions
from rota.manager.requests.control import ManagerControl
from rota.manager.requests.credentials import Credentials
from rota.manager.requests.dispatch import Requests
from rota.manager.requests.questions import Questions
from rota.manager.requests.selection import Selection
from rota.manager.requests.watch_requests import WatchRequests
from rota.manager.submit.unix_groups import UnixGroups
from rota.manager.submit.uploads import Uploads
from rota.manager.views.forecast import Forecasts
from rota.manager.views.listing import Listings
from rota.manager.views.queries import Queries
from rota.manager.views.status import ManagerStatus
from rota.manager.watch.feed import Feeds
from rota.manager.watch.tails import OutputTails
from rota.manager.watch.watches import Watches
from rota.pools.base import Pool
from rota.pools.local import hostname
from rota.store.base import Store
from rota.wire import messages as m
from rota.wire.tokens import TokenBook

log = logging.getLogger("rota.manager")

_LAST_COMMIT_S: Final = 10.0


class Manager:
    """One deployment's manager."""

    def __init__(
        self,
        deployment: Deployment,
        *,
        world: World,
        store: Store,
        library: Library,
        tokens: TokenBook,
        pool: Pool,
        features: Iterable[ManagerFeature] = BUILT_IN,
    ) -> None:
        features = tuple(features)
        home, settings = deployment.home, deployment.settings
        self.deployment = deployment
        self.stopped = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._world = world
        self._store = store
        self._pool = pool
        self._stopping = False
        self._stop_task: asyncio.Task[None] | None = None

        self._peers: dict[int, Peer] = {}
        self._awake = AwakeClock()
        self._readers = Readers()
        figures, rates = Counters(since=clock.now()), Rates()
        self._runners = Runners(world)
        self._turns = TurnLoop(
            world,
            store,
            output_dir=home.output,
            features=engine_features(features),
            awake=self._awake,
            figures=figures,
            decided=self._decided,
            read_first=lambda effects: self._performer.to_read(effects),
            act=lambda effects: self._performer.perform(effects),
            acted=lambda: self._feeds.changed(),
            clock_moved=self._runners.clock_moved,
            failed=self.stopped.set,
        )
        turns, happened = self._turns, self._turns.happened

        self._outputs = SegmentFiles(home.output)
        self._pieces = SegmentCopies(home.output, keep_output=settings.keep_output)
        self._pruner = Pruner(
            home.output, settings, outputs=self._outputs, readers=self._readers, happened=happened
        )
        world.settings = engine_settings(settings, own_host=hostname(), hosts=world.capacity)
        self.authority = DeploymentCertificate(home.ca)
        admission = Admission(world, UnixGroups())
        self._features = ManagerFeatures(
            features,
            Services(
                deployment=deployment,
                world=world,
                store=store,
                home=home,
                settings=settings,
                own_host=hostname(),
                authority=self.authority,
                library=library,
                admission=admission,
                turns=turns,
                readers=self._readers,
                peer_of=self._runners.peer_of,
            ),
        )
        self.gateway = GatewayProcess(home, settings)

        peer_of = self._runners.peer_of
        tails = OutputTails(world, self._peers, peer_of=peer_of)
        watches = Watches(world, self._peers, tails, loop=self._loop)
        self._feeds = Feeds(world, committed=turns.committed, subjects=self._features.subjects)
        channels = ChannelRouter(world, peer_of=peer_of, happened=turns.happened)
        self._bugs = BugKeeper(world, store, keep=turns.note)
        self._performer = Performer(
            world,
            store,
            library,
            settings,
            peers=self._peers,
            runners=self._runners,
            watches=watches,
            channels=channels,
            features=self._features.performers,
            pruner=self._pruner,
            figures=figures,
            rates=rates,
            failed=self._bugs.met,
            start_anew=turns.start_anew,
        )

        self._housekeeping = Housekeeping(
            deployment,
            world,
            pool,
            turns=turns,
            awake=self._awake,
            peers=self._peers,
            features=self._features,
            pruner=self._pruner,
            bugs=self._bugs,
            stop_idle=lambda: self.stop(kill=False, idle=True),
        )
        queries = Queries(world, store, library.specs, OutputChecks(home.output, store))
        status = ManagerStatus(
            deployment,
            world,
            store,
            writer=turns.writer,
            queries=queries,
            readers=self._readers,
            gateway=self.gateway,
            more_attention=self._features.attention,
        )
        selection = Selection(world, store, queries, self._readers)
        uploads = Uploads(world, store, library, admission, turns=turns, readers=self._readers, tails=tails)
        logins = Logins(session_s=settings.session, clock=clock.now, hang_up=partial(hang_up, self._peers))
        tickets = Tickets(world, now=clock.now)
        requests = Requests(
            turns=turns,
            features=self._features.requests,
            stopped=self._features.gone,
            uploads=uploads,
            questions=Questions(
                world,
                store,
                library.specs,
                admission=admission,
                selection=selection,
                queries=queries,
                listings=Listings(queries, version=lambda: turns.writer.commits),
                forecasts=Forecasts(world, rates, self._readers),
                rates=rates,
                outputs=self._outputs,
                status=status,
                readers=self._readers,
                settings=settings,
            ),
            actions=Actions(
                world,
                store,
                library,
                admission=admission,
                selection=selection,
                queries=queries,
                turns=turns,
                readers=self._readers,
            ),
            watching=WatchRequests(
                world,
                store,
                selection=selection,
                queries=queries,
                outputs=self._outputs,
                watches=watches,
                tails=tails,
                turns=turns,
                readers=self._readers,
            ),
            watches=watches,
            feeds=self._feeds,
            control=ManagerControl(
                deployment,
                world,
                store,
                turns=turns,
                runners=self._runners,
                gateway=self.gateway,
                credentials=Credentials(tokens, logins, self.authority, self._peers),
                status=status,
                metrics=ManagerMetrics(
                    deployment,
                    world,
                    figures=figures,
                    writer=turns.writer,
                    queries=queries,
                    peers=self._peers,
                    readers=self._readers,
                ),
                stop=lambda kill: self.stop(kill=kill),
            ),
        )
        self.connections = Connections(
            deployment,
            self._peers,
            operations=self._features.operations,
            tokens=tokens,
            logins=logins,
            pool=pool,
            tickets=tickets,
            runner_messages=RunnerMessages(
                world,
                store,
                self._runners,
                watches=watches,
                tails=tails,
                channels=channels,
                pieces=self._pieces,
                tickets=tickets,
                readers=self._readers,
                happened=happened,
            ),
            requests=requests,
            uploads=uploads,
            channels=channels,
            watches=watches,
            tails=tails,
            feeds=self._feeds,
            gone=self._features.gone,
            failed=self._bugs.met,
        )

    def start(self) -> None:
        """Begin to decide. `startup` does the listening."""
        self._turns.writer.start()
        self._bugs.ready()
        self._loop.set_exception_handler(self._bugs.met_in_callback)
        self._features.start()
        self._housekeeping.start()

    # ------------------------------------------------------------------ what turns call

    def _decided(self) -> None:
        if self._world.draining and not self._stopping and not leased(self._world):
            log.info("drained: stopping")
            self.stop(kill=False)

    @property
    def failure(self) -> BaseException | None:
        """Why the manager must stop without another commit."""
        return self._turns.failure

    @property
    def starts_anew(self) -> bool:
        """Must the manager recover from what is on disk? Nothing is decided any more."""
        return self._turns.starts_anew and not self._stopping

    @property
    def bug(self) -> Undecided | None:
        """Why it must start anew, if that is a bug."""
        return self._turns.bug

    @property
    def draining(self) -> bool:
        """Does the manager stop when nothing runs any more?"""
        return self._world.draining

    async def drop_undecided(self) -> bool:
        """Before starting anew: finish what is being committed, note the bug, if there is one, and tell clients
        that nothing else was done.

        False: the last commit did not end, and nothing may be acknowledged.
        """
        try:
            await asyncio.wait_for(self._turns.last_commit(), _LAST_COMMIT_S)
        except TimeoutError:
            return False
        if self.failure is not None or not self._turns.starts_anew:
            return False
        try:
            if self.bug is not None:
                await self._bugs.note(self.bug, self._peers)
        except RotaError as error:  # a bug that is not on record could be met for ever
            self.fail(error)
            return False
        await tell_clients(self._peers.values())
        return True

    def fail(self, error: BaseException) -> None:
        """Stop at once; what was not acknowledged is recovered at the next start."""
        self._turns.fail(error)

    def busy(self) -> bool:
        return self._housekeeping.busy()

    # ------------------------------------------------------------------ the end

    def stop(self, *, kill: bool, idle: bool = False) -> None:
        """Stop: running jobs go on in their runners, or, with `kill`, are ended first. `idle`: nobody asked for
        it."""
        self.deployment.stopped_idle = idle and (self.deployment.stopped_idle or not self._stopping)
        if self._stopping:
            return
        self._stopping = True
        self._world.stopping = True
        self._pool.stop()
        self._stop_task = self._loop.create_task(self._leave(kill=kill))

    async def _leave(self, *, kill: bool) -> None:
        if kill and (noops := running_noops(self._world)):
            # These have no runner: only the engine can end them.
            by = events.Asker(0, 0, "the manager, which stops")
            self._turns.happened(events.JobsKilled(by=by, jobs=sorted(noops)))
        for peer in self._runners.connected():
            peer.send(m.Leave(kill))
        patience_s = self.deployment.settings.grace + 10.0 if kill else 3.0
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline and self._runners.hold_leases(unstarted_only=not kill):
            await asyncio.sleep(0.02)
        try:
            await asyncio.wait_for(self._turns.finish(), _LAST_COMMIT_S)
        except TimeoutError:
            pass  # a full disk may keep the last batch waiting: it was not acknowledged, and is given up
        except Exception:
            log.exception("a bug in the last turn: it is given up")
        self.stopped.set()

    def close(self, *, again: bool) -> bool:
        """Release everything; if this process executes itself again, all but the gateway. Blocks until the last
        batch is on disk; False: it was given up, and the store is still open."""
        ended = self.failure is None and self._turns.writer.stop(_LAST_COMMIT_S)
        if not again:
            self.gateway.stop()
        self._features.close()
        for peer in list(self._peers.values()):
            peer.close()
        self._readers.close()
        self._outputs.close()
        self._pieces.close()
        if ended:
            self._store.close()
        return ended
