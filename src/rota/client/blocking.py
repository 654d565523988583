"""The blocking client: one socket, no threads, no asyncio. All logic is in `session` and `calls`."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from rota.client import calls, submission
from rota.client.batches import UploadBatch
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

#: How long an answer may take, in seconds; adding a million jobs gets ten times as much.
TIMEOUT: Final = 60.0


def connect(
    home: str | os.PathLike[str] | None = None,
    *,
    address: str | None = None,
    token: str | None = None,
    timeout: float = TIMEOUT,
) -> Client:
    """Connect to the manager of a deployment (default: `$ROTA_HOME`, as for the command line).

    With `address` ("HOST:PORT") by TLS, with a token; else over the Unix socket in the home.
    Raises `NoManager` when none answers.

        with rota.connect() as manager:
            print(manager.status().counts)
    """
    place = Home.find(os.fspath(home) if home is not None else None)
    return Client(lambda: find(place, address=address, token=token), timeout=timeout)


class Client:
    """A connection to a manager. Not for several threads at once."""

    def __init__(self, endpoint: Callable[[], Endpoint], *, timeout: float = TIMEOUT) -> None:
        self._endpoint = endpoint
        self._timeout = timeout
        self._socket: socket.socket | None = None
        self._conversation = Conversation("", "")
        #: called before a lost connection is made again; may start a manager
        self.before_redial: Callable[[], None] | None = None
        self.connect()

    # -- jobs

    def add(
        self,
        commands: Iterable[Entry] | str,
        *,
        rerun: bool = False,
        check: bool = False,
        input: str = "",
        **fields: Any,
    ) -> Added:
        """Add jobs: a text for the shell, or a list of texts, argument lists and mappings of fields.
        Keyword arguments are the defaults of fields: `cpus=2, mem="4G", after=[12], name="x"`…

        Returns when they are safely stored. `check` only says what would happen. `input` is a name by which
        they are recognised when they are added again with changes: see `rota add --input`.

            manager.add(["make a", ["cp", "a", "b c"], {"cmd": "big", "mem": "20G"}], group="build")
        """
        prepared = submission.prepare(commands, {"rerun": rerun, **fields}, check=check, input=input)
        return self.submit(submission.new_id(), *prepared)

    def add_file(
        self, path: str | os.PathLike[str], *, check: bool = False, input: str = "", **fields: Any
    ) -> Added:
        """Add the jobs of a file, in any of the formats that `rota add` reads. Added again with changes, it
        is recognised only by the name that is given as `input`."""
        prepared = submission.prepare_file(path, fields, check=check, input=input)
        return self.submit(submission.new_id(), *prepared)

    def submit(self, submission_id: str, batches: Iterable[UploadBatch], options: AddOptions) -> Added:
        """Upload prepared batches; on a lost connection, again, with the same effect as once."""
        return self._ask(self._conversation.add(submission_id, batches, options), self._timeout * 10)

    def jobs(self, *selectors: Selector, limit: int = 1000, cursor: Cursor = None) -> views.JobPage:
        """One page of jobs. The next one is `jobs(…, cursor=page.next)`; there is none when that is None.

        manager.jobs("state=failed", limit=10).jobs[0].reason
        """
        return self._call(calls.jobs(words(selectors), limit=limit, cursor=cursor))

    def job(self, job: int) -> views.JobView:
        """Everything about one job, with its attempts and its story."""
        return self._call(calls.show(job))

    def status(self, *selectors: Selector) -> views.StatusView:
        """Counts by state and by group."""
        return self._call(calls.status(words(selectors)))

    def kill(self, *selectors: Selector) -> Acted:
        """Cancel jobs; running ones are ended."""
        return self.act("kill", *selectors)

    def retry(self, *selectors: Selector) -> Acted:
        """Run failed or cancelled jobs again."""
        return self.act("retry", *selectors)

    def remove(self, *selectors: Selector, cascade: bool = False, waiting: bool = False) -> Acted:
        """Forget jobs that have ended, and with `waiting` those that wait; `cascade`: with everything that depends
        on them. Of a selection the rest is kept; a job that is named by its id and cannot go is refused."""
        return self._call(calls.act("remove", words(selectors), cascade=cascade, waiting=waiting))

    def would(self, verb: str, *selectors: Selector, cascade: bool = False, waiting: bool = False) -> Acted:
        """Which jobs `kill` or `remove` would concern now. Nothing is done."""
        self._conversation.refuse_older()
        return self._call(calls.act(verb, words(selectors), cascade=cascade, waiting=waiting, check=True))

    def hold(self, *selectors: Selector) -> Acted:
        """Keep waiting jobs from starting."""
        return self.act("hold", *selectors)

    def release(self, *selectors: Selector) -> Acted:
        """Undo `hold`."""
        return self.act("release", *selectors)

    def suspend(self, *selectors: Selector, keep: bool = False) -> Acted:
        """Stop all processes of running jobs, and let others have their cores unless they `keep` them."""
        return self._call(calls.act("suspend", words(selectors), keep=keep))

    def resume(self, *selectors: Selector) -> Acted:
        """Let suspended jobs go on when their cores are free."""
        return self.act("resume", *selectors)

    def signal(self, *selectors: Selector, signal: str) -> Acted:
        """Send a signal, by name, to all processes of running jobs."""
        return self._call(calls.act("signal", words(selectors), signal=signal_name(signal)))

    def checkpoint(self, *selectors: Selector) -> Acted:
        """Ask running jobs for a checkpoint, by the signal that each gave."""
        return self.act("checkpoint", *selectors)

    def walltime(self, job: int, change: str, *, force: bool = False) -> WalltimeSet:
        """Give a running job so much more ("+1h") or less ("-30m"), or so much in all ("2h")."""
        return self._call(calls.walltime(job, change, force=force))

    def confirm_dead(self, *selectors: Selector) -> Acted:
        """Declare lost jobs dead: you know that nothing of them runs any more."""
        return self.act("confirm-dead", *selectors)

    def modify(self, *selectors: Selector, **fields: Any) -> Acted:
        """Change fields of jobs that are not running: `manager.modify("@build", mem="8G", priority=9)`."""
        return self.change(spec_change(fields), *selectors)

    def change(self, change: m.SpecChange, *selectors: Selector) -> Acted:
        """The same with a prepared change."""
        return self._call(calls.modify(words(selectors), change))

    def why(self, job: int) -> views.WhyView:
        """What keeps a job from running, who, and what would change it."""
        return self._call(calls.why(job))

    def plan(self, *, user: str = "", **fields: Any) -> views.PlanView:
        """When and where a job with these fields of `add` would run; nothing is submitted."""
        return self.plan_for(submission.spec_of(fields), user=user)

    def plan_for(self, spec: m.NewSpec, *, user: str = "") -> views.PlanView:
        """The same for a specification."""
        return self._call(calls.plan(spec, user=user))

    def gantt(self, *, since: float | None = None, until: float | None = None, limit: int = 10_000) -> GanttView:
        """What runs and what is planned between two moments (Unix seconds)."""
        return self._call(calls.gantt(since=since, until=until, limit=limit))

    def limits(self) -> list[views.LimitView]:
        """All limits with capacity, use and waiting jobs."""
        return self._call(calls.limits())

    def set_limit(self, text: str, *, host: str = "") -> None:
        """Declare or change a limit: `"blast:5"`, `"blast:unlimited"`, `"night@22:00-06:00"`."""
        self._call(calls.set_limit(text, host=host))

    def site(self, *kinds: str) -> views.SiteView:
        """Records of the site of these kinds, or (none given) of all, with their version."""
        return self._call(calls.site(kinds))

    def quotas(self) -> views.QuotasView:
        """All quotas, and who holds how much of each."""
        return self._call(calls.quotas())

    def shares(self, *, queue: str = "") -> sums.SharesView:
        """How users and projects stand in queues that go by fair share, and why; in one if one is named."""
        return self._call(calls.shares(queue=queue))

    def set_site(self, changes: Iterable[SiteChange], *, about: str = "", base: int | None = None) -> int:
        """Change records of the site, all of them or none; the new version. With `base`, only if the site
        still has that version.

            client.set_site([("queue", "night", {"priority": 1}), ("queue", "old", None)])
        """
        return self._call(calls.set_site(changes, about=about, base=base))

    def learned(self, name: str = "") -> list[views.LearnedGroupView]:
        """What was learned about a learning group, with histograms, or (no name) about all."""
        return self._call(calls.learned(name))

    def forget_learned(self, name: str = "") -> None:
        """Forget what was learned about a group, or (no name) about all."""
        self._call(calls.forget_learned(name))

    def accounting(
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
        return self._call(call)

    def usage(self, *, since: float | None = None, until: float | None = None) -> sums.UsageView:
        """How hosts spent their time between two moments (Unix seconds)."""
        return self._call(calls.usage(since=since, until=until))

    def history(self, *, minutes: int = 60) -> sums.HistoryView:
        """How many jobs started and ended in each of the last minutes."""
        return self._call(calls.history(minutes=minutes))

    def nodes(self) -> list[sums.NodeView]:
        """All hosts, with what they have and what of it is in use."""
        return self._call(calls.nodes())

    def node(self, host: str) -> sums.NodeDetailView:
        """One host, with what it did lately."""
        return self._call(calls.node(host))

    def act(self, verb: str, *selectors: Selector) -> Acted:
        return self._call(calls.act(verb, words(selectors)))

    def wait(self, *selectors: Selector, timeout: float | None = None) -> views.SettledView:
        """Wait until all these jobs are settled. Raises `TimedOut`.

        manager.wait("@build", timeout=3600).counts
        """
        limit = None if timeout is None else time.monotonic() + timeout
        with self.watch(*selectors) as watching:
            while watching.settled is None:
                left = None if limit is None else limit - time.monotonic()
                if left is not None and left <= 0:
                    raise TimedOut("the jobs have not all ended in time", hint="wait again, or see 'rota status'")
                watching.poll(left)
            return watching.settled

    def watch(
        self,
        *selectors: Selector,
        outputs: bool = False,
        follow: bool = False,
        paced: bool = False,
        attach: bool = False,
    ) -> Watching[m.Progress, views.SettledView]:
        """What happens to jobs until all are settled: an iterator of `Progress`. Its `settled` is the
        final answer. `outputs`: with what each printed, when it has ended; `follow`: while it runs. `paced`: no
        more of that is sent than was `took`; `attach`: every byte of the jobs that this submission added.

            for progress in manager.watch("@build"):
                print(progress.counts)
        """
        window = calls.WINDOW if paced or attach else 0
        stream = calls.watch(words(selectors), outputs=outputs, follow=follow, window=window, attach=attach)
        return Watching(self, stream)

    def output(
        self, job: int, *, attempt: int = 0, err: bool = False, offset: int = 0, marks: bool = True
    ) -> Printed:
        """What an attempt printed (default: the newest), as far as it is kept.

        Where bytes are missing, a line says so, unless `marks` is False; the `absent` of the answer lists them.
        It is empty if this is every byte that the job wrote.
        """
        from rota.client.printed import Printed

        absent: list[Absent] = []
        parts = self.output_parts(job, attempt=attempt, err=err, offset=offset, marks=marks, absent=absent)
        found = Printed(b"".join(parts))
        found.absent = tuple(absent)
        return found

    def output_parts(
        self,
        job: int,
        *,
        attempt: int = 0,
        err: bool = False,
        offset: int = 0,
        marks: bool = True,
        absent: list[Absent] | None = None,
    ) -> Iterator[bytes]:
        """The same in pieces of about 1 MiB at most; what is missing is added to `absent`."""
        pages = calls.OutputPages(job, attempt=attempt, err=err, offset=offset, marks=marks)
        while pages.more:
            if part := pages.took(self._call(pages.next())):
                yield part
        if absent is not None:
            absent += pages.absent

    def execute(
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

            manager.execute(17, ["ps", "-e"]).stdout
        """
        from rota.client import execute

        what = execute.opening(job, command, node=node, env=env, cwd=cwd, key=key)
        return self._run(execute.execute(self._conversation.session, what, input), None)

    # -- the manager

    def manager_settings(self) -> views.SettingsView:
        """The settings that the manager began with."""
        return self._call(calls.manager_settings())

    def manager_status(self) -> views.ManagerView:
        """The manager itself: process, addresses, runners."""
        return self._call(calls.manager_status())

    def ui_link(self) -> views.UiLink:
        """Where the dashboard is, and a code that lets one browser in, once and within a minute."""
        return self._call(calls.ui_link())

    def manager_doctor(self) -> Any:
        """What the manager finds when it checks itself."""
        return self._call(calls.manager_doctor())

    def stop_manager(self, *, kill: bool = False) -> None:
        """Stop the manager. Running jobs go on, unless `kill`."""
        self._call(calls.stop_manager(kill=kill))

    def pause_manager(self) -> views.PauseView:
        """Start nothing more until `resume_manager`, also after a restart. Running jobs go on."""
        return self._call(calls.pause_manager())

    def drain_manager(self) -> views.PauseView:
        """Start nothing more; the manager stops when nothing runs any more."""
        return self._call(calls.drain_manager())

    def resume_manager(self) -> views.PauseView:
        """End a pause or a drain."""
        return self._call(calls.resume_manager())

    def backup(
        self, path: str, *, force: bool = False, progress: Callable[[float], None] | None = None
    ) -> views.BackupView:
        """Have the manager copy its database to a new file, of which it is given the absolute path.
        `force`: replace an old one. `progress` is told how much of the whole, 0 to 1, is done.

            manager.backup("/backups/rota.db").jobs
        """
        watching = Watching(self, calls.backup(path, force=force))
        for share in watching:
            if progress is not None:
                progress(share)
        assert watching.settled is not None
        return watching.settled

    def add_token(
        self,
        name: str,
        role: str = "user",
        *,
        expires_s: float | None = None,
        host: str | None = None,
        user: str | None = None,
    ) -> views.NewTokenView:
        """Make a token, for this user; for a runner, that of the agent of this host alone. Its secret is told
        only here."""
        return self._call(calls.token_add(name, role, expires_s=expires_s, host=host, user=user))

    def tokens(self) -> list[views.TokenView]:
        """All tokens, without their secrets."""
        return self._call(calls.token_list())

    def remove_token(self, name: str) -> None:
        """Make a token worthless, at once."""
        self._call(calls.token_remove(name))

    # -- the connection

    def connect(self) -> m.Welcome:
        """Make the connection (anew)."""
        self.close()
        endpoint = self._endpoint()
        try:
            self._socket = _dial(endpoint, min(self._timeout, 10.0))
        except OSError as error:
            raise unreachable(endpoint, error) from None
        conversation = self._conversation
        conversation.role, conversation.token, conversation.home = endpoint.role, endpoint.token, endpoint.home
        try:
            return self._ask(self._conversation.greet(), self._timeout)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _call(self, call: Call[T]) -> T:
        return self._ask(self._conversation.session.call(call), self._timeout)

    def _ask(self, flow: Flow[T], timeout: float) -> T:
        try:
            return self._run(flow, timeout)
        except TimeoutError:
            raise slow_manager(timeout) from None

    def _run(self, flow: Flow[T], timeout: float | None) -> T:
        """Drive a flow: write what it yields, give it what arrives. Raises `TimeoutError` when nothing
        arrives for so long; what has arrived is not lost."""
        try:
            step = next(flow)
            while True:
                try:
                    data = self._step(step, timeout)
                except NoManager as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(data)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]

    def _step(self, step: bytes | Redial, timeout: float | None) -> bytes:
        if isinstance(step, Redial):
            time.sleep(step.after_s)
            if self.before_redial:
                self.before_redial()
            self.connect()
            return b""
        if self._socket is None:
            raise Disconnected
        try:
            self._socket.settimeout(timeout)
            if step != READ:
                self._socket.sendall(step)
                return b""
            data = self._socket.recv(1 << 18)
        except TimeoutError:
            raise
        except OSError:
            self.close()
            raise Disconnected from None
        if not data:
            self.close()
            raise Disconnected
        return data


class Watching(Generic[I, T]):
    """A stream that is open at the manager. Iterate it, or `poll` it; close it to stop early."""

    def __init__(self, client: Client, stream: StreamCall[I, T]) -> None:
        self._client = client
        self._stream = stream
        self._session = client._conversation.session
        self._n = client._ask(self._session.begin(stream), client._timeout)
        self.settled: T | None = None

    def poll(self, timeout: float | None = None) -> I | None:
        """The next item; None when the time has passed or, if `settled` is set, at the end."""
        if self.settled is None:
            try:
                item, self.settled = self._client._run(self._session.next_item(self._n, self._stream), timeout)
            except TimeoutError:
                return None
            else:
                return item
        return None

    def __iter__(self) -> Iterator[I]:
        while (item := self.poll()) is not None:
            yield item

    def took(self, job: int, attempt: int, *, out: int, err: int) -> None:
        """Live output of this attempt was dealt with up to these offsets: more may come."""
        if self._session.welcome is None or not self._session.welcome.paced:
            return  # a manager of the release before: it sends everything at once
        frame = codec.frame(m.Taken(self._n, job, attempt, out, err))
        self._client._ask(self._session.say(frame), self._client._timeout)

    def close(self) -> None:
        """Tell the manager that we no longer listen."""
        if self.settled is None and self._client._conversation.session is self._session:
            try:
                self._client._ask(self._session.end(self._n), self._client._timeout)
            except NoManager:
                pass

    def __enter__(self) -> Watching[I, T]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _dial(endpoint: Endpoint, timeout: float) -> socket.socket:
    if endpoint.socket:
        plain = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            plain.settimeout(timeout)
            with short(endpoint.socket) as path:
                plain.connect(path)
        except BaseException:
            plain.close()
            raise
        return plain
    from rota.wire.tls import SERVER_NAME, client_context

    assert endpoint.ca is not None
    context = client_context(endpoint.ca)
    plain = socket.create_connection((endpoint.host, endpoint.port), timeout=timeout)
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return context.wrap_socket(plain, server_hostname=SERVER_NAME)
    except BaseException:
        plain.close()
        raise
