"""The event stream, health and metrics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from rota.api import metrics
from rota.api.operations import EVENTS, TEXT, ApiRequest, OperationTable, RawAnswer
from rota.client import calls
from rota.errors import RotaError

table = OperationTable("events")

#: A manager that takes longer to answer is considered unhealthy.
_HEALTH_S: Final = 5.0


class EventsQuery(Struct, forbid_unknown_fields=True):
    last: Annotated[str, Meta(max_length=64, description="Instead of the header Last-Event-ID.")] = ""


@table.get("/events", "events", query=EventsQuery, kind=EVENTS)
async def events(request: ApiRequest) -> AsyncIterator[bytes]:
    """Changes, as server-sent events.

    `change` names the jobs, groups and subjects that changed since the previous event; `reset` says that events
    may have been missed, so everything should be read again.
    """
    services, token = request.services, request.credential.token
    seen = request.headers.get("last-event-id", "") or request.query.last

    async def told() -> AsyncIterator[bytes]:
        with services.limits.stream(token):
            # The feed runs with the gateway's own credential. The reader needs a valid one at all times: the
            # manager closes this connection when the token is removed or expires.
            client = await services.connections.connect(token)
            over = asyncio.create_task(client.ended())
            try:
                async for part in services.feed.read(seen, over):
                    yield part
            finally:
                over.cancel()
                await client.close()

    return told()


@table.get("/metrics", "show_metrics", answer=str, kind=TEXT)
async def show_metrics(request: ApiRequest) -> RawAnswer:
    """Metrics for Prometheus; also at /metrics."""
    figures = await request.call(calls.metrics())
    return RawAnswer(metrics.text(figures, streams=request.services.limits.streams), kind=metrics.KIND)


@table.get("/openapi.json", "openapi", answer=dict[str, Any], role="open")
async def openapi(request: ApiRequest) -> RawAnswer:
    """The OpenAPI document."""
    return RawAnswer(request.services.document)


class Health(Struct):
    ok: bool
    manager: bool


@table.get("/healthz", "health", answer=Health, role="open")
async def health(request: ApiRequest) -> RawAnswer:
    """Do the gateway and the manager answer? Also at /healthz; status 503 if not."""
    try:
        async with asyncio.timeout(_HEALTH_S):
            await request.services.connections.call(request.services.own_token, calls.ping())
    except (RotaError, TimeoutError):
        return RawAnswer(msgspec.json.encode(Health(ok=False, manager=False)), status=503)
    return RawAnswer(msgspec.json.encode(Health(ok=True, manager=True)))
