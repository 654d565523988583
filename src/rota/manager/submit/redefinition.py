"""Looks up what the engine must know to redefine jobs: who has the new identity keys, and what never started.

Read-only. The engine checks again whatever may have changed since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from rota.core.events import Redefinition
from rota.core.fields.values import MAX_ENVIRONMENT
from rota.core.jobs.command import Command
from rota.core.jobs.job import After, Condition, Job, Spec
from rota.core.states import TERMINAL, WAITING
from rota.core.submit.identity import redefined_keys
from rota.errors import BadInput
from rota.manager.submit.intake import check_after
from rota.manager.submit.lookups import command_keys, find_commanded, find_elements, parents_of
from rota.store.base import Store
from rota.wire import messages as m

#: Fields that make another job of a job.
REDEFINING: Final = frozenset({"cmd", "cwd", "env", "after"})
#: The outcome of attempts that were never executed.
_VOID: Final = "void"


def look_up_redefinition(
    store: Store,
    jobs: Iterable[Job],
    specs: Mapping[int, tuple[int, Spec]],
    *,
    cmd: Command | None,
    after: tuple[After, ...] | None,
    load: Callable[[list[int]], dict[int, Job]],
) -> Redefinition:
    """What to tell the engine about these jobs; `specs`: old specification id → the new one. `load` reads jobs."""
    waiting = [job for job in jobs if job.state in WAITING and job.spec_id in specs]
    keys = redefined_keys(((job, specs[job.spec_id][1]) for job in waiting), cmd)
    wanted: dict[str, list[str]] = {}  # by user
    for job in waiting:
        if keys[job.id] != job.key:
            wanted.setdefault(job.spec.user, []).append(keys[job.id])
    owners: dict[str, int] = {}
    for user, of_user in wanted.items():
        known = store.known_keys(user, of_user)
        owners |= {key: known[key][0] if key in known else 0 for key in of_user}
    unstarted = {job.id: job.attempt for job in waiting if job.attempt and _never_executed(store, job)}
    ended = {} if after is None else _ended_followers(store, [job.id for job in waiting], load)
    return Redefinition(cmd=cmd, after=after, unstarted=unstarted, owners=owners, ended=ended)


def _ended_followers(store: Store, jobs: list[int], load: Callable[[list[int]], dict[int, Job]]) -> dict[int, Job]:
    """Ended jobs that wait for these, directly or not: a retry would make them wait again."""
    found: set[int] = set()
    pending = jobs
    while pending:
        pending = [id for id in store.followers(pending) if id not in found]
        found.update(pending)
    return {id: job for id, job in load(sorted(found)).items() if job.state in TERMINAL}


def _never_executed(store: Store, job: Job) -> bool:
    """Were all leases of a job handed back?"""
    rows = store.attempts(job.id)
    return len(rows) == job.attempt and all(row.outcome == _VOID for row in rows)


def find_parents(store: Store, after: Iterable[m.NewAfter], *, user: str) -> tuple[After, ...]:
    """The jobs and groups that dependencies mean. Raises `BadInput` or `NotFound`."""
    after = list(after)
    for each in after:
        if each.local:
            raise BadInput("a job that exists has no lines", field="after", hint="name the job by its id")
        check_after(each)
    arrays = find_elements(store, after, _no_line)
    keys = command_keys(after, user)
    known = store.known_keys(user, list(keys.values()))
    commanded = find_commanded(after, keys, {key: job for key, (job, _state) in known.items()}, _no_line)
    return tuple(
        After(parent, Condition(each.condition))
        for each in after
        for parent in parents_of(each, arrays, commanded)
    )


def _no_line(_each: m.NewAfter) -> int:
    """Dependencies of a request are on no line of an input."""
    return 0


def with_variables(blob: bytes, added: bytes) -> bytes:
    """An environment with these variables added or replaced; both are NUL-separated K=V. Raises `BadInput`."""
    found = b"\0".join(b"%b=%b" % item for item in sorted({**_variables(blob), **_variables(added)}.items()))
    if len(found) > MAX_ENVIRONMENT:
        raise BadInput("the environment is too large", hint=f"keep it under {MAX_ENVIRONMENT >> 20} MiB")
    return found


def _variables(blob: bytes) -> dict[bytes, bytes]:
    return {name: value for name, _is, value in (each.partition(b"=") for each in blob.split(b"\0") if each)}
