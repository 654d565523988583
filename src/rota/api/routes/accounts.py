"""Nodes and accounting: hosts, use by users and projects, how hosts spent their time, and throughput."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from rota.api.operations import ApiRequest, OperationTable
from rota.client import calls
from rota.errors import BadInput
from rota.wire.sums import AccountingView, HistoryView, NodeDetailView, NodeView, SharesView, UsageView
from rota.wire.usage_views import MachineUsageView

table = OperationTable("accounts")


class OneHost(Struct, forbid_unknown_fields=True):
    host: Annotated[str, Meta(min_length=1, max_length=255)]


@table.get("/nodes", "list_nodes", answer=list[NodeView])
async def list_nodes(request: ApiRequest) -> list[NodeView]:
    """All hosts, with their resources and the use of these."""
    return await request.call(calls.nodes())


@table.get("/nodes/{host}", "show_node", place=OneHost, answer=NodeDetailView)
async def show_node(request: ApiRequest) -> NodeDetailView:
    """One host, with its history of the last week."""
    return await request.call(calls.node(request.path.host))


class AccountingQuery(Struct, forbid_unknown_fields=True, rename={"since": "from", "until": "to"}):
    since: datetime | None = None
    until: datetime | None = None
    by: Annotated[
        list[Literal["user", "project", "queue"]],
        Meta(max_length=16, description="Group rows by these columns; they may also be joined by commas."),
    ] = field(default_factory=lambda: ["user", "project", "queue"])
    window: Annotated[
        str,
        Meta(max_length=32, description="`hour`, `day`, `week`, `month`, `all`, or hours such as `36h`."),
    ] = "day"
    zone: Annotated[
        str, Meta(max_length=64, description="In which days begin: a name such as `Europe/Paris`, or an offset.")
    ] = "UTC"


@table.get("/accounting", "show_accounting", query=AccountingQuery, answer=AccountingView)
async def show_accounting(request: ApiRequest) -> AccountingView:
    """Use by user, project and queue, in windows.

    Windows begin at full hours. Days, weeks and months are whole and begin at midnight in `zone`, including
    daylight saving time; windows of a given length are counted from `from`. Running attempts are counted up to
    now.
    """
    query: AccountingQuery = request.query
    return await request.call(
        calls.accounting(
            since=_seconds(query.since),
            until=_seconds(query.until),
            by=list(query.by),
            window=query.window,
            zone=query.zone,
        )
    )


class SharesQuery(Struct, forbid_unknown_fields=True):
    queue: Annotated[str, Meta(max_length=64, description="Only this queue.")] = ""


@table.get("/shares", "show_shares", query=SharesQuery, answer=SharesView)
async def show_shares(request: ApiRequest) -> SharesView:
    """Standings of users and projects in fair-share queues, in scheduling order, and how they came about.

    The constants are changed by `PATCH /site`: the record `fair_share` of the kind `setting`.
    """
    return await request.call(calls.shares(queue=request.query.queue))


class UsageQuery(Struct, forbid_unknown_fields=True, rename={"since": "from", "until": "to"}):
    since: datetime | None = None
    until: datetime | None = None


@table.get("/usage", "show_usage", query=UsageQuery, answer=UsageView)
async def show_usage(request: ApiRequest) -> UsageView:
    """How hosts spent their time: seconds busy, idle and down; by default in the last day."""
    query: UsageQuery = request.query
    return await request.call(calls.usage(since=_seconds(query.since), until=_seconds(query.until)))


class MachineUsageQuery(Struct, forbid_unknown_fields=True, rename={"since": "from", "until": "to"}):
    since: datetime | None = None
    until: datetime | None = None
    by: Annotated[
        str, Meta(max_length=64, description="`host`, `group`, a property, or empty: all machines together.")
    ] = "host"
    host: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=255)]],
        Meta(max_length=1000, description="Only these machines."),
    ] = field(default_factory=list)
    window: Annotated[
        str,
        Meta(max_length=32, description="`hour`, `day`, `week`, `month`, hours such as `36h`, or empty: one."),
    ] = ""
    zone: Annotated[
        str, Meta(max_length=64, description="In which days begin: a name such as `Europe/Paris`, or an offset.")
    ] = "UTC"


@table.get("/usage/machines", "show_machine_usage", query=MachineUsageQuery, answer=MachineUsageView)
async def show_machine_usage(request: ApiRequest) -> MachineUsageView:
    """How machines spent their time: seconds by condition, usage and state; by default in the last day.

    For each key and window the seconds add up to the length of the window times the machines of the key. A machine
    in several groups counts in each. Groups and properties are those of now; an empty key is for machines without.
    """
    query: MachineUsageQuery = request.query
    return await request.call(
        calls.machine_usage(
            since=_seconds(query.since),
            until=_seconds(query.until),
            hosts=query.host,
            by=query.by,
            window=query.window,
            zone=query.zone,
        )
    )


class HistoryQuery(Struct, forbid_unknown_fields=True):
    minutes: Annotated[int, Meta(ge=1, le=10_080)] = 60


@table.get("/history", "show_history", query=HistoryQuery, answer=HistoryView)
async def show_history(request: ApiRequest) -> HistoryView:
    """How many jobs started and ended in each of the last minutes, and how long they waited and ran."""
    return await request.call(calls.history(minutes=request.query.minutes))


def _seconds(at: datetime | None) -> float | None:
    try:
        return None if at is None else at.timestamp()
    except (OverflowError, ValueError, OSError):
        raise BadInput("this time is out of range", hint="give a date of this century") from None
