"""Errors as HTTP tells them: the same codes, messages and hints as everywhere, with a status."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from rota.errors import BadInput, Bug, Denied, EnvironmentFault, NotFound, RotaError, TimedOut, UserError


class Problem(Struct):
    """What is wrong, and what to do."""

    code: str
    message: str
    hint: str = ""


class ErrorBody(Struct):
    """The body of every answer that is not a success."""

    error: Problem


class Unauthorized(Denied):
    """No credential was given, or one that is not (or no longer) valid."""

    code = "unauthorized"


class TooMany(EnvironmentFault):
    """More than this credential, or this gateway, may have at once."""

    code = "too_many"

    def __init__(self, message: str, *, hint: str = "", after_s: int = 1) -> None:
        super().__init__(message, hint=hint)
        self.after_s = after_s


class TooLarge(BadInput):
    """The body is larger than this operation takes."""

    code = "too_large"


class Ambiguous(BadInput):
    """Where the request ends can be understood in two ways; what follows it on the connection is not read."""


class Misdirected(Denied):
    """The request names a host that is not ours."""

    code = "misdirected"


class Foreign(Denied):
    """A page of another site asks."""

    code = "foreign"


class HeadersTooLarge(BadInput):
    code = "headers_too_large"


class NotAllowed(UserError):
    """There is something at this path, but not with this method."""

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
    return ErrorBody(Problem(error.code, error.message, error.hint))
