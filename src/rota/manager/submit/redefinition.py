"""Looks up what the engine must know to redefine jobs: who has the new identity keys, and what never started.

Read-only. The engine checks again whatever may have changed since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from rota.core.events import Redefinition
from rota.core.jobs.job import After, Command, Job, Spec
from rota.core.states import WAITING
from rota.core.submit.identity import redefined_keys
from rota.store.base import Store

#: The outcome of attempts that were never executed.
_VOID = "void"


def look_up_redefinition(
    store: Store,
    jobs: Iterable[Job],
    specs: Mapping[int, tuple[int, Spec]],
    *,
    cmd: Command | None,
    after: tuple[After, ...] | None,
) -> Redefinition:
    """What to tell the engine about these jobs; `specs`: old specification id → the new one."""
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
    return Redefinition(cmd=cmd, after=after, unstarted=unstarted, owners=owners)


def _never_executed(store: Store, job: Job) -> bool:
    """Were all leases of a job handed back?"""
    rows = store.attempts(job.id)
    return len(rows) == job.attempt and all(row.outcome == _VOID for row in rows)


def environments(
    numbers: Iterable[int], added: bytes, *, read: Callable[[int], bytes], keep: Callable[[bytes], int]
) -> dict[int, int]:
    """Environment → the number of the one that has these variables (NUL-separated K=V) added or replaced."""
    more = _variables(added)
    found: dict[int, int] = {}
    for number in numbers:
        variables = {**_variables(read(number)), **more}
        found[number] = keep(b"\0".join(b"%b=%b" % item for item in sorted(variables.items())))
    return found


def _variables(blob: bytes) -> dict[bytes, bytes]:
    return {name: value for name, _is, value in (each.partition(b"=") for each in blob.split(b"\0") if each)}
