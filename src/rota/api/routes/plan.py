"""The plan: running and planned jobs on their resources, and predictions for new jobs."""

from __future__ import annotations

import time
from typing import Annotated, Any

from msgspec import Meta, Struct, field

from rota.api.operations import ApiRequest, OperationTable
from rota.client import calls, submission
from rota.core.fields.moments import parse_moment
from rota.errors import BadInput
from rota.time_zones import local_seconds
from rota.wire.gantt import GanttView
from rota.wire.views import PlanView

table = OperationTable("plan")


_WHEN = "A time like 2026-11-16T08:00:00Z, or relative to now: -15m, -2d, now+1h."


def _moment(field: str, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        # An unencoded plus arrives as a space.
        return parse_moment(text.replace(" ", "+"), now=time.time(), local=local_seconds)
    except BadInput as error:
        raise error.at(field=field, label=f"'{field}'") from None


class GanttQuery(Struct, forbid_unknown_fields=True, rename={"since": "from", "until": "to"}):
    since: Annotated[str | None, Meta(description=_WHEN)] = None
    until: Annotated[str | None, Meta(description=_WHEN)] = None
    limit: Annotated[int, Meta(ge=1, le=100_000)] = 10_000


@table.get("/gantt", "gantt", query=GanttQuery, answer=GanttView)
async def gantt(request: ApiRequest) -> GanttView:
    """Past, running and planned jobs on their resources. Without `from` the past is left out; if more attempts
    ended than `limit`, they are merged into time slices."""
    query: GanttQuery = request.query
    since, until = _moment("from", query.since), _moment("to", query.until)
    return await request.call(calls.gantt(since=since, until=until, limit=query.limit))


class WhatIf(Struct, forbid_unknown_fields=True):
    job: Annotated[dict[str, Any], Meta(description="Fields as for 'rota add', without a command.")] = field(
        default_factory=dict
    )
    user: Annotated[str, Meta(max_length=64, description="Whose job it would be; empty: yours.")] = ""


@table.post("/plan", "what_if", body=WhatIf, answer=PlanView)
async def what_if(request: ApiRequest) -> PlanView:
    """When and where would such a job run? Nothing is submitted."""
    spec = submission.spec_of({"cwd": "/", **request.body.job})
    return await request.call(calls.plan(spec, user=request.body.user))
