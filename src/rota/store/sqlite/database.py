"""Opens the database file of a home: creates it, refuses it, or migrates its schema.

A database is created under a temporary name and renamed when complete, so `rota.db` is never half made. A marker
beside it records that it existed, so a lost file is never replaced by an empty one.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import quote

from rota.boot import boot_id
from rota.errors import StoreRefused
from rota.home import Home
from rota.store.base import Approve
from rota.store.home.directories import MARKER, sync_directory
from rota.store.sqlite import log_check, page_sums
from rota.store.sqlite.statements import migrations

#: "Rota" in ASCII, at offset 68 of the file.
APPLICATION_ID: Final = 0x526F7461
DATABASE: Final = "rota.db"

#: After a crash a file up to this size is read completely. Checking a larger one would delay the start by seconds;
#: `load` reads every job's row and refuses damage it meets.
_CHECK_BELOW: Final = 64 << 20

_KINDS: Final[tuple[tuple[Callable[[int], bool], str], ...]] = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (lambda _mode: True, "something else"),
)

_CACHE_KIB: Final = 128 << 10
_CHECKPOINT_PAGES: Final = 8000

#: Makes the error for a damaged file: the right hint depends on what the file is.
Damaged = Callable[[Path, object], StoreRefused]


def is_ours(head: bytes) -> bool:
    """Is this the beginning of a Rota database? The first hundred bytes tell."""
    return head.startswith(b"SQLite format 3\0") and head[68:72] == struct.pack(">I", APPLICATION_ID)


def damaged(path: Path, detail: object) -> StoreRefused:
    """The error for a file that cannot be trusted."""
    return StoreRefused(
        f"{path} is damaged ({detail})",
        hint="keep the file, and restore a backup or run `rota doctor`; nothing was changed",
        code="damaged",
    )


def check_file(path: Path, *, hint: str = "move it away, and restore a backup") -> None:
    """Refuse a database, or a file SQLite would use beside it, that is not a regular file. Nothing is opened: a
    pipe would block, and opening a device may do anything. Raises `StoreRefused`."""
    for each in (path, *(Path(f"{path}{suffix}") for suffix in ("-wal", "-shm", "-journal"))):
        try:
            mode = os.stat(each).st_mode
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StoreRefused(f"{each} cannot be read: {error.strerror}", hint="check its permissions") from None
        if not stat.S_ISREG(mode):
            what = next(word for test, word in _KINDS if test(mode))
            raise StoreRefused(f"{each} is {what}, not a file", hint=hint, code="foreign")


def open_database(home: Path, approve: Approve = lambda _deployment: None) -> tuple[sqlite3.Connection, bool]:
    """The writer's connection, and whether the file is new and not yet known to be on disk.

    `approve` is called with the database's deployment before anything is changed, and may raise.
    """
    path, wal, marker = home / DATABASE, home / f"{DATABASE}-wal", home / MARKER
    check_file(path)
    new = not path.exists()
    if new:
        for witness in (wal, marker):
            if witness.exists():
                raise StoreRefused(
                    f"{path} is missing, but {witness.name} says there was a database",
                    hint=f"put the database back, or remove {witness} to start without any jobs",
                    code="missing",
                )
        _make(home)
    else:
        check_whole(path)
    changed = None if new else _changed(home)
    unclean = not new and wal.exists() and wal.stat().st_size > 0
    if unclean:
        check_log(home)  # first: closing the database checkpoints whatever part of the log SQLite accepts
    connection = _connect(path)
    try:
        if not new:
            check_version(connection, path)
            if unclean:
                _check_after_crash(connection, path)
            _check_length(connection, path, wal)
        approve(deployment_in(connection))
        if changed is not None:
            raise changed  # noqa: TRY301  # now that it is known to be ours
        page_sums.forget(home)
        _migrate(connection)
    except sqlite3.Error as error:
        connection.close()
        raise _refusal(path, error) from None
    except OSError as error:
        connection.close()
        raise StoreRefused(f"{path} cannot be used: {error.strerror}", hint="check the disk") from None
    except BaseException:
        connection.close()
        raise
    return connection, new or not marker.exists()


def deployment_in(connection: sqlite3.Connection) -> str:
    """The deployment the database belongs to; empty: none yet."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'deployment'").fetchone()
    return str(row[0]) if row else ""


def check_whole(path: Path) -> None:
    """Refuse a file that is not a Rota database or is shorter than its header says, without SQLite. Raises
    `StoreRefused`."""
    _check_header(path)
    log = Path(f"{path}-wal")
    if not (log.exists() and log.stat().st_size > 0):
        with path.open("rb") as file:
            header = file.read(32)
        page = struct.unpack_from(">H", header, 16)[0]
        stated = struct.unpack_from(">I", header, 28)[0] * (65536 if page == 1 else page)
        if path.stat().st_size < stated:
            raise damaged(path, f"{path.stat().st_size} bytes are left of {stated}")


def settle(home: Path) -> None:
    """Make the names of new files durable and leave the marker. Called before the first acknowledgement."""
    marker = os.open(home / MARKER, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.write(marker, b"A Rota deployment. Its jobs are in rota.db; if that is lost, restore a backup.\n")
    finally:
        os.close(marker)
    sync_directory(home)


def _connect(path: Path) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10.0)
    except sqlite3.Error as error:
        raise _refusal(path, error) from None
    try:
        connection.executescript(
            f"PRAGMA synchronous=FULL; PRAGMA cache_size=-{_CACHE_KIB};"
            f"PRAGMA wal_autocheckpoint={_CHECKPOINT_PAGES}; PRAGMA trusted_schema=OFF;"
        )
    except sqlite3.Error as error:
        connection.close()
        raise _refusal(path, error) from None
    except UnicodeDecodeError:
        # SQLite's message about a damaged schema quotes it.
        connection.close()
        raise damaged(path, "its schema cannot be read") from None
    return connection


def _refusal(path: Path, error: sqlite3.Error) -> StoreRefused:
    """Explains a failed open."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return damaged(path, error)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreRefused(f"{path} is locked by another program", hint="close what has it open", code="locked")
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_AUTH):
        return StoreRefused(f"{path} cannot be written ({error})", hint="check the permissions of the file")
    if code == sqlite3.SQLITE_FULL:
        return StoreRefused(f"there is no room on the disk of {path}", hint="free some space", code="disk_full")
    return StoreRefused(f"{path} cannot be used ({error})", hint="check the disk, or run `rota doctor`")


def _make(home: Path) -> None:
    """Write a complete new database under a temporary name, then rename it."""
    draft = home / f"{DATABASE}.new"
    try:
        # Left by a killed start: nothing in it was ever acknowledged.
        draft.unlink(missing_ok=True)
        os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise StoreRefused(f"{draft} cannot be made: {error.strerror}", hint="check the directory") from None
    connection = sqlite3.connect(draft, isolation_level=None)
    try:
        # Synced once as a whole below, not statement by statement.
        connection.executescript(
            f"PRAGMA synchronous=OFF; PRAGMA journal_mode=MEMORY; PRAGMA application_id={APPLICATION_ID};"
        )
        _migrate(connection)
        connection.execute("PRAGMA journal_mode=WAL").fetchall()
    except sqlite3.Error as error:
        raise _refusal(draft, error) from None
    finally:
        connection.close()
    try:
        fd = os.open(draft, os.O_RDWR | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
        draft.rename(home / DATABASE)
    except OSError as error:
        raise StoreRefused(f"{home / DATABASE} cannot be made: {error.strerror}", hint="check the disk") from None


def _check_header(path: Path) -> None:
    """Refuse a file that is not a Rota database, judging by its first hundred bytes."""
    try:
        with path.open("rb") as file:
            header = file.read(100)
    except OSError as error:
        raise StoreRefused(
            f"{path} cannot be read: {error.strerror}", hint="check the permissions of the file"
        ) from None
    if len(header) < 100:
        raise damaged(path, f"only {len(header)} bytes are left of it")
    if header[:16] != b"SQLite format 3\0":
        raise StoreRefused(f"{path} is not a database", hint="move that file away, or restore a backup")
    (application,) = struct.unpack_from(">I", header, 68)
    if application != APPLICATION_ID:
        raise StoreRefused(
            f"{path} belongs to another program", hint="set ROTA_HOME to another directory", code="foreign"
        )


def check_version(connection: sqlite3.Connection, path: Path, *, damaged: Damaged = damaged) -> None:
    """Refuse a missing schema, or one newer than ours. Raises `StoreRefused`."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    newest = max(migrations())
    if version > newest:
        raise StoreRefused(
            f"{path} was written by a newer Rota (schema {version}, this one knows {newest})",
            hint="upgrade Rota",
            code="newer",
        )
    if version < 1:
        raise damaged(path, "it has no schema version")


def check_closed(home: Path) -> None:
    """Refuse a database that was changed since it was closed. After a crash there is a log and no checksums, and
    nothing is compared. Raises `StoreRefused`."""
    log = home / f"{DATABASE}-wal"
    try:
        if log.exists() and log.stat().st_size > 0:
            return
        if different := page_sums.difference(home):
            raise damaged(home / DATABASE, different)
    except OSError as error:
        raise StoreRefused(f"{home / DATABASE} cannot be read: {error.strerror}", hint="check the disk") from None


def _changed(home: Path) -> StoreRefused | None:
    try:
        check_closed(home)
    except StoreRefused as error:
        return error
    return None


def check_log(home: Path, *, locked: bool = True) -> None:
    """Refuse a log with committed frames that SQLite would drop. Leaves log and index as they are.

    Call it before opening a closed database for writing: closing checkpoints the frames that SQLite accepts, and
    removes the log. `locked`: no other process can open the database meanwhile, so SQLite may be asked, which is
    quicker. Raises `StoreRefused`.
    """
    path, log, index = home / DATABASE, home / f"{DATABASE}-wal", home / f"{DATABASE}-shm"
    written = Home(home).read_manager_file()
    same_boot = written is not None and bool(written.boot) and written.boot == boot_id()
    try:
        if not log.exists():
            return
        known, valid = log_check.committed(log), None
        if locked:
            with _put_back(index):
                valid = _frames_taken(path, index)
        if lost := log_check.left_out(log, valid=valid, known=known, same_boot=same_boot):
            raise damaged(path, lost)
    except OSError as error:
        raise StoreRefused(f"{log} cannot be read: {error.strerror}", hint="check the disk") from None


@contextlib.contextmanager
def _put_back(index: Path) -> Iterator[None]:
    """Restore the head of a log's index, which tells what was committed: a second check must give the same
    answer."""
    try:
        head = index.read_bytes()[: log_check.INDEX_HEAD]
    except FileNotFoundError:
        yield
        index.unlink(missing_ok=True)
        return
    yield
    with index.open("r+b") as file:
        file.write(head)


def _frames_taken(path: Path, index: Path) -> int | None:
    """The number of frames in the log that SQLite accepts; None: it cannot open the database. Read from the index
    that SQLite builds, after SQLite has closed it. A read-only connection does not checkpoint the log."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as database:
            database.execute("PRAGMA user_version").fetchone()
        return int.from_bytes(index.read_bytes()[16:20], sys.byteorder)
    except (OSError, sqlite3.Error):
        return None


def _check_after_crash(connection: sqlite3.Connection, path: Path) -> None:
    """Checkpoint the log, now known to be sound, and read the whole file where that is quick."""
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    if path.stat().st_size <= _CHECK_BELOW:
        check_pages(connection, path)


def check_pages(connection: sqlite3.Connection, path: Path, *, damaged: Damaged = damaged) -> None:
    """Read the whole file and refuse an inconsistent one. Raises `StoreRefused`."""
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise damaged(path, " ".join(str(verdict).split()))


def _check_length(connection: sqlite3.Connection, path: Path, wal: Path) -> None:
    """Refuse a truncated file: shorter than its page count, with no log to supply the rest."""
    if wal.exists() and wal.stat().st_size > 0:
        return
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (page_size,) = connection.execute("PRAGMA page_size").fetchone()
    size = path.stat().st_size
    if size < pages * page_size:
        raise damaged(path, f"{size} bytes are left of {pages * page_size}")


def _migrate(connection: sqlite3.Connection) -> None:
    """Run the missing migrations, each in one transaction with its version number."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    for number, script in sorted(migrations().items()):
        if number > version:
            connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version={number};\nCOMMIT;")
