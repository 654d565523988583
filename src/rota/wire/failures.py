"""Errors in messages: an error and the `Failure` that tells a client of it, with its place."""

from __future__ import annotations

from rota.errors import RotaError, from_code
from rota.wire.greeting import Failure


def failure_of(n: int, error: RotaError) -> Failure:
    """The refusal of request `n`. Clients of earlier releases read only its message."""
    message = error.message
    if not (error.field or error.line):
        return Failure(n, error.code, message, error.hint)
    # The name of an input is the client's to add; here it can only be that of a job.
    text, labelled = (message, False) if error.source else (error.text, bool(error.label))
    return Failure(n, error.code, message, error.hint, error.field, error.line, text, labelled)


def error_of(failure: Failure) -> RotaError:
    """The error that the other side met."""
    if not failure.text:
        return from_code(failure.code, failure.message, hint=failure.hint)
    error = from_code(failure.code, failure.text, hint=failure.hint).at(line=failure.line)
    return error.at(field=failure.field) if failure.labelled else error.about(failure.field)
