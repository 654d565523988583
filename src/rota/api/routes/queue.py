"""The queue as a whole: counts, groups, limits and learning groups."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field

from rota.api.operations import ApiRequest, OperationTable
from rota.api.routes.jobs import Select
from rota.client import calls
from rota.wire.gang_views import GangView
from rota.wire.pool_views import PoolsView
from rota.wire.views import LearnedGroupView, LimitView, StatusView

table = OperationTable("queue")

Name = Annotated[str, Meta(min_length=1, max_length=255)]


class StatusQuery(Struct, forbid_unknown_fields=True):
    select: Select = field(default_factory=list)


@table.get("/status", "status", query=StatusQuery, answer=StatusView)
async def status(request: ApiRequest) -> StatusView:
    """Counts by state and by group, rates and expected ends."""
    return await request.call(calls.status(request.query.select))


class PoolsQuery(Struct, forbid_unknown_fields=True):
    name: Annotated[str, Meta(max_length=64, description="Only this pool.")] = ""


@table.get("/pools", "list_pools", query=PoolsQuery, answer=PoolsView)
async def list_pools(request: ApiRequest) -> PoolsView:
    """Where jobs run, in the order in which pools are tried: groups of waiting jobs, and runners."""
    return await request.call(calls.pools(request.query.name))


class OneGang(Struct, forbid_unknown_fields=True):
    name: Annotated[str, Meta(min_length=1, max_length=128)]


@table.get("/gangs/{name}", "show_gang", place=OneGang, answer=GangView)
async def show_gang(request: ApiRequest) -> GangView:
    """The newest gang of this name: its members with their states and hosts, and who is missing."""
    return await request.call(calls.gang(request.path.name))


@table.get("/limits", "list_limits", answer=list[LimitView])
async def list_limits(request: ApiRequest) -> list[LimitView]:
    """All limits with capacity, use and waiting jobs."""
    return await request.call(calls.limits())


class OneName(Struct, forbid_unknown_fields=True):
    name: Name


Hours = Annotated[str, Meta(max_length=64, description="HH:MM-HH:MM; empty: all day; null: as they are.")]


class LimitChange(Struct, forbid_unknown_fields=True):
    capacity: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None
    window: Hours | None = None
    unlimited: bool = False
    host: Annotated[str, Meta(max_length=255, description="Units that this host has; empty: all hosts.")] = ""


@table.put("/limits/{name}", "set_limit", place=OneName, body=LimitChange, role="admin")
async def set_limit(request: ApiRequest) -> None:
    """Declare or change a limit."""
    change: LimitChange = request.body
    number = "unlimited" if change.unlimited else change.capacity
    text = request.path.name + (f":{number}" if number is not None else "")
    if change.window is not None:
        text += f"@{change.window or 'always'}"
    await request.call(calls.set_limit(text, host=change.host))


@table.get("/learning", "list_learning", answer=list[LearnedGroupView])
async def list_learning(request: ApiRequest) -> list[LearnedGroupView]:
    """What is known about every learning group."""
    return await request.call(calls.learned())


@table.get("/learning/{name}", "show_learning", place=OneName, answer=LearnedGroupView)
async def show_learning(request: ApiRequest) -> LearnedGroupView:
    """What is known about one learning group, with what its jobs asked for and used."""
    (found,) = await request.call(calls.learned(request.path.name))
    return found


@table.delete("/learning/{name}", "forget_learning", place=OneName, role="admin", status=204)
async def forget_learning(request: ApiRequest) -> None:
    """Forget everything learned about a learning group."""
    await request.call(calls.forget_learned(request.path.name))
