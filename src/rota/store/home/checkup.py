"""The checks of `rota doctor` on a database, with or without a running manager. Changes nothing."""

from __future__ import annotations

import contextlib
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

from rota.core.output.output_report import PRUNED
from rota.errors import StoreFailed, StoreRefused
from rota.store.home.directories import MARKER
from rota.store.segments import MESSAGES, check_all
from rota.store.sqlite import page_sums
from rota.store.sqlite.database import (
    DATABASE,
    check_closed,
    check_file,
    check_log,
    check_whole,
    damaged,
    deployment_in,
)
from rota.store.sqlite.keys import RUN, Keys
from rota.store.sqlite.reads import SqliteReads
from rota.store.sqlite.statements import contradictions, migrations

#: Up to this size indexes are also compared with their tables, which takes several times as long.
_THOROUGH_BELOW: Final = 256 << 20
_MOST: Final = 10


def wrong_with_database(home: Path, *, in_use: bool) -> Iterator[str]:
    """One sentence per problem. `in_use`: a manager has the database open."""
    path = home / DATABASE
    if not path.exists():
        if (home / MARKER).exists():
            yield f"{path} is missing"
        return
    try:
        check_file(path)
        check_whole(path)
        if not in_use:
            check_closed(home)
            check_log(home, locked=False)
        with contextlib.closing(_open(home, in_use=in_use)) as database:
            yield from _damage(database, path)
            (version,) = database.execute("PRAGMA user_version").fetchone()
            if version == max(migrations()):  # else it is looked at when a manager has brought it up to date
                yield from _contradictions(database)
    except StoreRefused as error:
        yield error.message
    except (sqlite3.Error, UnicodeDecodeError) as error:
        yield damaged(path, error).message


def is_vouched_for(home: Path) -> bool:
    """Would every changed byte of a closed database be noticed?"""
    return page_sums.is_known(home)


def deployment_of(home: Path, *, in_use: bool) -> str:
    """The deployment the database belongs to; empty: none, or it cannot be read."""
    try:
        check_file(home / DATABASE)
        with contextlib.closing(_open(home, in_use=in_use)) as database:
            return deployment_in(database)
    except (StoreRefused, sqlite3.Error, UnicodeDecodeError):
        return ""


def wrong_with_output(home: Path, *, in_use: bool) -> Iterator[tuple[str, bool]]:
    """One sentence per gap in the kept output, and whether the gap was already known because the output could not
    be kept at all."""
    try:
        check_file(home / DATABASE)
        with contextlib.closing(_open(home, in_use=in_use)) as database:
            if database.execute("PRAGMA user_version").fetchone()[0] != max(migrations()):
                return  # a manager brings it up to date first
    except (StoreRefused, sqlite3.Error, UnicodeDecodeError):
        return  # the check of the database says so
    reads = _Reads(home, in_use=in_use)
    faults: Counter[str] = Counter()
    first: dict[str, tuple[int, int]] = {}
    try:
        for key, missing in check_all(home / "output", reads):
            if missing.code != PRUNED:
                faults[missing.code] += 1
                first.setdefault(missing.code, key)
    except StoreFailed:
        return
    finally:
        reads.close_readers()
    for code, number in faults.items():
        job, attempt = first[code]
        which = f"job {job}, attempt {attempt}" + (f", and of {number - 1} more" if number > 1 else "")
        yield f"output of {which}: {MESSAGES.get(code, code)}", code not in MESSAGES


class _Reads(SqliteReads):
    """Reads a database that may be closed."""

    def __init__(self, home: Path, *, in_use: bool) -> None:
        super().__init__(home / DATABASE, Keys(run=RUN))
        self._uri = _uri(home, in_use=in_use)


def _open(home: Path, *, in_use: bool) -> sqlite3.Connection:
    return sqlite3.connect(_uri(home, in_use=in_use), uri=True, isolation_level=None)


def _uri(home: Path, *, in_use: bool) -> str:
    log = home / f"{DATABASE}-wal"
    # If there is no log, create neither a log nor any other file beside the database.
    closed = not in_use and not (log.exists() and log.stat().st_size)
    # Keep the log's index: it tells what a killed manager had committed.
    crashed = not closed and not in_use and (home / f"{DATABASE}-shm").exists()
    how = "&immutable=1" if closed else "&readonly_shm=1" if crashed else ""
    return f"file:{quote(str(home / DATABASE))}?mode=ro{how}"


def _damage(database: sqlite3.Connection, path: Path) -> Iterator[str]:
    thorough = path.stat().st_size <= _THOROUGH_BELOW
    rows = database.execute(f"PRAGMA {'integrity_check' if thorough else 'quick_check'}({_MOST})").fetchall()
    for (verdict,) in rows:
        if verdict != "ok":
            yield damaged(path, " ".join(str(verdict).split())).message


def _contradictions(database: sqlite3.Connection) -> Iterator[str]:
    database.execute("BEGIN")  # all queries see one moment
    for sentence, question in contradictions().items():
        found = database.execute(f"{question} LIMIT {_MOST + 1}").fetchall()
        if found:
            number = f"over {_MOST}" if len(found) > _MOST else len(found)
            yield sentence.format(found[0][0]) + (f" ({number} of this kind)" if len(found) > 1 else "")
    database.execute("ROLLBACK")
