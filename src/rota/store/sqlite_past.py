"""The questions about attempts that have ended which a `SqliteStore` answers: see `store.base`."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import msgspec

from rota.store import columns
from rota.store.past import PastAttempt, PastSum, hours_of, id_ranges
from rota.store.sqlite_sums import SqliteSums
from rota.store.statements import statements

_ids = msgspec.json.Decoder(list[int])
_rows = msgspec.json.Decoder(list[tuple[int, int, str, str, str, str, int, str, str | None, str | None]])
_sums = msgspec.json.Decoder(list[PastSum])
#: So many ids are gone through in one statement: what it sorts fits into the cache of a reader.
_PORTION: Final = 1 << 16
#: SQLite works without the interpreter's lock: so many portions are read at once.
_THREADS: Final = 2


class SqlitePast(SqliteSums):
    """Reads of what is over."""

    def past(self, *, since: float, until: float, limit: int) -> list[PastAttempt]:
        with self._reader() as connection:
            ranges = msgspec.json.encode(_ranges(connection, since, until)).decode()
            (text,) = connection.execute(statements()["past"], (since, until, ranges, limit)).fetchone()
        return [
            PastAttempt(
                job, number, host, float(started_at), float(ended_at), outcome, spec, group,
                columns.size(size), columns.given(given),
            )
            for job, number, host, started_at, ended_at, outcome, spec, group, size, given in _rows.decode(text)
        ]  # fmt: skip

    def past_sums(self, *, since: float, until: float, slices: int) -> list[PastSum]:
        with self._reader() as connection:
            ranges = _ranges(connection, since, until)
        portions = [
            (start, min(high, start + _PORTION - 1))
            for low, high in ranges
            for start in range(low, high + 1, _PORTION)
        ]

        def read(portion: tuple[int, int]) -> list[PastSum]:
            found: list[PastSum] = []
            with self._reader() as connection:
                for name in ("past_sums_of_sizes", "past_sums"):
                    (text,) = connection.execute(statements()[name], (since, until, slices, *portion)).fetchone()
                    found += _sums.decode(text)
            return found

        if len(portions) < _THREADS:
            return [row for portion in portions for row in read(portion)]
        # Each attempt is in one portion, so it does not matter that they are not of the same moment.
        with ThreadPoolExecutor(_THREADS, "rota-past") as threads:
            return [row for found in threads.map(read, portions) for row in found]

    def ended_between(self, *, first: int, end: int) -> int:
        with self._reader() as connection:
            ranges = msgspec.json.encode(_ranges(connection, first * 3600.0, end * 3600.0)).decode()
            (n,) = connection.execute(statements()["ended_between"], (first, end, ranges)).fetchone()
        return int(n)


def _ranges(connection: sqlite3.Connection, since: float, until: float) -> list[tuple[int, int]]:
    wanted = msgspec.json.encode(hours_of(since, until)).decode()
    (text,) = connection.execute(statements()["blocks_of_hours"], (wanted,)).fetchone()
    return id_ranges(_ids.decode(text))
