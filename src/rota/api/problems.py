"""Errors over HTTP: the usual codes, messages and hints, with a status."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from rota.errors import (
    BadInput,
    Bug,
    Denied,
    EnvironmentFault,
    NoManager,
    NotFound,
    RotaError,
    TimedOut,
    UserError,
)


class Problem(Struct):
    """What is wrong, and what to do."""

    code: str
    message: str
    hint: str = ""
    field: str | None = None  #: the field of a job that it is about
    line: int | None = None  #: of the input
    entry: int | None = None  #: of the list of jobs, from 1


class ErrorBody(Struct):
    """The body of every answer that is not a success."""

    error: Problem


class Unauthorized(Denied):
    """The credential is missing, invalid or expired."""

    code = "unauthorized"


class ManagerAway(NoManager):
    """The manager cannot be reached, so nothing was asked of it."""


class TooMany(EnvironmentFault):
    """A limit of this credential or of the gateway is reached."""

    code = "too_many"

    def __init__(self, message: str, *, hint: str = "", after_s: int = 1) -> None:
        super().__init__(message, hint=hint)
        self.after_s = after_s


class TooLarge(BadInput):
    """The body exceeds the limit of the operation."""

    code = "too_large"


class Ambiguous(BadInput):
    """The end of the request is ambiguous, so the rest of the connection is not read."""


class Misdirected(Denied):
    """The Host header names another host."""

    code = "misdirected"


class Foreign(Denied):
    """The request comes from a page of another site."""

    code = "foreign"


class HeadersTooLarge(BadInput):
    code = "headers_too_large"


class NotAllowed(UserError):
    """The path exists, but not with this method."""

    code = "method"

    def __init__(self, message: str, *, allowed: list[str]) -> None:
        super().__init__(message, hint=f"use {' or '.join(allowed)}")
        self.allowed = allowed


_BY_CODE: Final = {
    "unauthorized": 401,
    "misdirected": 421,
    "too_large": 413,
    "headers_too_large": 431,
    "too_many": 429,
    "changed": 409,
    "method": 405,
    "disk_full": 507,
    "timed_out": 504,
}
_BY_CLASS: Final = (
    (NotFound, 404),
    (Denied, 403),
    (TimedOut, 504),
    (UserError, 400),
    (Bug, 500),
    (EnvironmentFault, 503),
)


def status_of(error: RotaError) -> int:
    """The HTTP status for an error."""
    if error.code in _BY_CODE:
        return _BY_CODE[error.code]
    return next((status for kind, status in _BY_CLASS if isinstance(error, kind)), 500)


def error_body(error: RotaError) -> ErrorBody:
    return ErrorBody(
        Problem(
            error.code,
            error.message,
            error.hint,
            field=error.field or None,
            line=error.line or None,
            entry=error.entry or None,
        )
    )
