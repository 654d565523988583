"""The queries of a `SqliteStore` about ended attempts: see `store.base`."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import msgspec

from rota.store import json_columns
from rota.store.past import PastAttempt, PastSum, hours_of, hours_of_ends, id_ranges
from rota.store.sqlite.statements import statements
from rota.store.sqlite.sums import SqliteSums

_ids = msgspec.json.Decoder(list[int])
_rows = msgspec.json.Decoder(
    list[tuple[int, int, str, str, str, str, int, str, str | None, str | None, str | None]]
)
_hosts = msgspec.json.Decoder(tuple[int, set[str]])
_sums = msgspec.json.Decoder(list[PastSum])
#: Ids visited by one statement: what it sorts fits into a reader's cache.
_PORTION: Final = 1 << 16
#: Attempts decoded at once, while no other thread can run.
_PAGE: Final = 1000
#: Portions read in parallel: SQLite works without the interpreter lock.
_THREADS: Final = 2


class SqlitePast(SqliteSums):
    """Reads of ended attempts."""

    def past_hosts(self, *, since: float, until: float, limit: int) -> tuple[int, set[str]]:
        with self._reader() as connection:
            ranges = _text(_ranges(connection, hours_of(since, until)))
            (text,) = connection.execute(statements()["past_hosts"], (since, until, ranges, limit)).fetchone()
        return _hosts.decode(text)

    def past(self, *, since: float, until: float, limit: int) -> list[PastAttempt]:
        found: list[PastAttempt] = []
        job = number = 0
        with self._reader() as connection:
            ranges = _text(_ranges(connection, hours_of(since, until)))
            while wanted := min(limit - len(found), _PAGE):
                question = (since, until, ranges, wanted, job, number)
                (text,) = connection.execute(statements()["past"], question).fetchone()
                page = [_attempt(*row) for row in _rows.decode(text)]
                found += page
                if len(page) < wanted:
                    break
                job, number = page[-1].job, page[-1].number
        return found

    def past_sums(self, *, since: float, until: float, slices: int) -> list[PastSum]:
        with self._reader() as connection:
            ranges = _ranges(connection, hours_of(since, until))
        portions = [
            (start, min(high, start + _PORTION - 1))
            for low, high in ranges
            for start in range(low, high + 1, _PORTION)
        ]

        def read(portion: tuple[int, int]) -> list[PastSum]:
            with self._reader() as connection:
                (text,) = connection.execute(
                    statements()["past_sums"], (since, until, slices, *portion)
                ).fetchone()
            return _sums.decode(text)

        if len(portions) < _THREADS:
            return [row for portion in portions for row in read(portion)]
        # Each attempt is in exactly one portion, so the portions may come from different moments.
        with ThreadPoolExecutor(_THREADS, "rota-past") as threads:
            return [row for found in threads.map(read, portions) for row in found]

    def ended_between(self, *, since: float, until: float) -> int:
        with self._reader() as connection:
            ranges = _text(_ranges(connection, hours_of_ends(since, until)))
            (n,) = connection.execute(statements()["ended_between"], (since, until, ranges)).fetchone()
        return int(n)


def _attempt(
    job: int, number: int, host: str, started_at: str, ended_at: str, outcome: str, spec: int, group: str,
    size: str | None, given: str | None, pipeline_element: str | None,
) -> PastAttempt:  # fmt: skip
    return PastAttempt(
        job, number, host, float(started_at), float(ended_at), outcome, spec, group, json_columns.size(size),
        json_columns.given(given), pipeline_element,
    )  # fmt: skip


def _ranges(connection: sqlite3.Connection, hours: list[tuple[int, int, int]]) -> list[tuple[int, int]]:
    (text,) = connection.execute(statements()["blocks_of_hours"], (_text(hours),)).fetchone()
    return id_ranges(_ids.decode(text))


def _text(value: Sequence[tuple[int, ...]]) -> str:
    return msgspec.json.encode(value).decode()
