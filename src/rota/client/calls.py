"""Every call of a client: the request to send and how to decode the answer.

No I/O: `Session` performs calls; the clients only move bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import msgspec

from rota.core import answers
from rota.core.fields import values
from rota.errors import BadInput, WireError
from rota.wire import client_messages as m
from rota.wire import gang_views, graph_views, pool_views, sums, views

if TYPE_CHECKING:
    from rota.client.printed import Absent
    from rota.wire.gantt import GanttView
    from rota.wire.usage_views import MachineUsageView

T = TypeVar("T")
I = TypeVar("I")  # noqa: E741 - an item of a stream

Selector = int | str
#: (kind, name, value) of a record of the site; the value None removes it
SiteChange = tuple[str, str, Any]
#: Where a page begins: `next` of the page before; None or 0: at the first job.
Cursor = str | int | None


def words(selectors: tuple[Selector, ...] | list[Selector]) -> list[str]:
    return [str(selector) for selector in selectors]


class Call(Generic[T]):
    """One request with one answer."""

    def __init__(self, build: Callable[[int], m.Message], answer: Any) -> None:
        self.build = build
        self._answer = answer

    def read(self, body: msgspec.Raw) -> T:
        return _read(body, self._answer)  # type: ignore[no-any-return]


class StreamCall(Call[T], Generic[I, T]):
    """One request with many items before its answer."""

    def __init__(self, build: Callable[[int], m.Message], item: Any, answer: Any) -> None:
        super().__init__(build, answer)
        self._item = msgspec.msgpack.Decoder(item)

    def read_item(self, body: msgspec.Raw) -> I:
        try:
            return self._item.decode(body)  # type: ignore[no-any-return]
        except msgspec.DecodeError as error:
            raise _strange(error) from None


def _read(body: msgspec.Raw, kind: Any) -> Any:
    try:
        return msgspec.msgpack.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise _strange(error) from None


def _strange(error: Exception) -> WireError:
    return WireError(f"the manager's answer cannot be read: {error}", hint="are both of the same version?")


# ------------------------------------------------------------------ jobs


def jobs(selectors: list[str], *, limit: int, cursor: Cursor) -> Call[views.JobPage]:
    begin = place_of(cursor)
    return Call(lambda n: m.ListJobs(n, selectors, limit, begin), views.JobPage)


def place_of(cursor: Cursor) -> int:
    """Where a page begins. Raises `BadInput` for what no page gave."""
    text = str(cursor or 0)
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise BadInput(f"'{text[:40]}' is not a cursor", hint="use 'next' of the page before")
    return int(text)


def layers(selectors: list[str]) -> Call[graph_views.LayersView]:
    return Call(lambda n: m.GetLayers(n, selectors), graph_views.LayersView)


def page(
    selectors: list[str], *, search: str, sort: str, limit: int, offset: int = 0, cursor: str = ""
) -> Call[views.JobPage]:
    return Call(lambda n: m.ListPage(n, selectors, search, sort, limit, offset, cursor), views.JobPage)


def graph(job: int) -> Call[views.GraphView]:
    job_id(job)
    return Call(lambda n: m.GetGraph(n, job), views.GraphView)


def feed() -> StreamCall[views.FeedView, None]:
    return StreamCall(m.Feed, views.FeedView, type(None))


def status(selectors: list[str]) -> Call[views.StatusView]:
    return Call(lambda n: m.Status(n, selectors), views.StatusView)


def job_id(job: object) -> int:
    """A job's id. Raises `BadInput`: what the manager cannot read would end the connection."""
    if isinstance(job, bool) or not isinstance(job, int) or not 0 <= job < 1 << 63:
        raise BadInput(f"{job!r} is not a job's id", hint="give a number")
    return job


def show(job: int) -> Call[views.JobView]:
    job_id(job)
    return Call(lambda n: m.Show(n, job), views.JobView)


def act(
    verb: str,
    selectors: list[str],
    *,
    cascade: bool = False,
    keep: bool = False,
    signal: str = "",
    waiting: bool = False,
    lenient: bool = False,
    check: bool = False,
) -> Call[answers.Acted]:
    return Call(lambda n: m.Act(n, verb, selectors, cascade, keep, signal, waiting, lenient, check), answers.Acted)


def walltime(job: int, change: str, *, force: bool = False) -> Call[answers.WalltimeSet]:
    """`change`: a duration, with + or - in front where so much more or less is meant."""
    job_id(job)
    seconds, relative = values.walltime_change(change)
    return Call(lambda n: m.ChangeWalltime(n, job, seconds, relative, force), answers.WalltimeSet)


def node_ready(host: str = "") -> Call[str]:
    """Without a name: the machine of the ticket with which the connection was made."""
    return Call(lambda n: m.NodeReady(n, host), str)


def provision_output(job: int, attempt: int = 0) -> Call[list[tuple[int, str, bytes]]]:
    job_id(job)
    return Call(lambda n: m.ReadProvision(n, job, attempt), list[tuple[int, str, bytes]])


def modify(selectors: list[str], change: m.SpecChange) -> Call[answers.Acted]:
    return Call(lambda n: m.Modify(n, selectors, change), answers.Acted)


def why(job: int) -> Call[views.WhyView]:
    job_id(job)
    return Call(lambda n: m.Why(n, job), views.WhyView)


def plan(spec: m.NewSpec, *, user: str = "") -> Call[views.PlanView]:
    return Call(lambda n: m.PlanFor(n, spec, user), views.PlanView)


def gantt(*, since: float | None, until: float | None, limit: int) -> Call[GanttView]:
    from rota.wire.gantt import GanttView

    return Call(lambda n: m.Gantt(n, since, until, limit), GanttView)


def limits() -> Call[list[views.LimitView]]:
    return Call(m.ListLimits, list[views.LimitView])


def set_limit(text: str, *, host: str = "") -> Call[Any]:
    return Call(lambda n: m.SetLimit(n, text, host), Any)


def site(kinds: tuple[str, ...]) -> Call[views.SiteView]:
    return Call(lambda n: m.GetSite(n, list(kinds)), views.SiteView)


def quotas() -> Call[views.QuotasView]:
    return Call(m.ListQuotas, views.QuotasView)


def gang(name: str) -> Call[gang_views.GangView]:
    return Call(lambda n: m.GetGang(n, name), gang_views.GangView)


def pools(name: str) -> Call[pool_views.PoolsView]:
    return Call(lambda n: m.GetPools(n, name), pool_views.PoolsView)


def shares(*, queue: str) -> Call[sums.SharesView]:
    return Call(lambda n: m.GetShares(n, queue), sums.SharesView)


def set_site(changes: Iterable[SiteChange], *, about: str, base: int | None) -> Call[int]:
    """The answer is the new version."""
    texts = [(kind, name, None if value is None else _json(name, value)) for kind, name, value in changes]
    return Call(lambda n: m.SetSite(n, texts, about, -1 if base is None else base), int)


def _json(name: str, value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError) as error:
        raise BadInput(f"the value of '{name}' cannot be stored: {error}", hint="use text and numbers") from None


def learned(name: str = "") -> Call[list[views.LearnedGroupView]]:
    return Call(lambda n: m.Learned(n, name, apart=True), list[views.LearnedGroupView])


def forget_learned(name: str) -> Call[Any]:
    return Call(lambda n: m.Learned(n, name, forget=True), Any)


def accounting(
    *,
    since: float | None,
    until: float | None,
    by: Iterable[str],
    window_s: int = 86_400,
    window: str = "",
    zone: str = "",
) -> Call[sums.AccountingView]:
    names = tuple(by)
    return Call(
        lambda n: m.GetAccounts(n, since, until, names, window_s, window, zone, apart=True), sums.AccountingView
    )


def usage(*, since: float | None, until: float | None) -> Call[sums.UsageView]:
    return Call(lambda n: m.GetUsage(n, since, until), sums.UsageView)


def machine_usage(
    *, since: float | None, until: float | None, hosts: Iterable[str], by: str, window: str, zone: str
) -> Call[MachineUsageView]:
    from rota.wire.usage_views import MachineUsageView

    return Call(lambda n: m.GetMachineUsage(n, since, until, list(hosts), by, window, zone), MachineUsageView)


def set_machines(
    hosts: Iterable[str],
    *,
    condition: str | None,
    reason: str | None,
    owner: str | None,
    groups: Iterable[str] | None,
    provision_cmd: str | None,
    now: bool,
) -> Call[list[str]]:
    """The answer: the names of these machines."""
    names, its = list(hosts), None if groups is None else list(groups)
    return Call(lambda n: m.SetMachine(n, names, condition, reason, owner, its, provision_cmd, now), list[str])


def reserve_machine(host: str, *, seconds: float, when_free: bool) -> Call[float | None]:
    """The answer: until when (Unix seconds); None: as soon as it is free."""
    return Call(lambda n: m.ReserveMachine(n, host, seconds, when_free), float | None)


def return_machine(host: str) -> Call[str]:
    return Call(lambda n: m.ReturnMachine(n, host), str)


def history(*, minutes: int) -> Call[sums.HistoryView]:
    return Call(lambda n: m.GetHistory(n, minutes), sums.HistoryView)


def nodes() -> Call[list[sums.NodeView]]:
    return Call(m.ListNodes, list[sums.NodeView])


def node(host: str) -> Call[sums.NodeDetailView]:
    return Call(lambda n: m.GetNode(n, host), sums.NodeDetailView)


#: Window of live output: bytes that may be in flight to a reader that acknowledges them.
WINDOW: Final = 1 << 20


def watch(
    selectors: list[str], *, outputs: bool, follow: bool, window: int = 0, attach: bool = False
) -> StreamCall[m.Progress, views.SettledView]:
    return StreamCall(
        lambda n: m.Watch(n, selectors, outputs, follow, window, attach), m.Progress, views.SettledView
    )


def output(job: int, *, attempt: int, stream: int, offset: int, limit: int) -> Call[m.OutputPart]:
    return Call(lambda n: m.ReadOutput(n, job, attempt, stream, offset, limit), m.OutputPart)


class OutputPages:
    """Asks for the output of one attempt, page by page, to its present end. `absent` is what is missing of it."""

    def __init__(self, job: int, *, attempt: int, err: bool, offset: int, marks: bool = True) -> None:
        from rota.client.printed import Marking  # few ask for it, and all would wait for it

        self._job = job_id(job)
        self._attempt = attempt
        self._stream = 2 if err else 1
        self._marking = Marking(offset, marks=marks)

    @property
    def more(self) -> bool:
        return self._marking.more

    @property
    def absent(self) -> list[Absent]:
        return self._marking.absent

    def next(self) -> Call[m.OutputPart]:
        offset = self._marking.offset
        return output(self._job, attempt=self._attempt, stream=self._stream, offset=offset, limit=1 << 20)

    def took(self, part: m.OutputPart) -> bytes:
        # The newest attempt may become another one between two pages.
        self._attempt = part.attempt or self._attempt
        return self._marking.took(part)


def uploaded() -> Call[answers.Added]:
    """The answer to the last message of a submission (whose requests `Session.upload` builds)."""
    return Call(lambda n: m.Drop(n, ""), answers.Added)


def drop(submission: str) -> Call[Any]:
    return Call(lambda n: m.Drop(n, submission), Any)


def stop_stream(stream: int) -> Call[Any]:
    return Call(lambda n: m.Stop(n, stream), Any)


# ------------------------------------------------------------------ the manager


def ping() -> Call[Any]:
    return Call(lambda n: m.Control(n, "ping"), Any)


def metrics() -> Call[views.MetricsView]:
    return Call(lambda n: m.Control(n, "metrics"), views.MetricsView)


def ui_link() -> Call[views.UiLink]:
    return Call(lambda n: m.Control(n, "ui-link"), views.UiLink)


def ui_redeem(code: str) -> Call[views.NewSessionView]:
    return Call(lambda n: m.Control(n, "ui-redeem", {"code": code}), views.NewSessionView)


def check_token(token: str) -> Call[bool]:
    """Of the gateway: would this token, or session, be let in?"""
    return Call(lambda n: m.Control(n, "token-check", {"token": token}), bool)


def ui_leave() -> Call[Any]:
    return Call(lambda n: m.Control(n, "ui-leave"), Any)


def manager_settings() -> Call[views.SettingsView]:
    return Call(lambda n: m.Control(n, "settings"), views.SettingsView)


def manager_status() -> Call[views.ManagerView]:
    return Call(lambda n: m.Control(n, "status"), views.ManagerView)


def stop_manager(*, kill: bool) -> Call[Any]:
    return Call(lambda n: m.Control(n, "stop", {"kill": "true"} if kill else {}), Any)


def pause_manager() -> Call[views.PauseView]:
    return Call(lambda n: m.Control(n, "pause"), views.PauseView)


def drain_manager() -> Call[views.PauseView]:
    return Call(lambda n: m.Control(n, "drain"), views.PauseView)


def resume_manager() -> Call[views.PauseView]:
    return Call(lambda n: m.Control(n, "resume"), views.PauseView)


def backup(path: str, *, force: bool) -> StreamCall[float, views.BackupView]:
    try:
        path.encode()
    except UnicodeEncodeError:
        raise BadInput(f"{path!r} is not valid UTF-8", hint="choose another name") from None
    args = {"path": path, "force": "true"} if force else {"path": path}
    return StreamCall(lambda n: m.Control(n, "backup", args), float, views.BackupView)


def token_add(
    name: str, role: str, *, expires_s: float | None, host: str | None = None, user: str | None = None
) -> Call[views.NewTokenView]:
    args = {"name": name, "role": role}
    if host is not None:
        args["host"] = host
    if user is not None:
        args["user"] = user
    if expires_s is not None:
        args["expires_s"] = str(expires_s)
    return Call(lambda n: m.Control(n, "token-add", args), views.NewTokenView)


def token_list() -> Call[list[views.TokenView]]:
    return Call(lambda n: m.Control(n, "token-list"), list[views.TokenView])


def token_remove(name: str) -> Call[Any]:
    return Call(lambda n: m.Control(n, "token-remove", {"name": name}), Any)


def manager_doctor() -> Call[Any]:
    return Call(lambda n: m.Control(n, "doctor"), Any)
