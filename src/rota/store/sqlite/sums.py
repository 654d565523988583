"""The queries of a `SqliteStore` about sums and usage: see `store.base`."""

from __future__ import annotations

from typing import Any

import msgspec

from rota.store.base import Accounts, Point, RunningAttempt
from rota.store.sqlite import json_columns
from rota.store.sqlite.reads import SqliteReads
from rota.store.sqlite.statements import statements

_numbers = msgspec.json.Decoder(list[tuple[int, ...]])
_rows = msgspec.json.Decoder(list[tuple[Any, ...]])
_states = msgspec.json.Decoder(list[tuple[str, int, str]])


class SqliteSums(SqliteReads):
    """Reads of sums."""

    def accounts(self, *, first: int, end: int) -> Accounts:
        sql = statements()
        with self._reader() as connection:
            # In one transaction: an attempt is either in the sums or still running.
            (rows,) = connection.execute(sql["accounts_between"], (first, end)).fetchone()
            (running,) = connection.execute(sql["running_attempts"]).fetchone()
            (asked_since,) = connection.execute(sql["asked_since"]).fetchone()
            return Accounts(
                _rows.decode(rows),
                [
                    RunningAttempt(spec, json_columns.size(size), json_columns.given(given), float(started_at))
                    for spec, size, given, started_at in _rows.decode(running)
                ],
                asked_since,
            )

    def minutes(self, *, since: int) -> list[tuple[int, ...]]:
        with self._reader() as connection:
            (text,) = connection.execute(statements()["minutes_since"], (since,)).fetchone()
            return _numbers.decode(text)

    def host_states(self, *, host: str, since: int, until: int) -> list[tuple[str, int, str]]:
        with self._reader() as connection:
            (text,) = connection.execute(statements()["host_states_between"], (host, since, until)).fetchone()
            return _states.decode(text)

    def points(self, group: str, *, limit: int) -> list[Point]:
        with self._reader() as connection:
            (text,) = connection.execute(statements()["points"], (group, limit)).fetchone()
            return [
                Point(
                    job,
                    float(at),
                    input_bytes,
                    given or 0,
                    used or 0,
                    float(given_s),
                    float(used_s),
                    bool(ok),
                    asked,
                    None if asked_s is None else float(asked_s),
                )
                for job, at, input_bytes, given, used, given_s, used_s, ok, asked, asked_s in _rows.decode(text)
            ]
