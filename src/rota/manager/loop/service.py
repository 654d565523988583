"""The manager's loop: decide → commit → act.

Events of one turn are decided together; their changes are committed in one transaction on the
writer's thread; only then are their effects performed. While one batch is being committed the
decisions of the next gather.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from rota.core import effects, events
from rota.core.engine import Engine
from rota.core.invariants import broken
from rota.core.jobs.job import Outcome
from rota.core.machines.host_usage import mark_hosts_unseen
from rota.core.site.manager_pause import leased
from rota.core.states import LIVE, SETTLED
from rota.core.turn import Batch, Turn
from rota.core.world import World, forget
from rota.errors import Bug
from rota.home import Home
from rota.manager.host import hooks
from rota.manager.host.demand import Demand
from rota.manager.host.energy import Energy, rules_of
from rota.manager.host.gateway import GatewayProcess
from rota.manager.loop import clock
from rota.manager.loop.checkup import CHECK_UP_TO_JOBS, Checkup
from rota.manager.loop.perform import perform
from rota.manager.loop.writer import Writer
from rota.manager.metrics.figures import Figures
from rota.manager.metrics.rates import Rates
from rota.manager.output.outputs import Checks, Outputs
from rota.manager.output.pruning import Pruner
from rota.manager.output.segment_copies import Pieces
from rota.manager.peers.channels import Channels
from rota.manager.peers.connections import Connections
from rota.manager.peers.logins import Logins
from rota.manager.peers.runners import Runners
from rota.manager.submit.library import Library
from rota.manager.views.forecast import Forecasts
from rota.manager.views.listing import Listings
from rota.manager.views.queries import Queries
from rota.manager.watch.feed import Feeds
from rota.manager.watch.tails import Tails
from rota.manager.watch.watches import Watches
from rota.pools.base import DelegatedPool, Pool
from rota.pools.local import hostname
from rota.settings import Settings
from rota.store.base import Store
from rota.wire import messages as m
from rota.wire.tokens import TokenBook

log = logging.getLogger("rota.manager")

T = TypeVar("T")

_TICK_S = 1.0
#: A turn of the clock longer than this means that the manager itself stood still, not its runners.
_STALL_S = 5.0
_CHECK_EVERY_S = 60.0
_LAST_COMMIT_S = 10.0
#: While a job is in one of these states, the manager has something to do.
_BUSY = LIVE - SETTLED


class Told(effects.Reply, frozen=True):
    """The answer to a question: it acknowledges nothing."""


class Manager:
    """One deployment's manager: the world, its store, and everybody who is connected."""

    def __init__(
        self,
        *,
        home: Home,
        settings: Settings,
        world: World,
        store: Store,
        library: Library,
        tokens: TokenBook,
        pool: Pool,
        generation: int,
        deployment: str,
        idle_stop_s: float | None,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.home = home
        self.settings = settings
        self.world = world
        self.store = store
        self.library = library
        self.tokens = tokens
        self.generation = generation
        self.deployment = deployment
        self.address: str | None = None
        self.tls_wanted = (
            asyncio.Event()
        )  #: somebody needs the certificates before it is quiet enough to make them
        self.tls_ready = asyncio.Event()
        self.outputs = Outputs(home.output)
        self.pieces = Pieces(home.output, keep_output=settings.keep_output)
        self.pruner = Pruner(self)
        self.queries = Queries(world, store, library.specs, Checks(home.output, store))
        self.listings = Listings(self.queries, version=lambda: self.writer.commits)
        self.tails = Tails(self)
        self.watches = Watches(self)
        self.feeds = Feeds(self)
        self.channels = Channels(self)
        self.figures = Figures(since=clock.now())
        self.gateway = GatewayProcess(self)
        self.checkup = Checkup(world)
        self.rates = Rates()
        self.forecasts = Forecasts(self)
        self.runners = Runners(self)
        self.readers = ThreadPoolExecutor(max_workers=2, thread_name_prefix="reader")
        self.stopped = asyncio.Event()
        self.failure: BaseException | None = None
        world.energy = rules_of(settings)
        self.energy = Energy(self)
        hooks.set_up(world, settings, own_host=hostname())
        self.hooks = hooks.Hooks(self)
        self._engine = Engine(
            world,
            lost_after_s=settings.lost_after,
            orphan_after_s=settings.orphan_after,
            dead_after_s=settings.dead_after,
        )
        self.connections = Connections(self, pool)
        self.peers = self.connections.peers
        self.logins = Logins(session_s=settings.session, clock=clock.now, hang_up=self.connections.hang_up)
        self._pool = pool
        self._demand: Demand | None = None
        if isinstance(pool, DelegatedPool):
            self._demand = Demand(self, pool, max_runners=settings.max_runners)
        self.idle_stop_s = idle_stop_s
        self._busy_at = time.monotonic()
        self.started_at = clock.now()
        self._random = random.Random(os.urandom(32)).random
        self._inbox: list[events.Event] = []
        self._turn_due = False
        self._open = Batch()
        self._committing: Batch | None = None
        self._after_commit: list[asyncio.Future[None]] = []
        self._leaving: list[int] = []
        self._loads = 0
        self._stopping = False
        self._minded: asyncio.TimerHandle | None = None
        self._minded_until = 0.0
        self._stood_still_s = 0.0
        self._ticked_at = time.monotonic()
        self._checked_at = time.monotonic()
        self._tasks: set[asyncio.Task[None]] = set()
        self.writer = Writer(
            store, home.output, self.loop, committed=self._on_committed, failed=self.fail, filled=self._on_full
        )

    def start(self) -> None:
        """Begin to decide. Listening is somebody else's task."""
        self.writer.start()
        self.hooks.start()
        self.loop.call_later(_TICK_S, self._tick)

    # ------------------------------------------------------------------ decide → commit → act

    def happened(self, event: events.Event) -> None:
        """Something happened: it is decided about in this turn of the loop."""
        self._inbox.append(event)
        if not self._turn_due:
            self._turn_due = True
            self.loop.call_soon(self._decide)

    def _decide(self) -> None:
        self._turn_due = False
        if self.failure is not None:
            return
        happened, self._inbox = self._inbox, []
        moved = clock.steady().step is not None and not self._open and clock.steady().confirmed
        if moved:
            happened.insert(0, self._follow_clock())
        turn = Turn(wall=clock.now(), mono=self.now(), random=self._random, batch=self._open)
        begun = time.perf_counter()
        try:
            refused = self._engine.step(happened, turn)
        except Exception as error:
            log.exception("an event could not be decided: %s", [type(event).__name__ for event in happened])
            self.fail(error)
            return
        self.figures.decided(time.perf_counter() - begun, planned=self.world.placement.planner is not None)
        if moved:
            self._write_clock(self._open)
        for reason in refused:
            if isinstance(reason, Bug):
                log.error("bug: %s", reason)
        self._commit()
        self._mind_delays()
        if self._demand is not None:
            self._demand.look_soon()
        if self.world.draining and not self._stopping and not leased(self.world):
            log.info("drained: stopping")
            self.stop(kill=False)

    def _commit(self) -> None:
        """Hand the open batch to the writer, if it is idle; what needs no disk is done at once."""
        if self._committing is not None or not self._open or self.failure is not None:
            return
        batch, self._open = self._open, Batch()
        self._committing = batch
        if batch.changes:
            self.writer.submit(batch)
        else:
            self._on_committed(batch)

    def _on_committed(self, batch: Batch) -> None:
        self._committing = None
        self.figures.committed(batch.changes, self.world.jobs)
        perform(self, batch.effects)
        self.feeds.changed()
        if batch.leaving:
            self._leaving += batch.leaving
        if self._leaving and not self._loads:
            forget(self.world, self._leaving)
            self._leaving = []
        waiting, self._after_commit = self._after_commit, []
        self._commit()
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def fail(self, error: BaseException) -> None:
        """The store (or we) cannot be trusted any more: acknowledge nothing, leave, recover at the next start."""
        log.critical("the manager must stop: %s", error)
        self.failure = error
        self.stopped.set()

    def answer(self, to: events.Asker, body: Any) -> None:
        """Answer a request, after the commit of everything the answer may have seen."""
        self._open.effects.append(effects.Reply(to, body))
        self._commit()

    def tell(self, to: events.Asker, body: Any) -> None:
        """Answer a question. As `answer` does, except while the disk is full: then at once, with what is not on
        disk yet. Nobody takes it for an acknowledgement, and whoever asks has to learn why nothing goes on."""
        told = Told(to, body)
        if self.writer.full:
            perform(self, [told])
        else:
            self._open.effects.append(told)
            self._commit()

    def _on_full(self) -> None:
        """The batch that is being committed waits for room: questions that were asked meanwhile do not."""
        for batch in (self._committing, self._open):
            if batch is not None:
                told: list[effects.Effect] = [effect for effect in batch.effects if isinstance(effect, Told)]
                batch.effects[:] = [effect for effect in batch.effects if not isinstance(effect, Told)]
                perform(self, told)

    async def committed(self) -> None:
        """Wait until everything that has been decided so far is on disk and done."""
        if self._inbox:
            await asyncio.sleep(0)
        for _ in range(2):
            if self._committing is None and not self._open:
                return
            future: asyncio.Future[None] = self.loop.create_future()
            self._after_commit.append(future)
            await future

    @contextlib.contextmanager
    def loading(self) -> Iterator[None]:
        """While something is read from the store, no finished job leaves memory."""
        self._loads += 1
        try:
            yield
        finally:
            # After the turn that decides about what was read.
            self.loop.call_soon(self._load_over)

    def _load_over(self) -> None:
        self._loads -= 1

    # ------------------------------------------------------------------ time

    def now(self) -> float:
        """Monotonic time without the spans in which this process stood still (stopped, or asleep)."""
        at = time.monotonic()
        if at - self._ticked_at > _STALL_S:
            at = self._ticked_at + _TICK_S  # it stands still, or has just begun to go on: see `_tick`
        return at - self._stood_still_s

    def _follow_clock(self) -> events.ClockMoved:
        """The wall clock was set, and is right: what runners call a time is another time from now on."""
        by = clock.steady().follow()
        self.runners.clock_moved(by)
        return events.ClockMoved(by=by)

    def _write_clock(self, batch: Batch) -> None:
        """For the next manager."""
        batch.changes.meta[clock.CLOCK] = clock.reading().text()

    def _mind_delays(self) -> None:
        """A delay that is over before the next tick gets a timer of its own."""
        due = self._engine.next_due()
        if due is None or due - clock.now() >= _TICK_S:
            return
        if self._minded is not None:
            if self._minded_until <= due:
                return
            self._minded.cancel()
        self._minded_until = due
        self._minded = self.loop.call_later(max(0.0, due - clock.now()), self._delay_over)

    def _delay_over(self) -> None:
        self._minded = None
        self.happened(events.TimerFired())

    def _tick(self) -> None:
        at = time.monotonic()
        gap = at - self._ticked_at
        self._ticked_at = at
        if gap > _STALL_S:
            log.warning("the manager stood still for %.1f s", gap)
            self._stood_still_s += gap - _TICK_S
        self.loop.call_later(_TICK_S, self._tick)
        clock.steady().look()
        self.happened(events.TimerFired())
        self._pool.check()
        self.hooks.tick(at)
        if at - self._checked_at > _CHECK_EVERY_S:
            self._checked_at = at
            if self.world.live <= CHECK_UP_TO_JOBS:
                for sentence in broken(self.world):
                    log.error("invariant broken: %s", sentence)
        self.pruner.tick(at)
        self._consider_leaving(at)

    def busy(self) -> bool:
        """Is there a job that runs, or that will without anybody's doing?"""
        return any(counts[state] for counts in self.world.counts.values() for state in _BUSY)

    def _consider_leaving(self, at: float) -> None:
        clients = any(peer.role not in ("", "runner", "gateway") for peer in self.peers.values())
        if self.busy() or clients or self._open or self._committing:
            self._busy_at = at
        elif self.idle_stop_s is not None and at - self._busy_at > self.idle_stop_s:
            log.info("idle for %g s: stopping", self.idle_stop_s)
            self.stop(kill=False)

    def read_output(self, outcome: Outcome, stream: int, offset: int, length: int) -> bytes:
        """Verified output, or nothing if it is not all there: that must not keep anybody from hearing of an end.
        Whoever asks for it is told what is missing."""
        return self.outputs.all_of(outcome, stream, offset=offset, length=length)

    async def read(self, question: Callable[[], T]) -> T:
        """Ask the store in a worker thread, so that the loop goes on."""
        return await self.loop.run_in_executor(self.readers, question)

    # ------------------------------------------------------------------ the end

    def stop(self, *, kill: bool) -> None:
        """Stop: running jobs go on in their runners, or, with `kill`, are ended first."""
        if self._stopping:
            return
        self._stopping = True
        self.world.stopping = True
        self._pool.stop()
        task = self.loop.create_task(self._leave(kill=kill))
        self._tasks.add(task)

    async def _leave(self, *, kill: bool) -> None:
        if kill and self.world.noop_jobs:
            # Nobody but the engine ends these.
            by = events.Asker(0, 0, "the manager, which stops")
            self.happened(events.JobsKilled(by=by, jobs=sorted(self.world.noop_jobs)))
        for peer in self.runners.everyone():
            peer.send(m.Leave(kill))
        patience_s = self.settings.grace + 10.0 if kill else 3.0
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline and self.runners.hold_leases(unstarted_only=not kill):
            await asyncio.sleep(0.02)
        mark_hosts_unseen(
            self.world, Turn(wall=clock.now(), mono=self.now(), random=self._random, batch=self._open)
        )
        self._write_clock(self._open)
        self._commit()
        with contextlib.suppress(TimeoutError):
            # A full disk may keep the last batch waiting: it was not acknowledged, and is given up.
            await asyncio.wait_for(self.committed(), _LAST_COMMIT_S)
        self.stopped.set()

    def close(self) -> None:
        """Release everything. Blocks until the last batch is on disk."""
        ended = self.failure is None and self.writer.stop(_LAST_COMMIT_S)
        self.gateway.stop()
        self.hooks.close()
        for peer in list(self.peers.values()):
            peer.close()
        self.readers.shutdown(wait=False, cancel_futures=True)
        self.outputs.close()
        self.pieces.close()
        if ended:
            self.store.close()
