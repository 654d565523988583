"""The queries of a `SqliteStore`, from any thread, on read-only connections of its own.

Long answers come as one JSON value: fetching them row by row would compete with the manager's event loop for the
interpreter lock at every row.
"""

from __future__ import annotations

import base64
import sqlite3
from array import array
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec

from rota.core.jobs.command import command_from_text
from rota.core.jobs.job import Parent
from rota.core.output.output_blocks import Output
from rota.core.rows import EventRow, KnownJob, SubmissionRow
from rota.core.stored import StoredAttempt, StoredJob
from rota.errors import NotFound, StoreFailed
from rota.store import json_columns
from rota.store.base import Brief, Clause, Order, StoredOutput
from rota.store.sqlite import ordering
from rota.store.sqlite.clauses import MOST_PARTS, JobsPart, hide_uploads, parts_of
from rota.store.sqlite.keys import Keys
from rota.store.sqlite.snapshot import attempt
from rota.store.sqlite.statements import statements

_IDLE_READERS: Final = 4
_READER_CACHE_KIB: Final = 8 << 10

_NONE: Final[Mapping[int, int]] = {}

_ids = msgspec.json.Decoder(list[int])
_briefs = msgspec.json.Decoder(list[Brief])
#: Characters of a long list decoded at once, while no other thread can run.
_SLICE: Final = 1 << 18
_rows = msgspec.json.Decoder(list[list[Any]])


class SqliteReads:
    """Reads of a database at `path` that a writer has already opened."""

    def __init__(self, path: Path, keys: Keys) -> None:
        self.keys = keys
        self._uri = f"file:{quote(str(path.absolute()))}?mode=ro"
        self._idle: deque[sqlite3.Connection] = deque()
        self._shut = False

    def close_readers(self) -> None:
        """Close idle connections now, and busy ones when they are returned."""
        self._shut = True
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        """A connection inside one read transaction: everything it reads is from one moment."""
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
        except (sqlite3.Error, msgspec.MsgspecError) as error:
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

    def known_keys(self, user: str, keys: list[str]) -> dict[str, KnownJob]:
        with self._reader() as connection:
            at = self.keys.now(connection)
        with self._reader() as connection:
            return self.keys.find(connection, keys, at=at, also=hide_uploads(connection))

    def namesakes(self, keys: list[str]) -> list[Brief]:
        with self._reader() as connection:
            at = self.keys.now(connection)
            older = self.keys.older()
        with self._reader() as connection:
            return self.keys.namesakes(connection, keys, at=at, older=older, also=hide_uploads(connection))

    def briefs(self, ids: list[int]) -> list[Brief]:
        with self._reader() as connection:
            (text,) = connection.execute(statements()["briefs"], (msgspec.json.encode(ids).decode(),)).fetchone()
            return _briefs.decode(text)

    def submission(self, submission: str) -> SubmissionRow | None:
        with self._reader() as connection:
            row = connection.execute(statements()["submission"], (submission,)).fetchone()
        return SubmissionRow(*row) if row else None

    def last_of_input(self, user: str, name: str) -> SubmissionRow | None:
        with self._reader() as connection:
            row = connection.execute(statements()["last_of_input"], (user, name)).fetchone()
        return SubmissionRow(*row) if row else None

    def last_submission(self, user: str) -> SubmissionRow | None:
        with self._reader() as connection:
            row = connection.execute(statements()["last_submission"], (user,)).fetchone()
        return SubmissionRow(*row) if row else None

    def find(self, clauses: list[Clause], *, above: int, limit: int) -> list[int]:
        found: set[int] = set()
        with self._reader() as connection:
            for some in _portions(parts_of(connection, clauses, above=above)):
                found.update(_find(connection, some, limit=limit))
        return sorted(found)[:limit]

    def count(self, clauses: list[Clause], *, search: str = "", named: Collection[int] = ()) -> int:
        with self._reader() as connection:
            part = ordering.searched(_united(connection, clauses), search, named)
            sql = f"SELECT count(*) FROM {part.source} WHERE {part.condition}"
            (n,) = connection.execute(sql, part.params).fetchone()
        return int(n)

    def ordered(
        self,
        clauses: list[Clause],
        order: Order,
        *,
        search: str = "",
        named: Collection[int] = (),
        specs: Mapping[int, int] = _NONE,
        limit: int = -1,
    ) -> array[int]:
        with self._reader() as connection:
            part = _united(connection, clauses)
            if clauses == [Clause()] and not search and limit > 0:
                quick = ordering.among_attempts(part, order, limit=limit)
                if quick is not None:
                    (text,) = connection.execute(quick).fetchone()
                    if len(found := _many_ids(text)) == limit:
                        return found
            sql, params = ordering.statement(
                ordering.searched(part, search, named), order, specs=specs, limit=limit
            )
            (text,) = connection.execute(sql, params).fetchone()
        return _many_ids(text)

    def tally(self, clauses: list[Clause]) -> dict[tuple[str, int], int]:
        with self._reader() as connection:
            part = _united(connection, clauses)
            rows = connection.execute(
                f"SELECT j.in_group, j.state, count(*) FROM {part.source} WHERE {part.condition}"
                " GROUP BY j.in_group, j.state",
                part.params,
            ).fetchall()
            names = {n: group for n, group, _ in connection.execute(statements()["all_groups"])}
        total: dict[tuple[str, int], int] = {}
        for n, state, jobs in rows:
            total[names[n], state] = total.get((names[n], state), 0) + jobs
        return total

    def jobs(self, ids: list[int]) -> list[StoredJob]:
        wanted = msgspec.json.encode(sorted(set(ids))).decode()
        with self._reader() as connection:
            (text,) = connection.execute(statements()["jobs_with_newest"], (wanted,)).fetchone()
            return [_job(row) for row in _rows.decode(text)]

    def attempts(self, job: int) -> list[StoredAttempt]:
        with self._reader() as connection:
            rows = connection.execute(statements()["attempts_of"], (job,)).fetchall()
        return [attempt(row) for row in rows]

    def returned(self, jobs: list[int]) -> dict[int, tuple[int, str]]:
        with self._reader() as connection:
            rows = connection.execute(
                statements()["returned_by"], (msgspec.json.encode(jobs).decode(),)
            ).fetchall()
        return {job: (number, left) for job, number, left in rows}

    def events(self, job: int) -> list[EventRow]:
        with self._reader() as connection:
            rows = connection.execute(statements()["events_of"], (job,)).fetchall()
        return [EventRow(*row) for row in rows]

    def dependents(self, parents: list[Parent]) -> list[int]:
        wanted = msgspec.json.encode(parents).decode()
        with self._reader() as connection:
            (text,) = connection.execute(statements()["dependents"], (wanted,)).fetchone()
            return _ids.decode(text)

    def children(self, parent: Parent, *, limit: int) -> tuple[list[int], int]:
        with self._reader() as connection:
            (text,) = connection.execute(statements()["children"], (parent, limit)).fetchone()
            (total,) = connection.execute(statements()["count_children"], (parent,)).fetchone()
            return _ids.decode(text), int(total)

    def followers(self, parents: list[int]) -> list[int]:
        wanted = msgspec.json.encode(parents).decode()
        with self._reader() as connection:
            (text,) = connection.execute(statements()["followers"], (wanted,)).fetchone()
            return _ids.decode(text)

    def env(self, env_id: int) -> bytes:
        with self._reader() as connection:
            row = connection.execute(statements()["env"], (env_id,)).fetchone()
        if row is None:
            raise NotFound(f"there is no environment {env_id}")
        return base64.b64decode(row[0])

    def segments_in_use(self) -> set[str]:
        with self._reader() as connection:
            return {name for (name,) in connection.execute(statements()["segments"])}

    def outputs(self, *, after: tuple[int, int], limit: int) -> list[StoredOutput]:
        with self._reader() as connection:
            rows = connection.execute(statements()["outputs"], (*after, limit)).fetchall()
        return [
            StoredOutput(
                (job, number),
                Output(segment, offset, out_len, err_len, out_total, err_total, json_columns.kept(kept)),
            )
            for job, number, segment, offset, out_len, err_len, out_total, err_total, kept in rows
        ]

    def pruned(self, segments: Collection[str]) -> set[str]:
        wanted = msgspec.json.encode(sorted(segments)).decode()
        with self._reader() as connection:
            return {name for (name,) in connection.execute(statements()["pruned"], (wanted,))}


def _many_ids(text: str) -> array[int]:
    """A JSON array of ids, however long."""
    ids = array("q")
    start, end = 1, len(text) - 1
    while start < end:
        comma = text.find(",", start + _SLICE)
        stop = comma if comma > 0 else end
        ids.fromlist(_ids.decode(f"[{text[start:stop]}]"))
        start = stop + 1
    return ids


def _portions(parts: Sequence[JobsPart]) -> Iterator[Sequence[JobsPart]]:
    """The parts in portions that fit into one statement."""
    for start in range(0, len(parts), MOST_PARTS):
        yield parts[start : start + MOST_PARTS]


def _find(connection: sqlite3.Connection, parts: Sequence[JobsPart], *, limit: int) -> list[int]:
    pages = " UNION ".join(f"SELECT id FROM ({part.ids()} ORDER BY j.id LIMIT {limit:d})" for part in parts)
    sql = f"SELECT json_group_array(id) FROM (SELECT id FROM ({pages}) ORDER BY id LIMIT {limit:d})"
    (text,) = connection.execute(sql, [value for part in parts for value in part.params]).fetchone()
    return _ids.decode(text)


def _united(connection: sqlite3.Connection, clauses: Sequence[Clause]) -> JobsPart:
    """One part with all jobs that match any clause, each once."""
    parts = parts_of(connection, clauses)
    if len(parts) == 1:
        return parts[0]
    if len(parts) <= MOST_PARTS:
        params = tuple(value for part in parts for value in part.params)
        ids = " UNION ".join(part.ids() for part in parts)
        return JobsPart(f"j.id IN ({ids})" if parts else "false", params)
    found: set[int] = set()
    for some in _portions(parts):
        found.update(_find(connection, some, limit=-1))
    return JobsPart("j.id IN (SELECT value FROM json_each(?))", (msgspec.json.encode(list(found)).decode(),))


def _job(row: list[Any]) -> StoredJob:
    (
        id, key, submission, spec_id, group, user, cmd, state, number, tries, submitted_at, ready_at, due_at,
        ended_at, code, message, parents, floor, input_bytes, array, index, replaced_by,
        pipeline_element, newest,
    ) = row  # fmt: skip
    return StoredJob(
        id, key, submission, spec_id, group, user, command_from_text(cmd), state, number, tries,
        _time(submitted_at) or 0.0, _time(ready_at), _time(due_at), _time(ended_at), code, message,
        json_columns.after(parents), None if newest is None else _newest(newest), json_columns.floor(floor),
        input_bytes, array, index, replaced_by, pipeline_element,
    )  # fmt: skip


def _newest(row: list[Any]) -> StoredAttempt:
    (
        job, number, token, runner, host, leased_at, started_at, pid, seat, outcome, exit_code, signal, code,
        message, ended_at, cpu_s, *others,
    ) = row  # fmt: skip
    return attempt(
        (
            job, number, token, runner, host, _time(leased_at), _time(started_at), pid, seat, outcome, exit_code,
            signal, code, message, _time(ended_at), _time(cpu_s), *others,
        )
    )  # fmt: skip


def _time(text: str) -> float | None:
    return float(text) if text else None
