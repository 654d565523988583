"""Results of calls of functions: asked for in pages, and as JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from rota.client.calls import Call, job_id
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
    """The result as a Python value."""
    import json  # numbers of any size

    return None if view.result is None else json.loads(view.result)
