"""The embedded store: one SQLite file, one writer, and a fixed number of statements per commit.

Only the writer's connection writes or checkpoints; readers have connections of their own. Nothing here fetches row
by row: Python's sqlite3 hands over the interpreter lock at every step.
"""

from __future__ import annotations

import errno
import logging
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from rota.core.accounts.accounting import MINUTES_KEPT
from rota.core.changes import Changes
from rota.core.stored import OBSERVATIONS, StoreSnapshot
from rota.errors import Bug, StoreFailed, StoreFull
from rota.store.base import Approve, BackedUp, Progress
from rota.store.home.files import Ballast, prepare_home
from rota.store.past import Places
from rota.store.sqlite import page_sums
from rota.store.sqlite.backup import copy_database
from rota.store.sqlite.batch import Batch, encode
from rota.store.sqlite.database import DATABASE, open_database, settle
from rota.store.sqlite.keys import RUN, Keys
from rota.store.sqlite.observations import Observed, too_many
from rota.store.sqlite.past import SqlitePast
from rota.store.sqlite.snapshot import load
from rota.store.sqlite.statements import statements

log = logging.getLogger("rota.store")

#: Kept free for work already accepted, and reserved as ballast.
RESERVE: Final = 64 << 20
_BYTES_PER_LIVE_JOB: Final = 4096
#: The least time between two attempts to reserve the ballast again.
_REFILL_EVERY_S: Final = 5.0

_FULL: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE})


class SqliteStore(SqlitePast):
    """A `Store` in `home/rota.db`. The caller holds the lock of the home. Opening may raise `StoreRefused`."""

    def __init__(
        self,
        home: Path,
        *,
        clock: Callable[[], float] = time.monotonic,
        reserve: int = RESERVE,
        run: int = RUN,
        approve: Approve = lambda _deployment: None,
    ) -> None:
        """`approve` is called with the database's deployment before anything is changed."""
        self._home = home
        self._clock = clock
        self._reserve = reserve
        self._closed = False
        prepare_home(home)
        self._writer, self._unsettled = open_database(home, approve)
        super().__init__(home / DATABASE, Keys(run=run))
        self._ballast = Ballast(home, size=reserve)
        self._refill_at = float("-inf")
        self._sql = statements()
        self._observed = Observed()
        self._places = Places()
        self._minute = 0  #: in which old ones were removed last

    def load(self) -> StoreSnapshot:
        snapshot = load(self._writer, path=self._home / DATABASE)
        self.keys.load(self._writer)
        self._observed.load(self._writer)
        return snapshot

    def commit(self, changes: Changes) -> None:
        batch = encode(changes)
        if not batch:
            return
        late = self.keys.late(changes.jobs, changes.rekeyed.values())
        if late:
            batch.append(("insert_keys", (msgspec.json.encode(late).decode(),)))
        observed = self._observed.after(changes)
        if excess := too_many(observed):
            batch.append(("cut_observations", (msgspec.json.encode(excess).decode(), OBSERVATIONS)))
        places = self._places.new(changes.ends) if changes.ends else []
        if places:
            batch.append(("insert_ended_in", (msgspec.json.encode(places).decode(),)))
        if changes.minutes and (minute := max(changes.minutes)) != self._minute:
            self._minute = minute
            batch.append(("cut_minutes", (minute - MINUTES_KEPT,)))
        try:
            self._write(batch)
        except StoreFull:
            self._ballast.release()
            self._write(batch)
        self._observed.written(observed)
        self._places.written(places)
        if changes.jobs:
            self.keys.written(changes.jobs)
        if changes.rekeyed:
            self.keys.rekeyed(changes.rekeyed.values())
        if changes.jobs:
            self._write_runs()
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

    def back_up(self, draft: Path, *, target: Path, progress: Progress) -> BackedUp:
        return copy_database(self._home, draft, target=target, in_use=True, progress=progress)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        # The writer goes last: it checkpoints the log and removes it.
        self.close_readers()
        self._writer.close()
        self._write_down()

    def _write_down(self) -> None:
        """Record the page checksums for the next open. They are optional: a full disk is no error."""
        try:
            if not (self._home / f"{DATABASE}-wal").exists():
                page_sums.write(self._home)
        except OSError as error:
            log.warning("the checksums of the database cannot be written: %s", error)

    def _refill(self) -> None:
        self._refill_at = self._clock() + _REFILL_EVERY_S
        self._ballast.fill_in_background()

    def _write(self, batch: Batch) -> None:
        try:
            if self._unsettled:
                settle(self._home)
                self._unsettled = False
            execute, sql = self._writer.execute, self._sql
            execute("BEGIN IMMEDIATE")
            for name, lists in batch:
                execute(sql[name], lists)
            execute("COMMIT")
        except sqlite3.IntegrityError as error:
            self._roll_back()
            raise Bug(f"a batch contradicts the database: {error}") from error
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0)
            self._roll_back()
            if code in _FULL:
                raise _full() from error
            raise _failed(error) from error
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise _full() from error
            raise _failed(error) from error

    def _write_runs(self) -> None:
        """Commits are safe even if this fails; a full disk only postpones it."""
        try:
            self.keys.write_runs(self._writer)
        except sqlite3.Error as error:
            self._roll_back()
            if getattr(error, "sqlite_errorcode", 0) not in _FULL:
                raise _failed(error) from error

    def _roll_back(self) -> None:
        # After some errors SQLite has already rolled back.
        if self._writer.in_transaction:
            try:
                self._writer.execute("ROLLBACK")
            except sqlite3.Error as error:
                raise _failed(error) from error


def _full() -> StoreFull:
    return StoreFull("there is no room on the disk for the database", hint="free some space")


def _failed(error: Exception) -> StoreFailed:
    return StoreFailed(f"the database could not be written: {error}", hint="check the disk")
