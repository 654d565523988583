"""Results of calls of functions, from the store."""

from __future__ import annotations

from typing import Final

import msgspec

from rota.core.jobs.command import Call
from rota.core.jobs.job import Job
from rota.core.jobs.outcome import CallError, Returned
from rota.core.states import TERMINAL, State
from rota.core.stored import StoredJob
from rota.core.world import World
from rota.errors import BadInput, NotFound
from rota.store.base import Store
from rota.wire.results import ErrorView, ResultView

#: Bytes in one answer, about, and jobs that are looked for at once.
_MOST_BYTES: Final = 8 << 20
_AT_ONCE: Final = 100
_MOST_JOBS: Final = 10_000

_returned = msgspec.json.Decoder(Returned)


def results(store: Store, world: World, ids: list[int]) -> list[ResultView]:
    """The results of the first of these jobs, as many as fit.

    Raises `NotFound`, or `BadInput` for a job that is no call.
    """
    found: list[ResultView] = []
    size = 0
    for first in range(0, min(len(ids), _MOST_JOBS), _AT_ONCE):
        some = ids[first : first + _AT_ONCE]
        jobs = {job.id: job for job in store.jobs(some)}
        left = store.returned(some)
        for id in some:
            view = _view(id, jobs.get(id), left.get(id), live=world.jobs.get(id))
            size += 200 + len(view.result or "") + (0 if view.error is None else len(view.error.traceback))
            if size > _MOST_BYTES and found:
                return found
            found.append(view)
    return found


def _is_json(text: str) -> bool:
    """Runners are not trusted, and clients get this as it is."""
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return False
    return True


def _view(id: int, job: StoredJob | None, left: tuple[int, str] | None, *, live: Job | None) -> ResultView:
    if job is None:
        raise NotFound(f"there is no job {id}", hint="list them with 'rota jobs'")
    if not isinstance(job.cmd, Call):
        raise BadInput(f"job {id} is no call of a function", hint=f"see what it printed: rota logs {id}")
    state = State(job.state)
    if state not in TERMINAL:
        state = state if live is None or live.state in TERMINAL else live.state
        return ResultView(id, state.label, None, None, job.attempt)
    told = Returned()
    if left is not None and left[0] == job.attempt:
        told = _returned.decode(left[1])
    complete = state is State.COMPLETE
    error = None
    if told.value and not _is_json(told.value):
        complete, told = False, Returned(error=CallError("result", "its runner sent a result that is not JSON"))
    if not complete:
        # A job that was killed after its function had returned has no result all the same.
        code, message = job.reason_code or state.label, job.reason_message or ""
        error = ErrorView(code, message, "")
        if told.error is not None:
            error = ErrorView(told.error.type, told.error.message, told.error.traceback)
    return ResultView(
        id,
        state.label,
        (told.value or None) if complete else None,
        error,
        job.attempt,
        told.typed,
        told.warm,
        told.note,
    )
