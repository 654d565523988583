"""`Executor`: the interface of `concurrent.futures`, over a manager's durable queue.

A thread of its own talks to the manager. Calls that are submitted at about the same time travel together.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent import futures
from typing import Any, Final, TypeVar

from rota.client import submission
from rota.client.aio.client import AsyncClient, connect_async
from rota.client.functions import entry_of, with_fields
from rota.client.results import failure, value_of
from rota.client.session import AddOptions
from rota.errors import BadInput, RotaError
from rota.wire.results import ResultView

T = TypeVar("T")

#: Calls that go out in one submission, and how long the first of them waits for others.
_TOGETHER: Final = 5000
_GATHER_S: Final = 0.005


class CallFuture(futures.Future[T]):
    """The future of one call. To cancel it ends the call, even if it runs."""

    def __init__(self, executor: Executor) -> None:
        super().__init__()
        self._executor = executor
        self.job: int | None = None  #: its number, once the manager has it

    def cancel(self) -> bool:
        """Cancel the call. False: it has ended."""
        before = self.cancelled()
        if not super().cancel():
            return False
        if not before:
            self.set_running_or_notify_cancel()  # wakes its waiters
            self._executor._cancelled(self)
        return True


class Executor(futures.Executor):
    """Runs functions as jobs: durable, limited and measured like all others.

    with rota.Executor(cpus=2) as executor:
        print(executor.submit(math.hypot, 3, 4).result())

    Functions are sent by name, arguments and results as JSON. A future among the arguments is replaced by its
    result before the call is sent; futures in `after` are waited for by the manager.
    """

    def __init__(
        self,
        home: str | os.PathLike[str] | None = None,
        *,
        address: str | None = None,
        token: str | None = None,
        **fields: Any,
    ) -> None:
        """`fields` are those of all its jobs, such as `cpus`, `mem`, `retries`, `group` (default of retries: 0). A
        manager is started if there is none. Raises `RotaError`."""
        submission.base_wanted({name: value for name, value in fields.items() if name != "python"})
        self._fields = {"python": sys.executable, "retries": 0, **fields}
        self._open: set[CallFuture[Any]] = set()
        self._lock = threading.Condition()
        self._shut = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rota.Executor", daemon=True)
        self._thread.start()
        try:
            self._client: AsyncClient = asyncio.run_coroutine_threadsafe(
                connect_async(home, address=address, token=token, start=True), self._loop
            ).result()
        except BaseException:
            self._stop()
            raise
        self._waiting: list[tuple[CallFuture[Any], dict[str, Any]]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._sending = False

    # ------------------------------------------------------------------ concurrent.futures

    def submit(self, fn: Callable[..., T] | str, /, *args: Any, **kwargs: Any) -> CallFuture[T]:
        """Add a call. Raises `BadInput` for what cannot be sent."""
        return self.submit_with({}, fn, *args, **kwargs)

    def submit_with(
        self, fields: Mapping[str, Any], fn: Callable[..., T] | str, /, *args: Any, **kwargs: Any
    ) -> CallFuture[T]:
        """Add a call with fields of its own, such as `{"mem": "8G", "after": [future]}`."""
        return self._submit(dict(fields), fn, args, kwargs)

    def map(
        self,
        fn: Callable[..., T] | str,
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
    ) -> Iterator[T]:
        """The results of `fn` for these arguments, in their order. `chunksize` calls are one job: use it for calls
        that take less than a second. Raises what the first call that failed raised."""
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        arguments = zip(*iterables, strict=False)
        if chunksize == 1:
            return _results([self.submit(fn, *given) for given in arguments], timeout, whole=False)
        parts = iter(lambda: list(itertools.islice(arguments, chunksize)), [])
        found = [self._submit({}, fn, tuple(list(given) for given in part), {}, each=True) for part in parts]
        return _results(found, timeout, whole=True)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more calls. `wait` until all have ended; otherwise calls that were sent go on."""
        with self._lock:
            self._shut = True
            left = list(self._open)
        if cancel_futures:
            for future in left:
                future.cancel()
        if not wait:
            threading.Thread(target=self._close, name="rota.Executor.shutdown", daemon=True).start()
            return
        self._close()

    # ------------------------------------------------------------------ in the caller's thread

    def _submit(
        self,
        fields: dict[str, Any],
        fn: object,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        *,
        each: bool = False,
    ) -> CallFuture[Any]:
        with self._lock:
            if self._shut:
                raise RuntimeError("cannot schedule new futures after shutdown")
        future: CallFuture[Any] = CallFuture(self)
        parents = [one for one in (*args, *kwargs.values()) if isinstance(one, futures.Future)]
        if not parents:
            self._take(future, fields, entry_of(fn, args, kwargs, each=each))
            return future
        with self._lock:
            self._open.add(future)

        def proceed() -> None:
            try:
                settled = [_value(one) for one in args]
                named = {name: _value(one) for name, one in kwargs.items()}
                self._take(future, fields, entry_of(fn, tuple(settled), named))
            except (Exception, futures.CancelledError) as error:
                self._fail(future, error)

        left = len(parents)
        counting = threading.Lock()

        def done(_: futures.Future[Any]) -> None:
            nonlocal left
            with counting:
                left -= 1
                last = not left
            if last:
                proceed()

        for parent in parents:
            parent.add_done_callback(done)
        return future

    def _take(self, future: CallFuture[Any], fields: dict[str, Any], entry: dict[str, Any]) -> None:
        """Have a call sent."""
        with self._lock:
            self._open.add(future)
            # Options of the call, before those of the function, before those of the executor.
            self._waiting.append((future, with_fields(self._fields, entry, fields)))
            begin, self._sending = not self._sending, True
        if begin:
            self._loop.call_soon_threadsafe(self._begin, self._send())

    def _cancelled(self, future: CallFuture[Any]) -> None:
        self._forget(future)
        if future.job is not None:
            self._loop.call_soon_threadsafe(self._begin, self._kill(future.job))

    def _fail(self, future: CallFuture[Any], error: BaseException) -> None:
        if isinstance(error, futures.CancelledError):
            future.cancel()
        try:
            future.set_exception(error)
        except futures.InvalidStateError:
            pass  # it was cancelled
        self._forget(future)

    def _forget(self, future: CallFuture[Any]) -> None:
        with self._lock:
            self._open.discard(future)
            if not self._open:
                self._lock.notify_all()

    def _close(self) -> None:
        with self._lock:
            while self._open:
                self._lock.wait()
        if self._thread.is_alive():
            closing = asyncio.run_coroutine_threadsafe(self._leave(), self._loop)
            closing.result()
            self._stop()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        if threading.current_thread() is not self._thread:
            self._thread.join()
            self._loop.close()

    # ------------------------------------------------------------------ in the thread of the loop

    def _begin(self, work: Any) -> None:
        task: asyncio.Task[None] = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self) -> None:
        await asyncio.sleep(_GATHER_S)
        while True:
            with self._lock:
                some, self._waiting = self._waiting[:_TOGETHER], self._waiting[_TOGETHER:]
                if not some:
                    self._sending = False
                    return
            await self._add([each for each in some if not each[0].cancelled()])

    async def _add(self, some: list[tuple[CallFuture[Any], dict[str, Any]]]) -> None:
        """Send calls. A call that waits for a future of the same submission is sent with the next one."""
        while some:
            ready = [each for each in some if all(_known(one) for one in _parents(each[1]))]
            if not ready:
                for future, _ in some:
                    self._fail(
                        future, BadInput("it waits for a future that was cancelled, or is no call", field="after")
                    )
                return
            some = [each for each in some if each not in ready]
            try:
                await self._submit_all(ready)
            except RotaError as error:
                if len(ready) == 1:
                    self._fail(ready[0][0], error)
                    continue
                for each in ready:  # one of them is to blame
                    await self._add([each])

    async def _submit_all(self, ready: list[tuple[CallFuture[Any], dict[str, Any]]]) -> None:
        name = submission.new_id()
        entries = [fields | _after(fields) for _, fields in ready]
        batches, _ = submission.prepare(entries, {}, check=False)
        added = await self._client.submit(name, list(batches), AddOptions(fresh=True))
        for (future, _), job in zip(ready, added.added, strict=True):
            future.job = job
        by_job = {future.job: future for future, _ in ready if future.job is not None}
        self._begin(self._watch(name, by_job))
        if cancelled := [job for job, future in by_job.items() if future.cancelled()]:
            await self._client.kill(*cancelled)

    async def _watch(self, name: str, by_job: dict[int, CallFuture[Any]]) -> None:
        """Settle the futures of a submission as its jobs end."""
        try:
            async with await self._client.watch(f"submission={name}") as watching:
                while watching.settled is None:
                    progress = await watching.poll()
                    if progress is not None:
                        await self._settle([by_job.pop(each.job) for each in progress.ended if each.job in by_job])
            await self._settle([by_job.pop(job) for job in list(by_job)])
        except RotaError as error:
            for future in by_job.values():
                self._fail(future, error)

    async def _settle(self, ended: list[CallFuture[Any]]) -> None:
        waiting = [future for future in ended if future.job is not None and not future.cancelled()]
        found = await self._client.results(*(future.job for future in waiting if future.job is not None))
        for future, view in zip(waiting, found, strict=True):
            self._set(future, view)

    def _set(self, future: CallFuture[Any], view: ResultView) -> None:
        try:
            if view.error is not None:
                future.set_exception(failure(view.id, view.error))
            else:
                future.set_result(value_of(view))
        except futures.InvalidStateError:
            pass  # it has just been cancelled
        self._forget(future)

    async def _kill(self, job: int) -> None:
        try:
            await self._client.kill(job)
        except RotaError:
            pass  # it has been removed, or the manager is gone

    async def _leave(self) -> None:
        for task in list(self._tasks):
            if task is not asyncio.current_task():
                task.cancel()
        await self._client.close()


def _results(waited: list[CallFuture[Any]], timeout: float | None, *, whole: bool) -> Iterator[Any]:
    """The results of these futures in order; `whole`: each is a list of results."""
    limit = None if timeout is None else time.monotonic() + timeout

    def results() -> Iterator[Any]:
        try:
            for future in waited:
                result = future.result(None if limit is None else limit - time.monotonic())
                if whole:
                    yield from result
                else:
                    yield result
        finally:
            for future in waited:
                future.cancel()

    return results()


def _value(given: Any) -> Any:
    return given.result() if isinstance(given, futures.Future) else given


def _parents(fields: Mapping[str, Any]) -> list[CallFuture[Any]]:
    after = fields.get("after") or ()
    return [each for each in after if isinstance(each, CallFuture)] if isinstance(after, list | tuple) else []


def _known(future: CallFuture[Any]) -> bool:
    return future.job is not None


def _after(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The dependencies of a job, with the numbers of jobs for futures."""
    after = fields.get("after")
    if not isinstance(after, list | tuple):
        return {}
    return {"after": [each.job if isinstance(each, CallFuture) else each for each in after]}
