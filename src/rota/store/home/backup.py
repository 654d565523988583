"""Backs up the database while a manager writes to it.

SQLite copies it page by page under one read transaction. The copy is therefore one consistent state, commits go on
meanwhile, and the copy never has to start over. (`VACUUM INTO` would rebuild the whole file and report no
progress.) The copy is written under a temporary name, verified and synced, and only then renamed. A killed process
may leave the temporary file, but never a partial backup under the final name.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import quote

from msgspec import Struct

from rota.errors import BadInput, EnvironmentFault, NotFound, RotaError, StoreFull, StoreRefused
from rota.store.home.directories import sync_directory
from rota.store.sqlite.database import (
    DATABASE,
    MARKER,
    check_closed,
    check_file,
    check_log,
    deployment_in,
    is_ours,
)

#: Pages copied per step: about a megabyte. Progress is reported, and the copy can be stopped, between steps.
_PAGES: Final = 256
#: The copy is synced every so many steps, so that the disk never has to flush all of it at once.
_SYNC_EVERY: Final = 64
_TELL_EVERY_S: Final = 0.1
_SIDE_FILES: Final = ("-wal", "-shm", "-journal")
#: When the backup was made, in `meta` of the copy.
BACKED_UP_AT: Final = "backed_up_at"

#: Called with the completed fraction (0 to 1); raises to stop.
Progress = Callable[[float], None]


class Backup(Struct, frozen=True):
    """A finished backup."""

    path: str
    bytes: int
    jobs: int
    generation: int  #: which start of the manager it is from


def nothing_to_tell(_share: float) -> None:
    """Ignores progress."""


def back_up(home: Path, target: str, *, force: bool, in_use: bool, progress: Progress = nothing_to_tell) -> Backup:
    """Copy the database of a home to a new file. Blocks. `in_use`: a manager has it open, and goes on
    writing; otherwise the caller holds the manager's lock.

    Raises what is wrong with `target`, `NotFound` if there is no database, or what `progress` raises; then
    nothing is left behind.
    """
    path = _checked(home, target, force=force)
    source = home / DATABASE
    if not source.exists():
        raise NotFound(f"there is no database in {home}", hint="is ROTA_HOME (or --home) the right one?")
    check_file(source)
    if not in_use:
        check_closed(home)
        check_log(home)
    with _draft_of(path) as draft, _told_plainly(path):
        # Only the manager may checkpoint its log; without a manager it is done here.
        uri = f"file:{quote(str(source))}?mode={'ro' if in_use else 'rw'}"
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as origin:
            origin.execute("BEGIN")  # one state for the copy and for what is said about it
            jobs, generation = _facts(origin)
            _copy(origin, draft, progress)
            origin.execute("ROLLBACK")
        with closing(_alone(draft)) as copy:
            copy.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (BACKED_UP_AT, utc_now()))
            if (verdict := copy.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
                raise StoreRefused(
                    f"the copy of {source} is damaged ({' '.join(str(verdict).split())})",
                    hint="so is the database, or the disk; keep older backups, and run 'rota doctor'",
                    code="damaged",
                )
        size = sync_file(draft)
        progress(1.0)
        give_name(draft, path, force=force)
    return Backup(str(path), size, jobs, generation)


def _checked(home: Path, target: str, *, force: bool) -> Path:
    """The path for the copy, if it may be used. What cannot be known yet is checked later."""
    if not target or "\0" in target or not os.path.isabs(target):
        raise BadInput(f"{target!r} is not an absolute path of a file", hint="give one, like /backups/rota.db")
    path = Path(os.path.normpath(target))
    try:
        inside = path.parent.resolve().is_relative_to(home.resolve())
        if path.is_dir():
            raise BadInput(f"{path} is a directory", hint="give the name of a file in it")
        if not path.parent.is_dir():
            raise BadInput(f"there is no directory {path.parent}", hint="make it first, or choose another")
        exists = os.path.lexists(path)
    except OSError as error:
        raise BadInput(f"{path} cannot be used: {error.strerror}", hint="choose another name") from None
    if inside:
        raise BadInput(f"{home} is the deployment's own directory", hint="choose another one for backups")
    if exists and not path.is_file():
        raise BadInput(f"{path} is not a file", hint="choose another name")
    if exists and not force:
        raise _is_there(path)
    if exists:
        _check_replaceable(path)
    return path


def _check_replaceable(path: Path) -> None:
    """Raises `BadInput` unless the path is free or holds an empty file or a Rota database: a user with the right
    to make backups must not be able to overwrite other files."""
    if path.name == DATABASE and (path.parent / MARKER).exists():
        raise BadInput(f"{path} is the database of a deployment", hint="choose another name")
    try:
        # Do not follow a symbolic link or block on a pipe.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    except OSError as error:
        reason = "it is a link" if error.errno == errno.ELOOP else error.strerror
        raise BadInput(f"{path} is not replaced: {reason}", hint="choose another name") from None
    try:
        regular = stat.S_ISREG(os.fstat(handle).st_mode)
        head = os.pread(handle, 100, 0) if regular else b""
    finally:
        os.close(handle)
    if not regular or (head and not is_ours(head)):
        raise BadInput(
            f"{path} is not a backup of Rota, and is not replaced", hint="choose another name, or remove it first"
        )


def _is_there(path: Path) -> BadInput:
    return BadInput(f"{path} exists already", hint="choose another name, or replace it with --force")


@contextlib.contextmanager
def _draft_of(path: Path) -> Iterator[Path]:
    """A new private file beside `path`; removed at the end unless it was renamed."""
    draft = path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}.partial")
    try:
        os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise cannot_write(path, error) from None
    try:
        yield draft
    finally:
        for suffix in ("", *_SIDE_FILES):
            with contextlib.suppress(OSError):
                os.unlink(f"{draft}{suffix}")


@contextlib.contextmanager
def _told_plainly(path: Path) -> Iterator[None]:
    """Translates errors of the system and of SQLite for people."""
    try:
        yield
    except RotaError:
        raise
    except OSError as error:
        raise cannot_write(path, error) from None
    except sqlite3.Error as error:
        raise _failure(path, error) from None


def cannot_write(path: Path, error: OSError) -> RotaError:
    """Explains a failed write."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreFull(f"there is no room for {path}", hint="free some space, or choose another disk")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return EnvironmentFault(
            f"{path} cannot be written: {error.strerror}",
            hint="choose a directory in which the manager's user may write",
        )
    return EnvironmentFault(f"{path} cannot be written: {error.strerror or error}", hint="choose another place")


def _failure(path: Path, error: sqlite3.Error) -> RotaError:
    full_code = getattr(error, "sqlite_errorcode", 0)
    code = full_code & 0xFF
    if code == sqlite3.SQLITE_FULL or full_code == sqlite3.SQLITE_IOERR_SHMSIZE:
        return StoreFull(f"there is no room for {path}", hint="free some space, or choose another disk")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreRefused(
            f"the database is damaged ({error})", hint="keep it, and restore an older backup", code="damaged"
        )
    return EnvironmentFault(f"{path} could not be written: {error}", hint="check the disk")


def _facts(origin: sqlite3.Connection) -> tuple[int, int]:
    """The number of jobs, without uploads in progress, and the number of the manager's start."""
    (jobs,) = origin.execute(
        "SELECT count(*) - (SELECT count(*) FROM submissions AS s CROSS JOIN jobs AS j WHERE s.answer IS NULL"
        " AND j.id BETWEEN s.low AND s.high AND j.in_submission = s.n) FROM jobs"
    ).fetchone()
    row = origin.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()
    return jobs, int(row[0]) if row else 0


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


def sync_file(path: Path) -> int:
    """Sync a file and return its size."""
    handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.fsync(handle)
        return os.fstat(handle).st_size
    finally:
        os.close(handle)


def give_name(draft: Path, path: Path, *, force: bool) -> None:
    """Rename the finished draft to `path`, durably. Without `force` nothing is ever replaced."""
    if force:
        _check_replaceable(path)  # it may be another file by now
        draft.replace(path)
    else:
        try:
            os.link(draft, path)  # unlike a rename, this fails if the name exists
        except FileExistsError:
            raise _is_there(path) from None
        except OSError:
            if os.path.lexists(path):
                raise _is_there(path) from None
            draft.rename(path)  # a file system without links
        else:
            draft.unlink()
    sync_directory(path.parent)


def utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def default_name(deployment: str) -> str:
    """`rota-DEPLOYMENT-UTCTIME.db`."""
    return f"rota-{deployment or 'unnamed'}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.db"


def deployment_of(home: Path) -> str:
    """The name of the deployment that the database belongs to. The caller holds the manager's lock."""
    path = home / DATABASE
    check_file(path)
    with _told_plainly(path), closing(sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True)) as database:
        return deployment_in(database)
