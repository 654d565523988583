"""The embedded store: one SQLite file, one writer, a commit of a fixed number of statements.

Only the writer's connection writes or checkpoints; readers have connections of their own. Nothing
here steps row by row: Python's sqlite3 hands over the interpreter lock at every step.
"""

from __future__ import annotations

import errno
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from rota.core.changes import Changes
from rota.errors import Bug, StoreFailed, StoreFull
from rota.store.base import Snapshot
from rota.store.files import Ballast, ManagerLock, prepare_home
from rota.store.opening import DATABASE, open_database, settle
from rota.store.snapshot import load
from rota.store.sqlite_reads import SqliteReads
from rota.store.statements import statements

#: Kept free for what was accepted already, and kept aside as ballast.
RESERVE: Final = 64 << 20
_BYTES_PER_LIVE_JOB: Final = 4096
#: The least time between two attempts to set the ballast aside again.
_REFILL_EVERY_S: Final = 5.0

_FULL: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE})

_Row = Sequence[Any]


class SqliteStore(SqliteReads):
    """A `Store` in `home/rota.db`. Opening takes the manager's lock and may raise `StoreRefused`."""

    def __init__(
        self, home: Path, *, clock: Callable[[], float] = time.monotonic, reserve: int = RESERVE
    ) -> None:
        self._home = home
        self._clock = clock
        self._reserve = reserve
        self._closed = False
        prepare_home(home)
        self._lock = ManagerLock(home)
        try:
            self._writer, self._unsettled = open_database(home)
        except BaseException:
            self._lock.release()
            raise
        super().__init__(home / DATABASE)
        self._ballast = Ballast(home, size=reserve)
        self._refill_at = float("-inf")
        self._sql = statements()

    def load(self) -> Snapshot:
        return load(self._writer, path=self._home / DATABASE)

    def commit(self, changes: Changes) -> None:
        batch = _encode(changes)
        if not batch:
            return
        try:
            self._write(batch)
        except StoreFull:
            self._ballast.release()
            self._write(batch)
        if self._refill_at == float("-inf"):
            self._refill()

    def can_accept(self, live_jobs: int) -> bool:
        try:
            free = self._ballast.free_bytes()
        except OSError:
            return False
        if not self._ballast.held and self._clock() >= self._refill_at:
            self._refill()
        return free >= self._reserve + _BYTES_PER_LIVE_JOB * live_jobs

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        # The writer goes last: it brings the log home and removes it.
        self.close_readers()
        self._writer.close()
        self._lock.release()

    def _refill(self) -> None:
        self._refill_at = self._clock() + _REFILL_EVERY_S
        self._ballast.fill_in_background()

    def _write(self, batch: list[tuple[str, str]]) -> None:
        try:
            if self._unsettled:
                settle(self._home)
                self._unsettled = False
            execute, sql = self._writer.execute, self._sql
            execute("BEGIN IMMEDIATE")
            for name, rows in batch:
                execute(sql[name], (rows,) if rows else ())
            execute("COMMIT")
        except sqlite3.IntegrityError as error:
            self._roll_back()
            raise Bug(f"a batch contradicts the database: {error}") from error
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0)
            self._roll_back()
            if code in _FULL:
                raise StoreFull("there is no room on the disk for the database", hint="free some space") from error
            raise StoreFailed(f"the database could not be written: {error}", hint="check the disk") from error
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise StoreFull("there is no room on the disk for the database", hint="free some space") from error
            raise StoreFailed(f"the database could not be written: {error}", hint="check the disk") from error

    def _roll_back(self) -> None:
        # After some errors SQLite has done it already.
        if self._writer.in_transaction:
            try:
                self._writer.execute("ROLLBACK")
            except sqlite3.Error as error:
                raise StoreFailed(f"the database could not be rolled back: {error}", hint="check the disk") from error


def _encode(changes: Changes) -> list[tuple[str, str]]:
    """(statement, its rows as JSON) in the order in which they must run; empty lists left out."""
    jobs = changes.jobs
    spans: dict[str, list[int]] = {}
    pairs: set[tuple[str, str]] = set()
    for row in jobs:
        span = spans.get(row[2])
        if span is None:
            spans[row[2]] = [row[0], row[0]]
        elif row[0] > span[1]:
            span[1] = row[0]
        elif row[0] < span[0]:
            span[0] = row[0]
        pairs.add((row[4], row[5]))
    removed = changes.removed
    lists: list[tuple[str, Iterable[_Row]]] = [
        ("upsert_submissions", changes.submissions),
        ("insert_envs", changes.envs),
        ("insert_specs", changes.specs),
        ("insert_groups", pairs),
        ("widen_submissions", [(name, *span) for name, span in spans.items()]),
        ("insert_jobs", jobs),
        ("upsert_runners", changes.runners),
        ("insert_attempts", changes.attempts),
        ("start_attempts", changes.starts),
        ("end_attempts", changes.ends),
        ("void_attempts", changes.voids),
        ("update_jobs", list(changes.job_states.values())),
        ("insert_events", changes.events),
        ("add_tally", [(group, state, n) for (group, state), n in changes.tally.items()]),
        ("upsert_meta", list(changes.meta.items())),
        ("remove_jobs", removed),
        ("remove_attempts", removed),
        ("remove_events", removed),
    ]
    batch = [(name, _text(rows)) for name, rows in lists if rows]
    if removed:
        batch.insert(len(batch) - 3, ("keep_highest_job", ""))
    return batch


def _text(rows: Iterable[_Row]) -> str:
    text = msgspec.json.encode(rows).decode()
    if "\\u0000" not in text:
        return text
    # SQLite's JSON cuts a text at a NUL: a visible stand-in loses less.
    clean = [[cell.replace("\0", "\ufffd") if isinstance(cell, str) else cell for cell in row] for row in rows]
    return msgspec.json.encode(clean).decode()
