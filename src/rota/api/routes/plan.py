"""The plan: what runs and will run where and when, and what would become of a job."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct, field

from rota.api.operations import Ask, Table
from rota.client import calls, submission
from rota.wire.views import GanttView, PlanView

table = Table("plan")


class GanttQuery(Struct, forbid_unknown_fields=True, rename={"since": "from", "until": "to"}):
    since: datetime | None = None
    until: datetime | None = None
    limit: Annotated[int, Meta(ge=1, le=100_000)] = 10_000


@table.get("/gantt", query=GanttQuery, answer=GanttView)
async def gantt(ask: Ask) -> GanttView:
    """What runs and what is planned, on which resources."""
    query: GanttQuery = ask.query
    since = query.since.timestamp() if query.since else None
    until = query.until.timestamp() if query.until else None
    return await ask.call(calls.gantt(since=since, until=until, limit=query.limit))


class WhatIf(Struct, forbid_unknown_fields=True):
    job: Annotated[dict[str, Any], Meta(description="Fields as for 'rota add', without a command.")] = field(
        default_factory=dict
    )
    user: Annotated[str, Meta(max_length=64, description="Whose job it would be; empty: yours.")] = ""


@table.post("/plan", body=WhatIf, answer=PlanView)
async def what_if(ask: Ask) -> PlanView:
    """When and where would such a job run? Nothing is submitted."""
    spec = submission.spec_of({"cwd": "/", **ask.body.job})
    return await ask.call(calls.plan(spec, user=ask.body.user))
