"""Results of calls of functions: asked for in pages, and as JSON."""

from __future__ import annotations

import builtins
from typing import Any

import msgspec

from rota.client.calls import Call, job_id
from rota.errors import CallFailed
from rota.wire.results import ErrorView, GetResults, ResultView


class _AsJson(msgspec.Struct):
    id: int
    state: str
    result: msgspec.Raw
    error: ErrorView | None


def results(jobs: list[int]) -> Call[list[ResultView]]:
    """Of the first of these jobs, as many as fit an answer."""
    ids = [job_id(job) for job in jobs]
    return Call(lambda n: GetResults(n, ids), list[ResultView])


def as_json(view: ResultView) -> bytes:
    """The object behind `--json` and the HTTP API; the result is in it as the function returned it."""
    result = msgspec.Raw(b"null" if view.result is None else view.result.encode())
    return msgspec.json.encode(_AsJson(view.id, view.state, result, view.error))


def value_of(view: ResultView) -> Any:
    """The result as a Python value. For a call that failed it raises: an exception of the builtin type that the
    function raised, caused by a `CallFailed` with the traceback; else the `CallFailed`."""
    if view.error is not None:
        raise failure(view.id, view.error)
    import json  # numbers of any size

    return None if view.result is None else json.loads(view.result)


def failure(job: int, error: ErrorView) -> Exception:
    """The exception to raise for a call that failed."""
    what = f"{error.type}: {error.message}" if error.message else error.type
    failed = CallFailed(
        f"the call failed (job {job}): {what}", job=job, type=error.type, traceback=error.traceback
    )
    kind = getattr(builtins, error.type, None)
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        return failed
    try:
        own: Exception = kind(error.message)
    except Exception:  # it wants other arguments than a message
        return failed
    own.__cause__ = failed
    return own
