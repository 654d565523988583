"""Operations that follow jobs: watch and wait, read output, run a command inside a job."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Generic, TypeVar

from rota.client import calls
from rota.client.aio.connection import AsyncConnection
from rota.client.calls import Selector, StreamCall, words
from rota.errors import NoManager, NotDone, TimedOut
from rota.wire import client_messages as m
from rota.wire import codec, views

if TYPE_CHECKING:
    from rota.client.execute import Executed
    from rota.client.printed import Absent, Printed

T = TypeVar("T")
I = TypeVar("I")  # noqa: E741


class AsyncWatching(Generic[I, T]):
    """A stream that is open at the manager. Iterate it, or `poll` it; close it to stop early."""

    def __init__(self, client: AsyncConnection, stream: StreamCall[I, T], n: int, *, again: bool = False) -> None:
        self._client = client
        self._stream = stream
        self._session = client._conversation.session
        self._n = n
        self._again = again  #: it may be opened again if the manager starts anew
        self.settled: T | None = None

    async def poll(self, timeout: float | None = None) -> I | None:
        """The next item; None when the time has passed or, if `settled` is set, at the end."""
        while self.settled is None:
            try:
                next_item = self._session.next_item(self._n, self._stream)
                item, self.settled = await self._client._run(next_item, timeout)
            except TimeoutError:
                return None
            except NotDone:
                if not self._again:
                    raise
                self._n = await self._client._begin(self._stream)
                self._session = self._client._conversation.session
            else:
                return item
        return None

    async def __aiter__(self) -> AsyncIterator[I]:
        while (item := await self.poll()) is not None:
            yield item

    async def took(self, job: int, attempt: int, *, out: int, err: int) -> None:
        """Live output of this attempt was dealt with up to these offsets: more may come."""
        if self._session.welcome is None or not self._session.welcome.paced:
            return  # a manager of the release before: it sends everything at once
        frame = codec.frame(m.Taken(self._n, job, attempt, out, err))
        await self._client._perform(self._session.say(frame), self._client._timeout)

    async def close(self) -> None:
        """Tell the manager that we no longer listen."""
        if self.settled is None and self._client._conversation.session is self._session:
            try:
                await self._client._perform(self._session.end(self._n), self._client._timeout)
            except NoManager:
                pass

    async def __aenter__(self) -> AsyncWatching[I, T]:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class WatchOperations(AsyncConnection):
    """What can be seen of jobs while they run."""

    async def wait(self, *selectors: Selector, timeout: float | None = None) -> views.SettledView:
        """Wait until all these jobs are settled. Raises `TimedOut`.

        (await manager.wait("@build", timeout=3600)).counts
        """
        limit = None if timeout is None else time.monotonic() + timeout
        async with await self.watch(*selectors) as watching:
            while watching.settled is None:
                left = None if limit is None else limit - time.monotonic()
                if left is not None and left <= 0:
                    raise TimedOut("the jobs have not all ended in time", hint="wait again, or see 'rota status'")
                await watching.poll(left)
            return watching.settled

    async def watch(
        self,
        *selectors: Selector,
        outputs: bool = False,
        follow: bool = False,
        paced: bool = False,
        attach: bool = False,
    ) -> AsyncWatching[m.Progress, views.SettledView]:
        """What happens to jobs until all are settled: an asynchronous iterator of `Progress`. Its `settled` is the
        final answer. `outputs`: with what each printed, when it has ended; `follow`: while it runs. `paced`: no
        more of that is sent than was `took`; `attach`: every byte of the jobs that this submission added.

            async for progress in await manager.watch("@build"):
                print(progress.counts)
        """
        window = calls.WINDOW if paced or attach else 0
        stream = calls.watch(words(selectors), outputs=outputs, follow=follow, window=window, attach=attach)
        # What was printed before would be printed again.
        return await self._stream(stream, again=not outputs and not follow)

    async def feed(self) -> AsyncWatching[views.FeedView, None]:
        """Everything that changes: an asynchronous iterator that ends only with the connection."""
        return await self._stream(calls.feed())

    async def _stream(self, stream: StreamCall[I, T], *, again: bool = False) -> AsyncWatching[I, T]:
        return AsyncWatching(self, stream, await self._begin(stream), again=again)

    async def output(
        self, job: int, *, attempt: int = 0, err: bool = False, offset: int = 0, marks: bool = True
    ) -> Printed:
        """What an attempt printed (default: the newest), as far as it is kept.

        Where bytes are missing, a line says so, unless `marks` is False; the `absent` of the answer lists them.
        It is empty if this is every byte that the job wrote.
        """
        from rota.client.printed import Printed

        absent: list[Absent] = []
        parts: list[bytes] = []
        async for part in self.output_parts(
            job, attempt=attempt, err=err, offset=offset, marks=marks, absent=absent
        ):
            parts.append(part)
        found = Printed(b"".join(parts))
        found.absent = tuple(absent)
        return found

    async def output_parts(
        self,
        job: int,
        *,
        attempt: int = 0,
        err: bool = False,
        offset: int = 0,
        marks: bool = True,
        absent: list[Absent] | None = None,
    ) -> AsyncIterator[bytes]:
        """The same in pieces of about 1 MiB at most; what is missing is added to `absent`."""
        pages = calls.OutputPages(job, attempt=attempt, err=err, offset=offset, marks=marks)
        while pages.more:
            if part := pages.took(await self.ask(pages.next())):
                yield part
        if absent is not None:
            absent += pages.absent

    async def execute(
        self,
        job: int,
        command: Sequence[str],
        *,
        input: bytes = b"",
        node: str = "",
        env: Mapping[str, str] | None = None,
        cwd: str = "",
        key: str = "",
    ) -> Executed:
        """Run a command inside a running job: on its host (or another one of the job), in its environment and
        directory, within what it was given. Returns what it wrote and how it ended.

            (await manager.execute(17, ["ps", "-e"])).stdout
        """
        from rota.client import execute

        what = execute.opening(job, command, node=node, env=env, cwd=cwd, key=key)
        return await self._run(execute.execute(self._conversation.session, what, input), None)
