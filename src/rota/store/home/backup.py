"""A copy of the database while it is being written to, and the way back.

The copy is made page by page by SQLite under one read transaction: that is one state of the database, other
commits go on meanwhile, and the copy never has to begin again as it would without the transaction. (`VACUUM
INTO` would sort the whole file anew, and tell nothing until it is done.) It is made under another name, read
through, synced, and only then gets the name that was asked for. A killed process may leave the draft, never
a part under the final name.
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

#: Pages copied at a time: about a megabyte, and then somebody may look at the progress or stop it.
_PAGES: Final = 256
#: The copy is synced every so many steps, so that the disk is never asked for all of it at once.
_SYNC_EVERY: Final = 64
_TELL_EVERY_S: Final = 0.1
_SIDE_FILES: Final = ("-wal", "-shm", "-journal")
#: When the backup was made, in `meta` of the copy.
BACKED_UP_AT: Final = "backed_up_at"

#: Is told how much of the whole (0 to 1) is done; raises to stop.
Progress = Callable[[float], None]


class Backup(Struct, frozen=True):
    """A backup that was made."""

    path: str
    bytes: int
    jobs: int
    generation: int  #: which start of the manager it is from


def nothing_to_tell(_share: float) -> None:
    """Progress nobody looks at."""


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
        # Only the manager may bring its log home; where there is none, somebody has to.
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
    """The place for the copy, if there may be one. What cannot be known yet is found out later."""
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
    """Raises `BadInput` unless there is a database of ours, an empty file or nothing: whoever may ask for a
    backup must not be able to destroy something else with it."""
    if path.name == DATABASE and (path.parent / MARKER).exists():
        raise BadInput(f"{path} is the database of a deployment", hint="choose another name")
    try:
        # A link is not followed, and a pipe not waited for.
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
    """A new private file beside `path`, which is gone at the end unless it got another name."""
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
    """Errors of the system and of SQLite, for a person."""
    try:
        yield
    except RotaError:
        raise
    except OSError as error:
        raise cannot_write(path, error) from None
    except sqlite3.Error as error:
        raise _failure(path, error) from None


def cannot_write(path: Path, error: OSError) -> RotaError:
    """What a failed write means to a person."""
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
    """How many jobs there are, uploads in progress left out, and the start of the manager."""
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
    """A connection to a file that nobody else has, synced by us: it needs no locks, which not every file
    system has, and no shared memory."""
    uri = f"file:{quote(str(draft))}?mode=rw&vfs=unix-none"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None)
    connection.executescript("PRAGMA locking_mode=EXCLUSIVE; PRAGMA synchronous=OFF; PRAGMA cache_size=-4096;")
    return connection


def sync_file(path: Path) -> int:
    """Bring a file to the disk; its size."""
    handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.fsync(handle)
        return os.fstat(handle).st_size
    finally:
        os.close(handle)


def give_name(draft: Path, path: Path, *, force: bool) -> None:
    """Let the finished draft be `path`, durably. Without `force` nothing is ever replaced."""
    if force:
        _check_replaceable(path)  # it may be another file by now
        draft.replace(path)
    else:
        try:
            os.link(draft, path)  # unlike a rename, it fails if somebody was faster
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
    """The name of the deployment whose database this is, for a caller who holds the manager's lock."""
    path = home / DATABASE
    check_file(path)
    with _told_plainly(path), closing(sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True)) as database:
        return deployment_in(database)
