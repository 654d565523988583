"""Operations of the API: routing, checks and the OpenAPI document all derive from these descriptions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct, field

from rota.api.credentials import Credential
from rota.api.services import Services
from rota.api.validation_errors import validation_error
from rota.client.calls import Call

T = TypeVar("T")

#: Bodies and answers that are not JSON.
TEXT: Final = "text/plain"
EVENTS: Final = "text/event-stream"
BODY_MAX: Final = 1 << 20


class Nothing(Struct, forbid_unknown_fields=True):
    """No parameters, or no body."""


class ApiRequest:
    """One checked request: credential, parameters, body and headers."""

    def __init__(
        self,
        services: Services,
        credential: Credential | None,
        *,
        path: Any,
        query: Any,
        body: Any,
        headers: dict[str, str],
    ) -> None:
        self.services = services
        self._credential = credential
        self.path = path
        self.query = query
        self.body = body
        self.headers = headers

    @property
    def credential(self) -> Credential:
        assert self._credential is not None, "this operation needs no credential"
        return self._credential

    async def call(self, call: Call[T]) -> T:
        """Call the manager with the credential of this request."""
        return await self.services.connections.call(self.credential.token, call)


Handler = Callable[[ApiRequest], Awaitable[Any]]


class RawAnswer:
    """An answer with its own bytes, headers or status, instead of a value to encode."""

    def __init__(
        self, body: bytes, *, headers: dict[str, str] | None = None, kind: str = "", status: int = 0
    ) -> None:
        self.body = body
        self.headers = headers or {}
        self.kind = kind
        self.status = status  #: 0: the operation's


class Operation(Struct, frozen=True, kw_only=True):
    """One method of one path."""

    method: str
    path: str
    handler: Handler
    tag: str
    id: str  #: stable: generated clients name their functions after it
    summary: str
    description: str = ""
    role: str = "user"  #: open, user or admin; the manager has the last word
    place: Any = Nothing  #: parameters in the path
    query: Any = Nothing
    body: Any = None
    answer: Any = None  #: None: nothing, with status 204
    status: int = 200
    kind: str = "application/json"  #: of the answer
    body_max: int = BODY_MAX
    patience_s: float = 60.0  #: from the first byte of the body to the answer, or to the first part of a stream


class OperationTable:
    """The operations of one subject. Their ids are part of the API: a handler may be renamed, its id stays."""

    def __init__(self, tag: str) -> None:
        self._tag = tag
        self.operations: list[Operation] = []

    def get(self, path: str, id: str, **more: Any) -> Callable[[Handler], Handler]:
        return self._add("GET", path, id, more)

    def post(self, path: str, id: str, **more: Any) -> Callable[[Handler], Handler]:
        return self._add("POST", path, id, more)

    def put(self, path: str, id: str, **more: Any) -> Callable[[Handler], Handler]:
        return self._add("PUT", path, id, more)

    def patch(self, path: str, id: str, **more: Any) -> Callable[[Handler], Handler]:
        return self._add("PATCH", path, id, more)

    def delete(self, path: str, id: str, **more: Any) -> Callable[[Handler], Handler]:
        return self._add("DELETE", path, id, more)

    def _add(self, method: str, path: str, id: str, more: dict[str, Any]) -> Callable[[Handler], Handler]:
        def add(handler: Handler) -> Handler:
            if "answer" not in more and more.get("kind") != EVENTS:
                more.setdefault("status", 204)
            summary, _, description = (handler.__doc__ or "").strip().partition("\n\n")
            operation = Operation(
                method=method,
                path=path,
                handler=handler,
                tag=self._tag,
                id=id,
                summary=" ".join(summary.split()).rstrip("."),
                description=" ".join(description.split()),
                **more,
            )
            self.operations.append(operation)
            return handler

        return add


def read(part: str, of: str, values: object, kind: Any) -> Any:
    """Convert texts to the type `kind`. Raises `BadInput` that names the part."""
    try:
        return msgspec.convert(values, type=kind, strict=False)
    except msgspec.ValidationError as error:
        raise validation_error(part, of, error, kind) from None


__all__ = ["EVENTS", "TEXT", "ApiRequest", "Nothing", "Operation", "OperationTable", "field", "read"]
