"""Backs up the database while a manager writes to it.

SQLite copies it page by page under one read transaction. The copy is therefore one consistent state, commits go on
meanwhile, and the copy never has to start over. (`VACUUM INTO` would rebuild the whole file and report no
progress.)
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import quote

from rota.errors import EnvironmentFault, NotFound, RotaError, StoreFull, StoreRefused
from rota.store.base import BackedUp, Progress
from rota.store.sqlite.database import DATABASE, check_closed, check_file, check_log

#: Pages copied per step: about a megabyte. Progress is reported, and the copy can be stopped, between steps.
_PAGES: Final = 256
#: The copy is synced every so many steps, so that the disk never has to flush all of it at once.
_SYNC_EVERY: Final = 64
_TELL_EVERY_S: Final = 0.1
#: When the backup was made, in `meta` of the copy.
BACKED_UP_AT: Final = "backed_up_at"


def copy_database(home: Path, draft: Path, *, target: Path, in_use: bool, progress: Progress) -> BackedUp:
    """Copy the database of a home to an empty file, as `Store.back_up` does. `in_use`: a manager has it open, and
    goes on writing; otherwise the caller holds the lock of the home."""
    source = home / DATABASE
    if not source.exists():
        raise NotFound(f"there is no database in {home}", hint="is ROTA_HOME (or --home) the right one?")
    check_file(source)
    if not in_use:
        check_closed(home)
        check_log(home)
    # Only the manager may checkpoint its log; without a manager it is done here.
    uri = f"file:{quote(str(source))}?mode={'ro' if in_use else 'rw'}"
    try:
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as origin:
            origin.execute("BEGIN")  # one state for the copy and for what is said about it
            facts = _facts(origin)
            _copy(origin, draft, progress)
            origin.execute("ROLLBACK")
        with closing(_alone(draft)) as copy:
            made_at = datetime.now(UTC).isoformat(timespec="seconds")
            copy.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (BACKED_UP_AT, made_at))
            if (verdict := copy.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
                raise StoreRefused(
                    f"the copy of {source} is damaged ({' '.join(str(verdict).split())})",
                    hint="so is the database, or the disk; keep older backups, and run 'rota doctor'",
                    code="damaged",
                )
    except sqlite3.Error as error:
        raise failure(target, error) from None
    return facts


def _facts(origin: sqlite3.Connection) -> BackedUp:
    """The number of jobs, without uploads in progress, and the number of the manager's start."""
    (jobs,) = origin.execute(
        "SELECT count(*) - (SELECT count(*) FROM submissions AS s CROSS JOIN jobs AS j WHERE s.answer IS NULL"
        " AND j.id BETWEEN s.low AND s.high AND j.in_submission = s.n) FROM jobs"
    ).fetchone()
    row = origin.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()
    return BackedUp(jobs, int(row[0]) if row else 0)


def _copy(origin: sqlite3.Connection, draft: Path, progress: Progress) -> None:
    told_at, steps = float("-inf"), 0

    def step(_status: int, remaining: int, total: int) -> None:
        nonlocal told_at, steps
        steps += 1
        if steps % _SYNC_EVERY == 0:
            os.fdatasync(handle)
        now = time.monotonic()
        if now - told_at >= _TELL_EVERY_S:
            told_at = now
            progress((total - remaining) / total if total else 0.0)

    handle = os.open(draft, os.O_RDWR | os.O_CLOEXEC)
    try:
        with closing(_alone(draft)) as copy:
            origin.backup(copy, pages=_PAGES, progress=step)
    finally:
        os.close(handle)


def _alone(draft: Path) -> sqlite3.Connection:
    """A connection to a file that only this process uses and syncs itself: it needs no shared memory and no locks,
    which not every file system has."""
    uri = f"file:{quote(str(draft))}?mode=rw&vfs=unix-none"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None)
    connection.executescript("PRAGMA locking_mode=EXCLUSIVE; PRAGMA synchronous=OFF; PRAGMA cache_size=-4096;")
    return connection


def failure(path: Path, error: sqlite3.Error) -> RotaError:
    """Explains an error of SQLite while `path` was written."""
    full_code = getattr(error, "sqlite_errorcode", 0)
    code = full_code & 0xFF
    if code == sqlite3.SQLITE_FULL or full_code == sqlite3.SQLITE_IOERR_SHMSIZE:
        return StoreFull(f"there is no room for {path}", hint="free some space, or choose another disk")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreRefused(
            f"the database is damaged ({error})", hint="keep it, and restore an older backup", code="damaged"
        )
    return EnvironmentFault(f"{path} could not be written: {error}", hint="check the disk")
