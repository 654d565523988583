"""Replaces the database of a home by a backup. The replaced database is kept.

Attempts that were leased when the backup was made may have ended since. Their leases are marked, so that the next
manager treats them as lost rather than as never executed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import struct
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec

from rota.core.recovery.restored_leases import RESTORED_AT, RESTORED_FROM, RESTORED_LEASES
from rota.core.site.manager_pause import PAUSED, YES
from rota.errors import BadInput, NotFound, RotaError, StoreRefused
from rota.store.base import Found
from rota.store.home.directories import cannot_write, sync_file
from rota.store.sqlite import page_sums
from rota.store.sqlite.backup import BACKED_UP_AT
from rota.store.sqlite.database import (
    APPLICATION_ID,
    DATABASE,
    check_file,
    check_log,
    check_pages,
    check_version,
    deployment_in,
    settle,
)

_DRAFT: Final = f"{DATABASE}.restoring"
_SIDE_FILES: Final = ("-wal", "-shm", "-journal")
_FIRST_TERMINAL: Final = 12


class SqliteRestoring:
    """A `Restoring`: a copy of a backup beside the database of a home, whose lock the caller holds."""

    def __init__(self, home: Path, file: Path) -> None:
        """Check and copy. Raises `BadInput` or `StoreRefused`."""
        self._home = home
        self._draft = home / _DRAFT
        if file.resolve() == (home / DATABASE).resolve():
            raise BadInput(f"{file} is the database itself", hint="give a backup")
        try:
            self._copy(file)
            self.found, self.deployment = self._look(file)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        for suffix in ("", *_SIDE_FILES):
            with contextlib.suppress(OSError):
                os.unlink(f"{self._draft}{suffix}")

    def _copy(self, file: Path) -> None:
        try:
            for suffix in ("", *_SIDE_FILES):  # left by a killed restore
                Path(f"{self._draft}{suffix}").unlink(missing_ok=True)
            handle = os.open(self._draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with file.open("rb") as source, os.fdopen(handle, "wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
        except OSError as error:
            raise cannot_write(self._draft, error) from None

    def _open(self) -> sqlite3.Connection:
        uri = f"file:{quote(str(self._draft))}?mode=rw"
        return sqlite3.connect(uri, uri=True, isolation_level=None)

    def _look(self, file: Path) -> tuple[Found, str]:
        try:
            with closing(self._open()) as draft:
                check_version(draft, file, damaged=_damaged)
                check_pages(draft, file, damaged=_damaged)
                return _found(draft), deployment_in(draft)
        except (sqlite3.Error, ValueError, TypeError) as error:
            raise _damaged(file, error) from None

    def put_in_place(self, *, deployment: str, at: str, pause: bool) -> str | None:
        try:
            with closing(self._open()) as draft:
                made = f"the backup of {self.found.made_at or 'an unknown time'}"
                facts = {"generation": str(self._generation(draft)), "deployment": deployment}
                mark_leases(draft, at=at, origin=made, facts=facts | ({PAUSED: YES} if pause else {}))
        except sqlite3.Error as error:
            raise StoreRefused(f"the backup cannot be prepared: {error}", hint="nothing was changed") from None
        sync_file(self._draft)
        page_sums.forget(self._home)
        kept = str(self._set_aside()) if database_exists(self._home) else None
        self._draft.replace(self._home / DATABASE)
        settle(self._home)
        return kept

    def _generation(self, draft: sqlite3.Connection) -> int:
        """The number of manager starts known to the backup or the replaced database. The numbers are part of seat
        names, and a runner of such a start may still be there."""
        row = draft.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()
        return max(int(row[0]) if row else 0, self._replaced_generation())

    def _replaced_generation(self) -> int:
        path = self._home / DATABASE
        try:
            _check_header(path)  # SQLite would discard the log of a database it cannot read
            # Opened for writing, so that its whole log is checkpointed; failing that, the log is kept.
            whole = self._log_is_whole()
            with closing(
                sqlite3.connect(f"file:{quote(str(path))}?mode={'rw' if whole else 'ro'}", uri=True)
            ) as old:
                row = old.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()
                if whole:
                    old.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                return int(row[0]) if row else 0
        except (RotaError, sqlite3.Error, ValueError):
            return 0  # damaged, which may be why it is being restored

    def _log_is_whole(self) -> bool:
        try:
            check_log(self._home)
        except StoreRefused:
            return False
        return True

    def _set_aside(self) -> Path:
        """Rename the present database, together with its log if that could not be checkpointed."""
        kept = self._home / f"{DATABASE}.before-restore-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
        path = self._home / DATABASE
        for suffix in ("-wal", "-journal"):
            side = self._home / f"{DATABASE}{suffix}"
            if side.exists():
                side.rename(f"{kept}{suffix}")
        (self._home / f"{DATABASE}-shm").unlink(missing_ok=True)
        if path.exists():
            try:
                os.link(path, kept)  # so that there is a database at every moment
            except OSError:
                path.rename(kept)
        return kept


def database_exists(home: Path) -> bool:
    """Is there a database, or the log of one?"""
    return any((home / f"{DATABASE}{suffix}").exists() for suffix in ("", "-wal"))


def check_backup(file: Path) -> None:
    """Refuse a file that cannot be a backup, or that is a database in use. Raises `RotaError`."""
    _check_header(file)
    _check_not_in_use(file)


def _check_header(file: Path) -> None:
    """Refuse a file that cannot be a backup, judging by its first hundred bytes and its size."""
    try:
        size = file.stat().st_size
        if file.is_dir():
            raise BadInput(f"{file} is a directory", hint="give the file that 'rota manager backup' made")
        check_file(file, hint="give the file that 'rota manager backup' made")
        with file.open("rb") as opened:
            header = opened.read(100)
    except FileNotFoundError:
        raise NotFound(f"there is no file {file}", hint="give the file that 'rota manager backup' made") from None
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}", hint="check its permissions") from None
    if not header:
        raise _damaged(file, "it is empty")
    if header[:16] != b"SQLite format 3\0"[: len(header)]:
        raise StoreRefused(f"{file} is not a backup of Rota", hint="give another file", code="foreign")
    if len(header) < 100:
        raise _damaged(file, f"only {len(header)} bytes are left of it")
    if struct.unpack_from(">I", header, 68)[0] != APPLICATION_ID:
        raise StoreRefused(f"{file} belongs to another program", hint="give another file", code="foreign")
    (page,) = struct.unpack_from(">H", header, 16)
    whole = struct.unpack_from(">I", header, 28)[0] * (65536 if page == 1 else page)
    if size < whole:
        raise _damaged(file, f"{size} bytes are left of {whole}")


def _check_not_in_use(file: Path) -> None:
    log = Path(f"{file}-wal")
    try:
        unfinished = log.stat().st_size > 0
    except OSError:
        unfinished = False
    if unfinished:
        raise BadInput(
            f"{file} has a log ({log.name}) beside it: it is a database in use, not a backup",
            hint="make one with 'rota manager backup'",
        )


def _damaged(file: Path, detail: object) -> StoreRefused:
    return StoreRefused(
        f"{file} is damaged ({detail})", hint="restore another backup; nothing was changed", code="damaged"
    )


def _found(draft: sqlite3.Connection) -> Found:
    meta = dict(draft.execute("SELECT key, value FROM meta").fetchall())
    live, total, highest = draft.execute(
        "SELECT count(*) FILTER (WHERE state < ?), count(*), coalesce(max(id), 0) FROM jobs", (_FIRST_TERMINAL,)
    ).fetchone()
    used = draft.execute("SELECT coalesce(max(id), 0) FROM used WHERE kind = 'job'").fetchone()[0]
    leased = [job for (job,) in draft.execute("SELECT job FROM attempts WHERE outcome IS NULL ORDER BY job")]
    return Found(
        made_at=meta.get(BACKED_UP_AT, ""),
        jobs=total,
        waiting=max(0, live - len(leased)),
        leased=leased,
        next_job=max(highest, used) + 1,
        paused=meta.get(PAUSED) == YES,
    )


def mark_leases(
    database: sqlite3.Connection, *, at: str, origin: str, facts: dict[str, str], kind: str = ""
) -> list[int]:
    """Record for the next manager that the leases in this database are stale; returns their jobs. `facts`:
    additional entries for `meta`. `kind`: what it was restored from, if not a backup."""
    leases = database.execute("SELECT job, number FROM attempts WHERE outcome IS NULL ORDER BY job").fetchall()
    meta = {RESTORED_AT: at, RESTORED_FROM: kind, RESTORED_LEASES: msgspec.json.encode(leases).decode(), **facts}
    text = f"from {origin}; what became of this attempt since is unknown"
    now = datetime.now(UTC).timestamp()
    database.execute("PRAGMA journal_mode=WAL").fetchall()
    database.execute("BEGIN IMMEDIATE")
    database.executemany("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", meta.items())
    database.executemany(
        "INSERT INTO events (at, job, attempt, kind, text) VALUES (?, ?, ?, 'restored', ?)",
        [(now, job, number, text) for job, number in leases],
    )
    database.execute("COMMIT")
    return [job for job, _ in leases]
