"""The event stream, health and metrics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from rota.api import metrics
from rota.api.operations import EVENTS, TEXT, Ask, Table, Told
from rota.client import calls
from rota.errors import RotaError

table = Table("events")

#: A manager that takes longer to answer is not well.
_HEALTH_S: Final = 5.0


class EventsQuery(Struct, forbid_unknown_fields=True):
    last: Annotated[str, Meta(max_length=64, description="Instead of the header Last-Event-ID.")] = ""


@table.get("/events", "events", query=EventsQuery, kind=EVENTS)
async def events(ask: Ask) -> AsyncIterator[bytes]:
    """What changes, as server-sent events.

    `change` names the jobs, groups and subjects that changed since the event before; `reset` says that
    something may have been missed, so that everything should be read again.
    """
    services, token = ask.services, ask.credential.token
    seen = ask.headers.get("last-event-id", "") or ask.query.last

    async def told() -> AsyncIterator[bytes]:
        with services.limits.stream(token):
            # The feed is the gateway's own. Who reads it must be somebody, and stay so: the manager hangs up
            # on this connection when the token is removed or expires.
            client = await services.links.connect(token)
            over = asyncio.create_task(client.ended())
            try:
                async for part in services.feed.read(seen, over):
                    yield part
            finally:
                over.cancel()
                await client.close()

    return told()


@table.get("/metrics", "show_metrics", answer=str, kind=TEXT)
async def show_metrics(ask: Ask) -> Told:
    """Figures for Prometheus; also at /metrics."""
    figures = await ask.call(calls.metrics())
    return Told(metrics.text(figures, streams=ask.services.limits.streams), kind=metrics.KIND)


@table.get("/openapi.json", "openapi", answer=dict[str, Any], role="open")
async def openapi(ask: Ask) -> Told:
    """This document."""
    return Told(ask.services.document)


class Health(Struct):
    ok: bool
    manager: bool


@table.get("/healthz", "health", answer=Health, role="open")
async def health(ask: Ask) -> Told:
    """Does the gateway answer, and the manager? Also at /healthz; with status 503 where it does not."""
    try:
        async with asyncio.timeout(_HEALTH_S):
            await ask.services.links.call(ask.services.own_token, calls.ping())
    except (RotaError, TimeoutError):
        return Told(msgspec.json.encode(Health(ok=False, manager=False)), status=503)
    return Told(msgspec.json.encode(Health(ok=True, manager=True)))
