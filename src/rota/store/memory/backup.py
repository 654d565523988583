"""Backs up a store in memory to a file, and restores it from one, so that both can be tried without a database."""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from rota.core.recovery.restored_leases import RESTORED_AT, RESTORED_FROM, RESTORED_LEASES
from rota.core.rows import EdgeRow, EnvRow, EventRow, IntentRow, ObservationRow, RunnerRow, SubmissionRow
from rota.core.site.manager_pause import PAUSED, YES
from rota.core.states import TERMINAL
from rota.core.stored import StoredAttempt, StoredJob
from rota.errors import BadInput, NotFound, StoreRefused
from rota.store.base import BackedUp, Found, Progress
from rota.store.memory.sums import StoredSums
from rota.store.memory.tables import MemoryTables

_HEAD: Final = b"Rota store in memory 1\n"
_BACKED_UP_AT: Final = "backed_up_at"


class _File(Struct):
    """The tables, as far as they can be encoded as they are; fields are named like those of the tables."""

    submissions: dict[str, SubmissionRow]
    envs: dict[int, EnvRow]
    specs: dict[int, str]
    jobs: dict[int, StoredJob]
    keys: dict[str, set[int]]
    highest_job: int
    attempts: dict[tuple[int, int], StoredAttempt]
    events: list[EventRow]
    runners: dict[str, RunnerRow]
    tally: dict[tuple[str, int], int]
    meta: dict[str, str]
    pruned: set[str]
    edges: set[EdgeRow]
    children: set[EdgeRow]
    dep_groups: dict[str, int]
    limits: dict[str, str]
    site: dict[tuple[str, str], str]
    observed: int
    intents: dict[str, IntentRow] = {}
    returned: dict[tuple[int, int], str] = {}


#: Learning group → its observations.
_Observations = dict[str, list[tuple[int, ObservationRow]]]


def is_backup(head: bytes) -> bool:
    """Is this the beginning of such a backup?"""
    return head.startswith(_HEAD)


def write_backup(tables: MemoryTables, draft: Path, progress: Progress) -> BackedUp:
    """Write a committed state of the tables to a file, as `Store.back_up` does."""
    tables = tables.copy()
    facts = BackedUp(
        sum(tables.is_visible(job) for job in tables.jobs.values()), int(tables.meta.get("generation", 0))
    )
    progress(0.0)
    tables.meta[_BACKED_UP_AT] = _now()
    same = _File(**{name: getattr(tables, name) for name in _File.__struct_fields__})
    observations: _Observations = {group: list(rows) for group, rows in tables.observations.items()}
    draft.write_bytes(_HEAD + msgspec.msgpack.encode((same, observations, tables.sums.stored())))
    return facts


def _read_backup(file: Path) -> MemoryTables:
    try:
        found, observations, sums = msgspec.msgpack.decode(
            file.read_bytes()[len(_HEAD) :], type=tuple[_File, _Observations, StoredSums]
        )
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StoreRefused(
            f"{file} is damaged ({error})", hint="restore another backup; nothing was changed", code="damaged"
        ) from None
    tables = MemoryTables()
    for name in _File.__struct_fields__:
        setattr(tables, name, getattr(found, name))
    tables.observations = {group: deque(rows) for group, rows in observations.items()}
    tables.sums.restore(sums)
    return tables


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class ClosedMemory:
    """A `ClosedStore` among the named ones of this process."""

    def __init__(self, named: dict[str, MemoryTables], name: str) -> None:
        if not name:
            raise BadInput("a store in memory without a name cannot be opened again", hint="write memory:NAME")
        self._named = named
        self._name = name

    def exists(self) -> bool:
        return self._name in self._named

    def deployment(self) -> str:
        return self._tables().meta.get("deployment", "")

    def back_up(self, draft: Path, *, target: Path, progress: Progress) -> BackedUp:
        return write_backup(self._tables(), draft, progress)

    def check_backup(self, file: Path) -> None:
        try:
            with file.open("rb") as opened:
                head = opened.read(100)
        except FileNotFoundError:
            raise NotFound(
                f"there is no file {file}", hint="give the file that 'rota manager backup' made"
            ) from None
        except OSError as error:
            raise BadInput(f"{file} cannot be read: {error.strerror}", hint="check its permissions") from None
        if not is_backup(head):
            raise StoreRefused(
                f"{file} is not a backup of a store in memory", hint="give another file", code="foreign"
            )

    def restoring(self, file: Path) -> MemoryRestoring:
        return MemoryRestoring(self._named, self._name, _read_backup(file))

    def adopting(self) -> MemoryAdopting:
        return MemoryAdopting(self._tables())

    def _tables(self) -> MemoryTables:
        if not self.exists():
            raise NotFound(f"there is no store in memory named '{self._name}'", hint="open it first")
        return self._named[self._name]


class MemoryRestoring:
    """A `Restoring` of a store in memory."""

    def __init__(self, named: dict[str, MemoryTables], name: str, tables: MemoryTables) -> None:
        self._named = named
        self._name = name
        self._copy = tables
        leases = _leases(tables)
        live = sum(job.state not in TERMINAL for job in tables.jobs.values())
        self.deployment = tables.meta.get("deployment", "")
        self.found = Found(
            made_at=tables.meta.get(_BACKED_UP_AT, ""),
            jobs=len(tables.jobs),
            waiting=max(0, live - len(leases)),
            leased=[job for job, _ in leases],
            next_job=max(tables.highest_job, *tables.jobs, 0) + 1,
            paused=tables.meta.get(PAUSED) == YES,
        )

    def put_in_place(self, *, deployment: str, at: str, pause: bool) -> str | None:
        copy, replaced, kept = self._copy, self._named.get(self._name), None
        generation = int(copy.meta.get("generation", 0))
        if replaced is not None:
            generation = max(generation, int(replaced.meta.get("generation", 0)))
            kept = f"{self._name}.before-restore-{at}"
            self._named[kept] = replaced
        _mark_leases(copy, at=at, origin=f"the backup of {self.found.made_at}")
        copy.meta |= {"generation": str(generation), "deployment": deployment}
        if pause:
            copy.meta[PAUSED] = YES
        self._named[self._name] = copy
        return kept and f"memory:{kept}"

    def close(self) -> None:
        """Does nothing: there is no file to remove."""


class MemoryAdopting:
    """An `Adopting` of a store in memory, whose changes since it was closed nobody can see."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables
        self.deployment = tables.meta.get("deployment", "")

    def check_unchanged(self) -> None:
        """Does nothing."""

    def accept_changes(self) -> None:
        """Does nothing."""

    def make_copy(self, *, deployment: str, at: str, origin: str, kind: str) -> list[int]:
        leased = _mark_leases(self._tables, at=at, origin=origin, kind=kind)
        self._tables.meta["deployment"] = deployment
        return leased

    def close(self) -> None:
        """Does nothing: nothing is open."""


def _leases(tables: MemoryTables) -> list[tuple[int, int]]:
    return sorted(key for key, row in tables.attempts.items() if row.outcome is None)


def _mark_leases(tables: MemoryTables, *, at: str, origin: str, kind: str = "") -> list[int]:
    """Record for the next manager that the leases are stale; returns their jobs."""
    leases = _leases(tables)
    encoded = msgspec.json.encode(leases).decode()
    tables.meta |= {RESTORED_AT: at, RESTORED_FROM: kind, RESTORED_LEASES: encoded}
    text = f"from {origin}; what became of this attempt since is unknown"
    now = datetime.now(UTC).timestamp()
    tables.events += [EventRow(now, job, number, "restored", text) for job, number in leases]
    return [job for job, _number in leases]
