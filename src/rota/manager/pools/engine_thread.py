"""The thread of one delegated pool: calls its engine, one call at a time, in the order of asking.

The order matters: a survey that was asked for after a submission shows what that submission made. What a call
returns becomes an event; no call is ever repeated here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
from collections.abc import Callable

from rota.core.events import Event
from rota.core.pools.events import (
    PoolSurveyed,
    RunnersSubmitted,
    SubmissionFailed,
    SurveyFailed,
    WithdrawalEnded,
)
from rota.errors import RotaError
from rota.pools.base import Engine, EngineFailed, EngineRefused, Group, RunnerAsk

log = logging.getLogger("rota.manager")


class EngineThread:
    """Calls one engine. Its methods belong to the loop's thread, and return at once."""

    def __init__(self, pool: str, engine: Engine, *, happened: Callable[[Event], None]) -> None:
        self.engine = engine
        self._pool = pool
        self._loop = asyncio.get_running_loop()
        self._happened = happened
        self._calls: queue.SimpleQueue[Callable[[], Event] | None] = queue.SimpleQueue()
        self._closed = False
        # A daemon: the manager does not wait long for an engine when it stops. A survey finds what a call in
        # progress has done.
        self._thread = threading.Thread(target=self._run, name=f"pool {pool}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Begin no more calls, and have the one in progress ended."""
        self._closed = True
        self._calls.put(None)
        self.engine.close()

    def join(self, seconds: float) -> None:
        """Wait this long for the end of the last call."""
        if self._thread.is_alive():
            self._thread.join(seconds)

    def submit(
        self,
        group: Group,
        asked: list[RunnerAsk],
        *,
        write_ticket: Callable[[RunnerAsk], None],
        over: Callable[[], None],
    ) -> None:
        """Ask for these runners, after their tickets are written; `over` is called afterwards."""

        def call() -> Event:
            try:
                return ask()
            finally:
                self._on_loop(over)

        def ask() -> Event:
            names = [each.name for each in asked]

            def failed(error: str, *, refused: bool) -> Event:
                log.warning("pool %s: cannot ask for %d runners: %s", self._pool, len(names), error)
                return SubmissionFailed(
                    pool=self._pool, need=group.need, names=names, error=error, refused=refused
                )

            try:
                for each in asked:
                    write_ticket(each)
            except (RotaError, OSError) as error:
                return failed(f"cannot write a ticket: {error}", refused=True)
            try:
                ids = self.engine.submit(group, asked)
                if len(ids) != len(asked):
                    return failed(f"asked for {len(asked)} runners, it named {len(ids)}", refused=False)
            except EngineRefused as error:
                return failed(str(error), refused=True)
            except EngineFailed as error:
                return failed(str(error), refused=False)
            except Exception as error:
                log.exception("pool %s: a bug in its engine", self._pool)
                return failed(f"{type(error).__name__}: {error}", refused=False)
            return RunnersSubmitted(pool=self._pool, ids=dict(zip(names, ids, strict=True)))

        self._calls.put(call)

    def withdraw(self, ids: list[str]) -> None:
        """Have the engine remove these runners."""

        def call() -> Event:
            try:
                self.engine.withdraw(ids)
            except EngineFailed as error:
                return WithdrawalEnded(pool=self._pool, error=str(error))
            except Exception as error:
                log.exception("pool %s: a bug in its engine", self._pool)
                return WithdrawalEnded(pool=self._pool, error=f"{type(error).__name__}: {error}")
            return WithdrawalEnded(pool=self._pool)

        self._calls.put(call)

    def survey(self, known: frozenset[str], over: Callable[[], None]) -> None:
        """Survey the engine. `known`: runners that were submitted before; `over` is called afterwards."""

        def call() -> Event:
            try:
                seen = self.engine.survey()
            except EngineFailed as error:
                return SurveyFailed(pool=self._pool, error=str(error))
            except Exception as error:
                log.exception("pool %s: a bug in its engine", self._pool)
                return SurveyFailed(pool=self._pool, error=f"{type(error).__name__}: {error}")
            finally:
                self._on_loop(over)
            return PoolSurveyed(pool=self._pool, seen=seen, known=known)

        self._calls.put(call)

    def _run(self) -> None:
        while (call := self._calls.get()) is not None and not self._closed:
            event = call()
            self._on_loop(lambda event=event: self._happened(event))  # type: ignore[misc]

    def _on_loop(self, call: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is gone
            self._loop.call_soon_threadsafe(call)
