"""The queue as a whole: counts, groups, limits and what was learned."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field

from rota.api.operations import Ask, Table
from rota.api.routes.jobs import Select
from rota.client import calls
from rota.wire.views import LearnedGroupView, LimitView, StatusView

table = Table("queue")

Name = Annotated[str, Meta(min_length=1, max_length=255)]


class StatusQuery(Struct, forbid_unknown_fields=True):
    select: Select = field(default_factory=list)


@table.get("/status", "status", query=StatusQuery, answer=StatusView)
async def status(ask: Ask) -> StatusView:
    """Counts by state and by group, rates and expected ends."""
    return await ask.call(calls.status(ask.query.select))


@table.get("/limits", "list_limits", answer=list[LimitView])
async def list_limits(ask: Ask) -> list[LimitView]:
    """All limits with capacity, use and waiting jobs."""
    return await ask.call(calls.limits())


class OneName(Struct, forbid_unknown_fields=True):
    name: Name


Hours = Annotated[str, Meta(max_length=64, description="HH:MM-HH:MM; empty: all day; null: as they are.")]


class LimitChange(Struct, forbid_unknown_fields=True):
    capacity: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None
    window: Hours | None = None
    unlimited: bool = False
    host: Annotated[str, Meta(max_length=255, description="Units that this host has; empty: all hosts.")] = ""


@table.put("/limits/{name}", "set_limit", place=OneName, body=LimitChange, role="admin")
async def set_limit(ask: Ask) -> None:
    """Declare or change a limit."""
    change: LimitChange = ask.body
    number = "unlimited" if change.unlimited else change.capacity
    text = ask.path.name + (f":{number}" if number is not None else "")
    if change.window is not None:
        text += f"@{change.window or 'always'}"
    await ask.call(calls.set_limit(text, host=change.host))


@table.get("/learning", "list_learning", answer=list[LearnedGroupView])
async def list_learning(ask: Ask) -> list[LearnedGroupView]:
    """What was learned about every learning group."""
    return await ask.call(calls.learned())


@table.get("/learning/{name}", "show_learning", place=OneName, answer=LearnedGroupView)
async def show_learning(ask: Ask) -> LearnedGroupView:
    """What was learned about one learning group, with what its jobs asked for and used."""
    (found,) = await ask.call(calls.learned(ask.path.name))
    return found


@table.delete("/learning/{name}", "forget_learning", place=OneName, role="admin", status=204)
async def forget_learning(ask: Ask) -> None:
    """Forget what was learned about a learning group."""
    await ask.call(calls.forget_learned(ask.path.name))
