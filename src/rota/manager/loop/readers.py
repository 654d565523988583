"""Threads that read the store and files while the loop goes on."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

T = TypeVar("T")

log = logging.getLogger("rota.manager")

_THREADS: Final = 2


class Readers:
    """Two threads, so that one long question does not keep all others waiting.

    Every `add` asks here, so they take questions from a plain queue: an executor makes two futures and a lock for
    each, which takes twice as long.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._tasks: SimpleQueue[Callable[[], object] | None] = SimpleQueue()  #: None: end
        for number in range(_THREADS):
            # Daemons: a manager that fails to start, and closes nothing, must still end.
            threading.Thread(target=self._serve, name=f"reader-{number}", daemon=True).start()

    async def read(self, question: Callable[[], T]) -> T:
        """The answer to a question that is asked in one of the threads."""
        future: asyncio.Future[T] = self._loop.create_future()

        def answer() -> None:
            try:
                found = question()
            except BaseException as error:
                self._tell(future, future.set_exception, error)
            else:
                self._tell(future, future.set_result, found)

        self._tasks.put(answer)
        return await future

    def submit(self, task: Callable[[], object]) -> None:
        """Run a task that nothing waits for."""
        self._tasks.put(task)

    def close(self) -> None:
        """Drop what has not begun; wait for nothing."""
        with suppress(Empty):
            while True:
                self._tasks.get_nowait()
        for _ in range(_THREADS):
            self._tasks.put(None)

    def _serve(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                task()
            except Exception:
                log.exception("a bug in a task beside the loop")

    def _tell(self, future: asyncio.Future[T], settle: Callable[[Any], None], value: object) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(_settle, future, settle, value)


def _settle(future: asyncio.Future[T], settle: Callable[[Any], None], value: object) -> None:
    if not future.done():  # or the caller has left
        settle(value)
