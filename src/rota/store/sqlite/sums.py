"""The queries of a `SqliteStore` about sums and usage: see `store.base`."""

from __future__ import annotations

from typing import Any

import msgspec

from rota.core.accounts.sums import AccountSums, HourAccount, MinuteRow, MinuteSums
from rota.core.rows import MachineRow
from rota.store import json_columns
from rota.store.base import Accounts, Point, RunningAttempt
from rota.store.sqlite.reads import SqliteReads
from rota.store.sqlite.statements import statements

#: A sum that outgrew its column has become a floating point number.
_accounts = msgspec.json.Decoder(list[tuple[int, str, str, str, list[int | float]]])
_minutes = msgspec.json.Decoder(list[tuple[int, list[int | float]]])
_rows = msgspec.json.Decoder(list[tuple[Any, ...]])
_names = msgspec.json.Decoder(list[str])
_states = msgspec.json.Decoder(list[MachineRow])


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
                [
                    HourAccount(hour, user, project, queue, AccountSums(*map(int, sums)))
                    for hour, user, project, queue, sums in _accounts.decode(rows)
                ],
                [
                    RunningAttempt(spec, json_columns.size(size), json_columns.given(given), float(started_at))
                    for spec, size, given, started_at in _rows.decode(running)
                ],
                asked_since,
            )

    def minutes(self, *, since: int) -> list[MinuteRow]:
        with self._reader() as connection:
            (text,) = connection.execute(statements()["minutes_since"], (since,)).fetchone()
            return [MinuteRow(minute, MinuteSums(*map(int, sums))) for minute, sums in _minutes.decode(text)]

    def machine_hosts(self) -> list[str]:
        with self._reader() as connection:
            (text,) = connection.execute(statements()["machine_hosts"]).fetchone()
            return _names.decode(text)

    def machine_rows(self, *, host: str, since: int, until: int) -> list[MachineRow]:
        with self._reader() as connection:
            name = "machine_rows_of_host" if host else "machine_rows_between"
            (text,) = connection.execute(statements()[name], (host, since, until)).fetchone()
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
