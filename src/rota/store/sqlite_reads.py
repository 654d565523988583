"""The questions a `SqliteStore` answers, from any thread, on read-only connections of its own.

Long answers come as one JSON value: fetching them row by row would fight the manager's loop for
the interpreter lock at every row.
"""

from __future__ import annotations

import base64
import sqlite3
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec

from rota.errors import NotFound, StoreFailed
from rota.store.base import Clause, StoredAttempt, StoredEvent, StoredJob, StoredSubmission
from rota.store.clauses import MOST_CLAUSES, Where
from rota.store.snapshot import after, command
from rota.store.statements import statements

_IDLE_READERS: Final = 4
_READER_CACHE_KIB: Final = 8 << 10

_ids = msgspec.json.Decoder(list[int])
_known = msgspec.json.Decoder(list[tuple[str, int, int]])
_tallied = msgspec.json.Decoder(list[tuple[str, int, int]])
_count = msgspec.json.Decoder(list[int])


class SqliteReads:
    """Reads of a database at `path`, which a writer has opened already."""

    def __init__(self, path: Path) -> None:
        self._uri = f"file:{quote(str(path.absolute()))}?mode=ro"
        self._idle: deque[sqlite3.Connection] = deque()
        self._shut = False

    def close_readers(self) -> None:
        """Close idle connections now, and those in use when they are given back."""
        self._shut = True
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        """A connection inside one read transaction: all it reads is of one moment."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect()
        keep = False
        try:
            connection.execute("BEGIN")
            yield connection
            connection.execute("ROLLBACK")
            keep = True
        except sqlite3.Error as error:
            raise StoreFailed(f"the database could not be read: {error}", hint="check the disk") from error
        finally:
            if keep and not self._shut and len(self._idle) < _IDLE_READERS:
                self._idle.append(connection)
            else:
                connection.close()

    def _connect(self) -> sqlite3.Connection:
        if self._shut:
            raise StoreFailed("the store is closed")
        connection = sqlite3.connect(self._uri, uri=True, isolation_level=None, check_same_thread=False)
        connection.executescript(f"PRAGMA query_only=ON; PRAGMA cache_size=-{_READER_CACHE_KIB};")
        return connection

    def known_keys(self, user: str, keys: list[str]) -> dict[str, tuple[int, int]]:
        with self._reader() as connection:
            hidden = _hidden(connection)
            (text,) = connection.execute(
                "SELECT json_group_array(json_array(key, id, state)) FROM ("
                " SELECT j.key, max(j.id) AS id, j.state FROM json_each(?) AS k CROSS JOIN jobs AS j"
                " WHERE substr(j.key, -8) = substr(k.value, -8) AND j.key = k.value"
                f"{_hide(hidden)} GROUP BY j.key)",
                (msgspec.json.encode(keys).decode(),),
            ).fetchone()
        return {key: (n, state) for key, n, state in _known.decode(text)}

    def submission(self, submission: str) -> StoredSubmission | None:
        with self._reader() as connection:
            row = connection.execute(statements()["submission"], (submission,)).fetchone()
        return StoredSubmission(*row) if row else None

    def last_submission(self, user: str) -> StoredSubmission | None:
        with self._reader() as connection:
            row = connection.execute(statements()["last_submission"], (user,)).fetchone()
        return StoredSubmission(*row) if row else None

    def find(self, clauses: list[Clause], *, above: int, limit: int) -> list[int]:
        found: set[int] = set()
        with self._reader() as connection:
            hidden = _hidden(connection)
            for some in _portions(clauses):
                where = Where(some, hidden=hidden, above=above, limit=limit)
                (text,) = connection.execute(
                    f"SELECT json_group_array(id) FROM (SELECT id FROM ({where.sql}) ORDER BY id LIMIT ?)",
                    (*where.params, limit),
                ).fetchone()
                found.update(_ids.decode(text))
        return sorted(found)[:limit]

    def count(self, clauses: list[Clause]) -> int:
        return sum(self.tally(clauses).values())

    def tally(self, clauses: list[Clause]) -> dict[tuple[str, int], int]:
        with self._reader() as connection:
            where = self._where(connection, clauses)
            if not where.parts:
                return {}
            (text,) = connection.execute(
                "SELECT json_group_array(json_array(grp, state, n)) FROM ("
                " SELECT g.grp AS grp, c.state AS state, c.n AS n FROM ("
                "  SELECT in_group, state, count(*) AS n FROM jobs WHERE id IN"
                f" ({where.sql}) GROUP BY in_group, state) AS c JOIN groups AS g ON g.n = c.in_group)",
                where.params,
            ).fetchone()
        total: dict[tuple[str, int], int] = {}
        for group, state, n in _tallied.decode(text):
            total[group, state] = total.get((group, state), 0) + n
        return total

    def _where(self, connection: sqlite3.Connection, clauses: Sequence[Clause]) -> Where:
        hidden = _hidden(connection)
        where = Where(clauses, hidden=hidden)
        if len(where.parts) <= MOST_CLAUSES:
            return where
        ids: set[int] = set()
        for some in _portions(clauses):
            part = Where(some, hidden=hidden)
            (text,) = connection.execute(f"SELECT json_group_array(id) FROM ({part.sql})", part.params).fetchone()
            ids.update(_ids.decode(text))
        return Where([Clause(low=n, high=n) for n in ids], hidden=())

    def jobs(self, ids: list[int]) -> list[StoredJob]:
        wanted = msgspec.json.encode(sorted(set(ids))).decode()
        with self._reader() as connection:
            rows = connection.execute(
                "SELECT j.id, j.key, s.id, j.spec, g.grp, g.user, j.cmd, j.state, j.attempt, j.tries,"
                " j.submitted_at, j.ready_at, j.due_at, j.ended_at, j.reason_code, j.reason_message, j.after, a.*"
                " FROM json_each(?) AS w CROSS JOIN jobs AS j ON j.id = w.value"
                " CROSS JOIN submissions AS s ON s.n = j.in_submission CROSS JOIN groups AS g ON g.n = j.in_group"
                " LEFT JOIN attempts AS a ON a.job = j.id AND a.number = j.attempt"
                " WHERE s.answer IS NOT NULL ORDER BY j.id",
                (wanted,),
            ).fetchall()
        return [_job(row) for row in rows]

    def attempts(self, job: int) -> list[StoredAttempt]:
        with self._reader() as connection:
            rows = connection.execute(statements()["attempts_of"], (job,)).fetchall()
        return [StoredAttempt(*row) for row in rows]

    def events(self, job: int) -> list[StoredEvent]:
        with self._reader() as connection:
            rows = connection.execute(statements()["events_of"], (job,)).fetchall()
        return [StoredEvent(*row) for row in rows]

    def env(self, env_id: int) -> bytes:
        with self._reader() as connection:
            row = connection.execute(statements()["env"], (env_id,)).fetchone()
        if row is None:
            raise NotFound(f"there is no environment {env_id}")
        return base64.b64decode(row[0])

    def segments_in_use(self) -> set[str]:
        with self._reader() as connection:
            return {name for (name,) in connection.execute(statements()["segments"])}


def _hidden(connection: sqlite3.Connection) -> list[int]:
    """Submissions that are still being uploaded: their jobs are not to be seen yet."""
    return [n for (n,) in connection.execute(statements()["open_submissions"])]


def _hide(hidden: Sequence[int]) -> str:
    return f" AND j.in_submission NOT IN ({','.join(map(str, hidden))})" if hidden else ""


def _portions(clauses: Sequence[Clause]) -> Iterator[Sequence[Clause]]:
    """The clauses in portions that fit into one statement."""
    for start in range(0, len(clauses), MOST_CLAUSES):
        yield clauses[start : start + MOST_CLAUSES]


def _job(row: Sequence[object]) -> StoredJob:
    head, parents, attempt = list(row[:16]), row[16], row[17:]
    head[6] = command(str(head[6]))
    newest = StoredAttempt(*attempt) if attempt[0] is not None else None  # type: ignore[arg-type]
    return StoredJob(*head, after(parents), newest)  # type: ignore[arg-type]
