"""The client for asyncio. The same methods as `Client`; all logic is in `session` and `calls`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from rota.client import calls, submission
from rota.client.batches import UploadBatch
from rota.client.blocking import TIMEOUT
from rota.client.calls import Call, Cursor, Selector, SiteChange, StreamCall, words
from rota.client.endpoint import Endpoint, find, slow_manager, unreachable
from rota.client.fields.modification import spec_change
from rota.client.session import READ, Added, AddOptions, Conversation, Disconnected, Flow, Redial
from rota.client.submission import Entry
from rota.core.answers import Acted, WalltimeSet
from rota.core.attempts.signal_names import signal_name
from rota.errors import NoManager, TimedOut
from rota.home import Home
from rota.unix import short
from rota.wire import codec, sums, views
from rota.wire import messages as m

if TYPE_CHECKING:
    from rota.client.execute import Executed
    from rota.client.printed import Absent, Printed
    from rota.wire.gantt import GanttView

T = TypeVar("T")
I = TypeVar("I")  # noqa: E741


async def connect_async(
    home: str | os.PathLike[str] | None = None,
    *,
    address: str | None = None,
    token: str | None = None,
    timeout: float = TIMEOUT,
) -> AsyncClient:
    """Connect to the manager of a deployment, as `connect` does.

    async with await rota.connect_async() as manager:
        print((await manager.status()).counts)
    """
    place = Home.find(os.fspath(home) if home is not None else None)
    client = AsyncClient(lambda: find(place, address=address, token=token), timeout=timeout)
    await client.connect()
    return client


class AsyncClient:
    """A connection to a manager. For one task at a time."""

    def __init__(self, endpoint: Callable[[], Endpoint], *, timeout: float = TIMEOUT) -> None:
        self._endpoint = endpoint
        self._timeout = timeout
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._conversation = Conversation("", "")
        self._turn = asyncio.Lock()  # calls of several tasks take turns on the one connection

    # -- jobs: see `Client` for what each does

    async def add(
        self,
        commands: Iterable[Entry] | str,
        *,
        rerun: bool = False,
        check: bool = False,
        input: str = "",
        **fields: Any,
    ) -> Added:
        """Add jobs; returns when they are safely stored."""
        prepared = submission.prepare(commands, {"rerun": rerun, **fields}, check=check, input=input)
        return await self.submit(submission.new_id(), *prepared)

    async def add_file(
        self, path: str | os.PathLike[str], *, check: bool = False, input: str = "", **fields: Any
    ) -> Added:
        """Add the jobs of a file."""
        prepared = submission.prepare_file(path, fields, check=check, input=input)
        return await self.submit(submission.new_id(), *prepared)

    async def submit(self, submission_id: str, batches: Iterable[UploadBatch], options: AddOptions) -> Added:
        """Upload prepared batches."""
        return await self._ask(self._conversation.add(submission_id, batches, options), self._timeout * 10)

    async def jobs(self, *selectors: Selector, limit: int = 1000, cursor: Cursor = None) -> views.JobPage:
        """One page of jobs. The next one is `jobs(…, cursor=page.next)`; there is none when that is None."""
        return await self._call(calls.jobs(words(selectors), limit=limit, cursor=cursor))

    async def job(self, job: int) -> views.JobView:
        """Everything about one job."""
        return await self._call(calls.show(job))

    async def status(self, *selectors: Selector) -> views.StatusView:
        """Counts by state and by group."""
        return await self._call(calls.status(words(selectors)))

    async def kill(self, *selectors: Selector) -> Acted:
        """Cancel jobs."""
        return await self.act("kill", *selectors)

    async def retry(self, *selectors: Selector) -> Acted:
        """Run failed or cancelled jobs again."""
        return await self.act("retry", *selectors)

    async def remove(self, *selectors: Selector, cascade: bool = False, waiting: bool = False) -> Acted:
        """Forget jobs that have ended, and with `waiting` those that wait; `cascade`: with everything that depends
        on them. Of a selection the rest is kept; a job that is named by its id and cannot go is refused."""
        return await self._call(calls.act("remove", words(selectors), cascade=cascade, waiting=waiting))

    async def would(self, verb: str, *selectors: Selector, cascade: bool = False, waiting: bool = False) -> Acted:
        """Which jobs `kill` or `remove` would concern now. Nothing is done."""
        self._conversation.refuse_older()
        return await self._call(calls.act(verb, words(selectors), cascade=cascade, waiting=waiting, check=True))

    async def hold(self, *selectors: Selector) -> Acted:
        """Keep waiting jobs from starting."""
        return await self.act("hold", *selectors)

    async def release(self, *selectors: Selector) -> Acted:
        """Undo `hold`."""
        return await self.act("release", *selectors)

    async def suspend(self, *selectors: Selector, keep: bool = False) -> Acted:
        """Stop all processes of running jobs, and let others have their cores unless they `keep` them."""
        return await self._call(calls.act("suspend", words(selectors), keep=keep))

    async def resume(self, *selectors: Selector) -> Acted:
        """Let suspended jobs go on when their cores are free."""
        return await self.act("resume", *selectors)

    async def signal(self, *selectors: Selector, signal: str) -> Acted:
        """Send a signal, by name, to all processes of running jobs."""
        return await self._call(calls.act("signal", words(selectors), signal=signal_name(signal)))

    async def checkpoint(self, *selectors: Selector) -> Acted:
        """Ask running jobs for a checkpoint, by the signal that each gave."""
        return await self.act("checkpoint", *selectors)

    async def walltime(self, job: int, change: str, *, force: bool = False) -> WalltimeSet:
        """Give a running job so much more ("+1h") or less ("-30m"), or so much in all ("2h")."""
        return await self._call(calls.walltime(job, change, force=force))

    async def confirm_dead(self, *selectors: Selector) -> Acted:
        """Declare lost jobs dead."""
        return await self.act("confirm-dead", *selectors)

    async def modify(self, *selectors: Selector, **fields: Any) -> Acted:
        """Change fields of jobs that are not running."""
        return await self.change(spec_change(fields), *selectors)

    async def change(self, change: m.SpecChange, *selectors: Selector) -> Acted:
        """The same with a prepared change."""
        return await self._call(calls.modify(words(selectors), change))

    async def why(self, job: int) -> views.WhyView:
        """What keeps a job from running, who, and what would change it."""
        return await self._call(calls.why(job))

    async def plan(self, *, user: str = "", **fields: Any) -> views.PlanView:
        """When and where a job with these fields of `add` would run; nothing is submitted."""
        return await self.plan_for(submission.spec_of(fields), user=user)

    async def plan_for(self, spec: m.NewSpec, *, user: str = "") -> views.PlanView:
        """The same for a specification."""
        return await self._call(calls.plan(spec, user=user))

    async def gantt(
        self, *, since: float | None = None, until: float | None = None, limit: int = 10_000
    ) -> GanttView:
        """What runs and what is planned between two moments (Unix seconds)."""
        return await self._call(calls.gantt(since=since, until=until, limit=limit))

    async def limits(self) -> list[views.LimitView]:
        """All limits with capacity, use and waiting jobs."""
        return await self._call(calls.limits())

    async def set_limit(self, text: str, *, host: str = "") -> None:
        """Declare or change a limit: `"blast:5"`, `"blast:unlimited"`, `"night@22:00-06:00"`."""
        await self._call(calls.set_limit(text, host=host))

    async def site(self, *kinds: str) -> views.SiteView:
        """Records of the site of these kinds, or (none given) of all, with their version."""
        return await self._call(calls.site(kinds))

    async def quotas(self) -> views.QuotasView:
        """All quotas, and who holds how much of each."""
        return await self._call(calls.quotas())

    async def shares(self, *, queue: str = "") -> sums.SharesView:
        """How users and projects stand in queues that go by fair share, and why; in one if one is named."""
        return await self._call(calls.shares(queue=queue))

    async def set_site(self, changes: Iterable[SiteChange], *, about: str = "", base: int | None = None) -> int:
        """Change records of the site, all of them or none; the new version. With `base`, only if the site
        still has that version.
        """
        return await self._call(calls.set_site(changes, about=about, base=base))

    async def learned(self, name: str = "") -> list[views.LearnedGroupView]:
        """What was learned about a learning group, with histograms, or (no name) about all."""
        return await self._call(calls.learned(name))

    async def forget_learned(self, name: str = "") -> None:
        """Forget what was learned about a group, or (no name) about all."""
        await self._call(calls.forget_learned(name))

    async def accounting(
        self,
        *,
        since: float | None = None,
        until: float | None = None,
        by: Iterable[str] = ("user", "project", "queue"),
        window_s: int = 86_400,
        window: str = "",
        zone: str = "",
    ) -> sums.AccountingView:
        """Who used what between two moments (Unix seconds), in windows that begin at multiples of `window_s`, or
        in those of `window` (`hour`, `day`, `week`, `month`, `all` or a time such as `36h`) in a time zone."""
        call = calls.accounting(since=since, until=until, by=by, window_s=window_s, window=window, zone=zone)
        return await self._call(call)

    async def usage(self, *, since: float | None = None, until: float | None = None) -> sums.UsageView:
        """How hosts spent their time between two moments (Unix seconds)."""
        return await self._call(calls.usage(since=since, until=until))

    async def history(self, *, minutes: int = 60) -> sums.HistoryView:
        """How many jobs started and ended in each of the last minutes."""
        return await self._call(calls.history(minutes=minutes))

    async def nodes(self) -> list[sums.NodeView]:
        """All hosts, with what they have and what of it is in use."""
        return await self._call(calls.nodes())

    async def node(self, host: str) -> sums.NodeDetailView:
        """One host, with what it did lately."""
        return await self._call(calls.node(host))

    async def act(self, verb: str, *selectors: Selector) -> Acted:
        return await self._call(calls.act(verb, words(selectors)))

    async def wait(self, *selectors: Selector, timeout: float | None = None) -> views.SettledView:
        """Wait until all these jobs are settled. Raises `TimedOut`."""
        async with await self.watch(*selectors) as watching:
            try:
                async with asyncio.timeout(timeout):
                    async for _ in watching:
                        pass
            except TimeoutError:
                raise TimedOut(
                    "the jobs have not all ended in time", hint="wait again, or see 'rota status'"
                ) from None
            assert watching.settled is not None
            return watching.settled

    async def watch(
        self, *selectors: Selector, outputs: bool = False, follow: bool = False, paced: bool = False
    ) -> AsyncWatching[m.Progress, views.SettledView]:
        """What happens to jobs until all are settled: an asynchronous iterator of `Progress`. `paced`: no
        more live output is sent than was `took`."""
        window = calls.WINDOW if paced else 0
        stream = calls.watch(words(selectors), outputs=outputs, follow=follow, window=window)
        session = self._conversation.session
        return AsyncWatching(self, stream, await self._ask(session.begin(stream), self._timeout))

    async def output(
        self, job: int, *, attempt: int = 0, err: bool = False, offset: int = 0, marks: bool = True
    ) -> Printed:
        """What an attempt printed, as far as it is kept.

        Where bytes are missing, a line says so, unless `marks` is False; the `absent` of the answer lists them.
        """
        from rota.client.printed import Printed

        absent: list[Absent] = []
        parts = self.output_parts(job, attempt=attempt, err=err, offset=offset, marks=marks, absent=absent)
        found = Printed(b"".join([part async for part in parts]))
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
        """The same in pieces; what is missing is added to `absent`."""
        pages = calls.OutputPages(job, attempt=attempt, err=err, offset=offset, marks=marks)
        while pages.more:
            if part := pages.took(await self._call(pages.next())):
                yield part
        if absent is not None:
            absent += pages.absent

    async def feed(self) -> AsyncWatching[views.FeedView, None]:
        """Everything that changes: an asynchronous iterator that ends only with the connection."""
        stream = calls.feed()
        return AsyncWatching(
            self, stream, await self._ask(self._conversation.session.begin(stream), self._timeout)
        )

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
        """Run a command inside a running job."""
        from rota.client import execute

        what = execute.opening(job, command, node=node, env=env, cwd=cwd, key=key)
        return await self._run(execute.execute(self._conversation.session, what, input), None)

    # -- the manager

    async def manager_settings(self) -> views.SettingsView:
        """The settings that the manager began with."""
        return await self._call(calls.manager_settings())

    async def manager_status(self) -> views.ManagerView:
        """The manager itself."""
        return await self._call(calls.manager_status())

    async def manager_doctor(self) -> Any:
        """What the manager finds when it checks itself."""
        return await self._call(calls.manager_doctor())

    async def stop_manager(self, *, kill: bool = False) -> None:
        """Stop the manager."""
        await self._call(calls.stop_manager(kill=kill))

    async def pause_manager(self) -> views.PauseView:
        """Start nothing more until `resume_manager`, also after a restart. Running jobs go on."""
        return await self._call(calls.pause_manager())

    async def drain_manager(self) -> views.PauseView:
        """Start nothing more; the manager stops when nothing runs any more."""
        return await self._call(calls.drain_manager())

    async def resume_manager(self) -> views.PauseView:
        """End a pause or a drain."""
        return await self._call(calls.resume_manager())

    async def backup(
        self, path: str, *, force: bool = False, progress: Callable[[float], None] | None = None
    ) -> views.BackupView:
        """Have the manager copy its database to a new file, of which it is given the absolute path."""
        stream = calls.backup(path, force=force)
        n = await self._ask(self._conversation.session.begin(stream), self._timeout)
        watching = AsyncWatching(self, stream, n)
        async for share in watching:
            if progress is not None:
                progress(share)
        assert watching.settled is not None
        return watching.settled

    async def add_token(
        self,
        name: str,
        role: str = "user",
        *,
        expires_s: float | None = None,
        host: str | None = None,
        user: str | None = None,
    ) -> views.NewTokenView:
        """Make a token, for this user; for a runner, that of the agent of this host alone."""
        return await self._call(calls.token_add(name, role, expires_s=expires_s, host=host, user=user))

    async def tokens(self) -> list[views.TokenView]:
        """All tokens, without their secrets."""
        return await self._call(calls.token_list())

    async def remove_token(self, name: str) -> None:
        """Make a token worthless."""
        await self._call(calls.token_remove(name))

    # -- the connection

    async def connect(self) -> m.Welcome:
        """Make the connection (anew)."""
        await self.close()
        endpoint = self._endpoint()
        try:
            self._streams = await asyncio.wait_for(_dial(endpoint), min(self._timeout, 10.0))
        except OSError as error:  # TimeoutError is one
            raise unreachable(endpoint, error) from None
        conversation = self._conversation
        conversation.role, conversation.token, conversation.home = endpoint.role, endpoint.token, endpoint.home
        try:
            # Not in turn: a call whose connection was lost makes a new one in the middle of its own.
            return await self._drive(self._conversation.greet(), self._timeout)
        except TimeoutError:
            await self.close()
            raise slow_manager(self._timeout) from None
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Close the connection. Safe to call twice."""
        if self._streams is not None:
            writer = self._streams[1]
            self._streams = None
            writer.close()
            try:
                await writer.wait_closed()
            except OSError:
                pass

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def connected(self) -> bool:
        """Is there a connection, as far as is known?"""
        return (
            self._streams is not None and not self._streams[0].at_eof() and not self._conversation.session.refused
        )

    async def alive(self) -> bool:
        """Is the connection still there? Takes in what has come meanwhile; while nothing is asked."""
        while self._streams is not None and self.connected:
            reading = asyncio.ensure_future(self._streams[0].read(1 << 16))
            await asyncio.sleep(0)
            if not reading.done():
                reading.cancel()
                await asyncio.wait({reading})
                return True
            try:
                data = reading.result()
            except OSError:
                return False
            if data:
                self._conversation.session.take(data)
        return False

    async def ended(self) -> None:
        """Wait until the manager hangs up; while nothing is asked."""
        try:
            while self._streams is not None and await self._streams[0].read(1 << 16):
                pass
        except OSError:
            pass

    @property
    def welcome(self) -> m.Welcome:
        """What the manager said when we connected."""
        assert self._conversation.session.welcome is not None
        return self._conversation.session.welcome

    async def call(self, call: Call[T]) -> T:
        """Ask anything that `calls` can ask."""
        return await self._call(call)

    async def _call(self, call: Call[T]) -> T:
        return await self._ask(self._conversation.session.call(call), self._timeout)

    async def _ask(self, flow: Flow[T], timeout: float) -> T:
        try:
            return await self._run(flow, timeout)
        except TimeoutError:
            raise slow_manager(timeout) from None

    async def _run(self, flow: Flow[T], timeout: float | None) -> T:
        """Drive a flow: write what it yields, give it what arrives."""
        async with self._turn:
            return await self._drive(flow, timeout)

    async def _drive(self, flow: Flow[T], timeout: float | None) -> T:
        try:
            step = next(flow)
            while True:
                try:
                    data = await self._step(step, timeout)
                except NoManager as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(data)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]

    async def _step(self, step: bytes | Redial, timeout: float | None) -> bytes:
        if isinstance(step, Redial):
            await asyncio.sleep(step.after_s)
            await self.connect()
            return b""
        if self._streams is None:
            raise Disconnected
        reader, writer = self._streams
        try:
            if step != READ:
                writer.write(step)
                await asyncio.wait_for(writer.drain(), timeout)
                return b""
            data = await asyncio.wait_for(reader.read(1 << 18), timeout)
        except TimeoutError:
            raise
        except OSError:
            data = b""
        if not data:
            await self.close()
            raise Disconnected
        return data


class AsyncWatching(Generic[I, T]):
    """A stream that is open at the manager; iterate it, close it to stop early."""

    def __init__(self, client: AsyncClient, stream: StreamCall[I, T], n: int) -> None:
        self._client = client
        self._stream = stream
        self._session = client._conversation.session
        self._n = n
        self.settled: T | None = None

    async def __aiter__(self) -> AsyncIterator[I]:
        while self.settled is None:
            item, self.settled = await self._client._run(self._session.next_item(self._n, self._stream), None)
            if item is not None:
                yield item

    async def took(self, job: int, attempt: int, *, out: int, err: int) -> None:
        """Live output of this attempt was dealt with up to these offsets: more may come."""
        if self._session.welcome is None or not self._session.welcome.paced:
            return  # a manager of the release before: it sends everything at once
        frame = codec.frame(m.Taken(self._n, job, attempt, out, err))
        await self._client._ask(self._session.say(frame), self._client._timeout)

    async def close(self) -> None:
        """Tell the manager that we no longer listen."""
        if self.settled is None and self._client._conversation.session is self._session:
            try:
                await self._client._ask(self._session.end(self._n), self._client._timeout)
            except NoManager:
                pass

    async def __aenter__(self) -> AsyncWatching[I, T]:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


async def _dial(endpoint: Endpoint) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if endpoint.socket:
        with short(endpoint.socket) as path:
            return await asyncio.open_unix_connection(path)
    from rota.wire.tls import SERVER_NAME, client_context

    assert endpoint.ca is not None
    context = client_context(endpoint.ca)
    return await asyncio.open_connection(endpoint.host, endpoint.port, ssl=context, server_hostname=SERVER_NAME)
