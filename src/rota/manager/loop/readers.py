"""Threads that read the store and files while the loop goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class Readers:
    """Two threads, so that one long question does not keep all others waiting."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="reader")

    async def read(self, question: Callable[[], T]) -> T:
        """The answer to a question that is asked in one of the threads."""
        return await self._loop.run_in_executor(self._threads, question)

    def submit(self, task: Callable[[], object]) -> None:
        """Run a task that nothing waits for."""
        self._threads.submit(task)

    def close(self) -> None:
        """Drop what has not begun; wait for nothing."""
        self._threads.shutdown(wait=False, cancel_futures=True)
