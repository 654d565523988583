"""Decide, commit, act: what happens to every event, in this order.

The events of one turn are decided together. Their changes are committed in one transaction on the writer's
thread; only then are their effects performed. While one batch is being committed, the decisions of the next
gather. How effects are performed is not known here.

A bug in a decision drops the open batch whole and ends all deciding; the commit in flight is finished and
performed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rota.core import effects, events
from rota.core.bugs.undecided import Undecided, undecided
from rota.core.engine import Engine
from rota.core.feature import Features
from rota.core.turn import Batch, Turn
from rota.core.world import World, evict_finished
from rota.errors import Bug, NotDone, RotaError
from rota.manager.loop import clock
from rota.manager.loop.awake_clock import TICK_S, AwakeClock
from rota.manager.loop.writer import Writer
from rota.manager.metrics.counters import Counters
from rota.store.base import Store

log = logging.getLogger("rota.manager")

_LOOK_AGAIN_S = 0.005


class QuestionReply(effects.SendReply, frozen=True):
    """The answer to a question: it acknowledges nothing."""


class DoneReply(effects.SendReply, frozen=True):
    """The answer to a request that is done already: it is true even if its batch is dropped."""


class TurnLoop:
    """Owns the engine and the writer. All methods belong to the loop's thread."""

    def __init__(
        self,
        world: World,
        store: Store,
        *,
        output_dir: Path,
        features: Features,
        awake: AwakeClock,
        figures: Counters,
        decided: Callable[[], None],
        read_first: Callable[[list[effects.Effect]], Callable[[], None] | None],
        act: Callable[[list[effects.Effect]], None],
        acted: Callable[[], None],
        clock_moved: Callable[[float], None],
        failed: Callable[[], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._world = world
        self._awake = awake
        self._figures = figures
        self._decided = decided  #: called after each turn
        self._read_first = read_first  #: what must be read before effects can be performed
        self._act = act  #: performs effects
        self._acted = acted  #: called when the effects of a batch were performed
        self._clock_moved = clock_moved
        self._failed = failed
        self.failure: BaseException | None = None  #: why nothing is committed and acknowledged any more
        self.starts_anew = False  #: nothing is decided any more; what is on disk is recovered in a new image
        self.bug: Undecided | None = None  #: why it starts anew, if it is a bug
        self._engine = Engine(world, features=features)
        self._random = random.Random(os.urandom(32)).random
        self._inbox: list[events.Event] = []
        self._turn_due = False
        self._open = Batch()
        self._committing: Batch | None = None
        self._after_commit: list[asyncio.Future[None]] = []
        self._leaving: list[int] = []
        self._loads = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self.writer = Writer(
            store,
            output_dir,
            self._loop,
            committed=self._on_committed,
            failed=self._on_commit_failed,
            filled=self._on_full,
        )

    @property
    def busy(self) -> bool:
        """Is a batch open, or being committed?"""
        return bool(self._open or self._committing)

    # ------------------------------------------------------------------ decide

    def happened(self, event: events.Event) -> None:
        """Have an event decided about, in this turn of the loop."""
        self._inbox.append(event)
        if not self._turn_due:
            self._turn_due = True
            self._loop.call_soon(self._decide)

    def _decide(self) -> None:
        self._turn_due = False
        if self.failure is not None or self.starts_anew:
            return
        happened, self._inbox = self._inbox, []
        try:
            moved = clock.steady().step is not None and not self._open and clock.steady().confirmed
            if moved:
                happened.insert(0, self._follow_clock())
            turn = self._turn()
            begun = time.perf_counter()
            self._engine.step(happened, turn)
            took_s = time.perf_counter() - begun
            self._figures.decided(took_s, planned=self._world.placement.planner is not None)
            if moved:
                self._write_clock(self._open)
            self._commit()
            self._set_timer()
            self._decided()
        except Undecided as bug:
            self._drop(bug)
        except Exception as error:
            self._drop(undecided("timers", error))

    def _turn(self) -> Turn:
        return Turn(wall=clock.now(), mono=self._awake.now(), random=self._random, batch=self._open)

    def _follow_clock(self) -> events.ClockMoved:
        """Follow a confirmed step of the wall clock; the offsets to the runners' clocks change with it."""
        by = clock.steady().follow()
        self._clock_moved(by)
        return events.ClockMoved(by=by)

    def _write_clock(self, batch: Batch) -> None:
        """For the next manager."""
        batch.changes.meta[clock.CLOCK] = clock.reading().text()

    def _set_timer(self) -> None:
        """A delay that is over before the next tick gets a timer of its own."""
        due = self._engine.next_due()
        if due is None or due - clock.now() >= TICK_S:
            return
        if self._timer is not None:
            if self._timer_at <= due:
                return
            self._timer.cancel()
        self._timer_at = due
        self._timer = self._loop.call_later(max(0.0, due - clock.now()), self._timer_fired)

    def _timer_fired(self) -> None:
        self._timer = None
        self.happened(events.TimerFired())

    # ------------------------------------------------------------------ commit, act

    def _commit(self) -> None:
        """Hand the open batch to the writer, if it is idle; what needs no disk is done at once."""
        if self._committing is not None or not self._open or self.failure is not None or self.starts_anew:
            return
        batch, self._open = self._open, Batch()
        self._committing = batch
        read = self._read_first(batch.effects)
        if batch.changes or read is not None:
            self.writer.submit(batch, then=read)
        else:
            self._on_committed(batch)

    def _on_committed(self, batch: Batch) -> None:
        self._committing = None
        self._act(batch.effects)
        if self.starts_anew:
            return  # the world is half changed, or lacks what is on disk
        self._leaving += batch.leaving
        try:
            self._figures.committed(batch.changes, self._world.jobs)
            self._acted()
            if self._leaving and not self._loads:
                evict_finished(self._world, self._leaving)
                self._leaving = []
        except Exception as error:
            self._drop(undecided("what follows a commit", error))
            return
        waiting, self._after_commit = self._after_commit, []
        self._commit()
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def fail(self, error: BaseException) -> None:
        """Acknowledge nothing more and stop: the store or the engine cannot be trusted until the next start."""
        log.critical("the manager must stop: %s", error)
        self.failure = error
        self._failed()

    # ------------------------------------------------------------------ starting anew

    def _drop(self, bug: Undecided) -> None:
        """Decide nothing more, and forget everything that is not being committed: the world is half changed."""
        log.critical("%s", bug, exc_info=bug.__cause__)
        self.bug = bug
        self._stop_deciding()

    def start_anew(self, why: str) -> None:
        """Have the manager recover from what is on disk: the world lacks some of it."""
        log.info("the manager must start anew: %s", why)
        self._stop_deciding()

    def _stop_deciding(self) -> None:
        self.starts_anew = True
        dropped, self._open, self._inbox = self._open, Batch(), []
        if self.bug is not None:
            self.bug.dropped = dropped.changes.events
        self._act([effect for effect in dropped.effects if isinstance(effect, DoneReply)])
        waiting, self._after_commit = self._after_commit, []
        for future in waiting:
            if not future.done():
                future.set_exception(NotDone())
        self._failed()

    def _on_commit_failed(self, error: BaseException) -> None:
        """A batch that contradicts the store, or cannot even be encoded, is a bug and never tried again. After any
        other failure the store cannot be trusted."""
        if isinstance(error, Bug) or not isinstance(error, RotaError | OSError):
            self._committing = None
            self._drop(undecided("commit", error))
        else:
            self.fail(error)

    def note(self, key: str, value: str) -> None:
        """Store a fact about the deployment with the next batch."""
        self._open.changes.meta[key] = value
        self._commit()

    async def last_commit(self) -> None:
        """After a bug: wait until the commit in flight is on disk and its effects are performed."""
        while self._committing is not None and self.failure is None:
            await asyncio.sleep(_LOOK_AGAIN_S)

    # ------------------------------------------------------------------ answers

    def acknowledge(self, to: events.Asker, body: Any) -> None:
        """Answer a request that is done, after the commit of everything the answer may have seen."""
        reply = DoneReply(to, body)
        if self.starts_anew:
            self._act([reply])
            return
        self._open.effects.append(reply)
        self._commit()

    def answer(self, to: events.Asker, body: Any) -> None:
        """Answer a question: after the commit, like `acknowledge`, unless the disk is full.

        Then at once, although the answer may show what is not on disk yet. It acknowledges nothing, and the client
        has to learn of the full disk.
        """
        reply = QuestionReply(to, body)
        if self.writer.full:
            self._act([reply])
        else:
            self._open.effects.append(reply)
            self._commit()

    def _on_full(self) -> None:
        """The batch that is being committed waits for room: questions that were asked meanwhile do not."""
        for batch in (self._committing, self._open):
            if batch is not None:
                replies: list[effects.Effect] = [
                    effect for effect in batch.effects if isinstance(effect, QuestionReply)
                ]
                batch.effects[:] = [effect for effect in batch.effects if not isinstance(effect, QuestionReply)]
                self._act(replies)

    # ------------------------------------------------------------------ waiting

    async def committed(self) -> None:
        """Wait until everything that has been decided so far is on disk and done."""
        if self._inbox:
            await asyncio.sleep(0)
        if self.starts_anew:
            raise NotDone
        for _ in range(2):
            if self._committing is None and not self._open:
                return
            future: asyncio.Future[None] = self._loop.create_future()
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
            self._loop.call_soon(self._load_over)

    def _load_over(self) -> None:
        self._loads -= 1

    async def finish(self) -> None:
        """The last turn: write down for the next manager what time it is, and what features tell it."""
        self._engine.stopping(self._turn())
        self._write_clock(self._open)
        self._commit()
        await self.committed()
