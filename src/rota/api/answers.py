"""Builds HTTP responses: JSON, streams and errors, all with the security headers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import msgspec
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rota.api.guard import HEADERS
from rota.api.operations import Operation, RawAnswer
from rota.api.problems import (
    Ambiguous,
    HeadersTooLarge,
    ManagerAway,
    NotAllowed,
    TooLarge,
    TooMany,
    Unauthorized,
    error_body,
    status_of,
)
from rota.errors import NotDone, RotaError, TimedOut

#: When a client should try again while there is no manager. Only told if nothing was done, which is unknown after
#: a connection was lost.
_MANAGER_AWAY_S: Final = 2


def response(operation: Operation, answer: Any) -> ASGIApp:
    """The response for the result of a handler."""
    if isinstance(answer, RawAnswer):
        kind = answer.kind or operation.kind
        if operation.answer is None:
            return Response(status_code=operation.status, headers=answer.headers)
        return Response(answer.body, answer.status or operation.status, answer.headers, kind)
    if operation.answer is None:
        return Response(status_code=204)
    return Response(msgspec.json.encode(answer), operation.status, media_type=operation.kind)


async def streamed(operation: Operation, parts: AsyncIterator[bytes], *, only_headers: bool) -> ASGIApp:
    """The response for a stream. It waits for the first part, so that an early error still gets an HTTP status."""
    try:
        first = await anext(parts)
    except StopAsyncIteration:
        first = b""
    if only_headers:
        await _close(parts)
        return Response(status_code=operation.status, media_type=operation.kind)
    return _Streamed(operation.kind, first, parts)


def problem(error: RotaError) -> ASGIApp:
    """The response for an error, with `Retry-After` and similar headers."""
    headers = {}
    if isinstance(error, TooMany):
        headers["retry-after"] = str(error.after_s)
    if isinstance(error, NotDone | ManagerAway):
        headers["retry-after"] = str(_MANAGER_AWAY_S)
    if isinstance(error, Unauthorized):
        headers["www-authenticate"] = "Bearer"
    if isinstance(error, NotAllowed):
        headers["allow"] = ", ".join(error.allowed)
    if isinstance(error, Ambiguous | HeadersTooLarge | TimedOut | TooLarge):
        headers["connection"] = "close"  # the rest of the request is not read
    body = msgspec.json.encode(error_body(error))
    return Response(body, status_of(error), headers=headers, media_type="application/json")


class _Streamed:
    """Sends a stream, and closes its source even if the client disconnects."""

    def __init__(self, kind: str, first: bytes, rest: AsyncIterator[bytes]) -> None:
        self._kind, self._first, self._rest = kind, first, rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            sent = StreamingResponse(self._parts(), media_type=self._kind, headers={"x-accel-buffering": "no"})
            await sent(scope, receive, send)
        finally:
            await _close(self._rest)

    async def _parts(self) -> AsyncIterator[bytes]:
        yield self._first
        async for part in self._rest:
            yield part


async def _close(parts: AsyncIterator[bytes]) -> None:
    close = getattr(parts, "aclose", None)
    if close is not None:
        await close()


def guarded(send: Send) -> Callable[[Message], Awaitable[None]]:
    """Wraps `send` to add the security headers, and `no-store` unless caching is set."""

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            if not any(name == b"cache-control" for name, _value in headers):
                headers.append((b"cache-control", b"no-store"))
            message["headers"] = [*headers, *HEADERS]
        await send(message)

    return guarded
