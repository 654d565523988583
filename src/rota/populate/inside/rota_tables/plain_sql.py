"""The ledger of a plain SQL query: no DataJoint, but a jobs table of the same form beside the user's table.

A table is a function `make(key, connection)`, a query for the keys and the name of the table that has those made.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import Any

from . import faults
from .jobs_table import MYSQL, POSTGRESQL, Dialect, JobsTable
from .ledger import ERROR, TRIES, Bin, Key, Look, Policy, Unusable, described

_COLUMNS = {
    "status": "VARCHAR(16) NOT NULL",
    "priority": "SMALLINT NOT NULL DEFAULT 5",
    "created_time": "{time} NOT NULL DEFAULT CURRENT_TIMESTAMP(3)",
    "scheduled_time": "{time} NOT NULL DEFAULT CURRENT_TIMESTAMP(3)",
    "reserved_time": "{time} NULL",
    "completed_time": "{time} NULL",
    "duration": "{double} NULL",
    "error_message": "VARCHAR(2047) NOT NULL DEFAULT ''",
    "error_stack": "TEXT NULL",
    "user": "VARCHAR(255) NOT NULL DEFAULT ''",
    "host": "VARCHAR(255) NOT NULL DEFAULT ''",
    "pid": "INTEGER NOT NULL DEFAULT 0",
    "connection_id": "BIGINT NOT NULL DEFAULT 0",
    "version": "VARCHAR(64) NOT NULL DEFAULT ''",
}


def dialect_of(connection: Any) -> Dialect:
    """After the module of the connection. Raises `Unusable`."""
    module = type(connection).__module__.partition(".")[0]
    if module in ("pymysql", "MySQLdb", "mariadb", "mysql"):
        return MYSQL
    if module in ("psycopg", "psycopg2"):
        return POSTGRESQL
    raise Unusable(f"connections of {module} are not known; those of pymysql, MySQLdb and psycopg are")


class PlainSql:
    """Of one table, given as what the configuration says under `sql`. Raises `Unusable`."""

    def __init__(self, make: Any, connect: Any, *, sql: dict[str, Any], policy: Policy) -> None:
        self.make = make
        self.connect = connect
        self.policy = policy
        self.connection = connect()
        self.dialect = dialect_of(self.connection)
        self._commit_by_itself(True)
        q = self.dialect.name
        schema, _, name = sql["target"].rpartition(".")
        before = f"{q(schema)}." if schema else ""
        self.ledger = f"{before}{q(f'{name}_jobs')}"
        self.jobs = JobsTable(
            dialect=self.dialect,
            execute=self.execute,
            jobs=self.ledger,
            key=sql["key"],
            source=sql["keys"].replace("%", "%%"),
            target=f"{before}{q(name)}",
            priority=5,
            value=lambda _, value: value,
        )

    def execute(self, sql: str, values: Sequence[Any]) -> tuple[Sequence[Sequence[Any]], int]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql, tuple(values))
            rows = cursor.fetchall() if sql.startswith("SELECT") else ()
            return rows, cursor.rowcount

    def look(self, bins: Sequence[Bin]) -> Look:
        return self.jobs.look(bins)

    def claim(self, batches: dict[str, list[Key]], lease_s: float) -> dict[str, list[Key]]:
        return self.jobs.claim(batches, lease_s)

    def release(self, token: str, on_lost: str, why: str) -> tuple[int, int]:
        freed, failed = self.jobs.free_queued(token), 0
        for key in self.jobs.running(token):
            if self.jobs.is_made(key):
                self.jobs.complete(key, token, keep=False, duration=None)
            elif on_lost == ERROR or not self.jobs.give_back(key, token, why=why, tries=self.policy.attempts):
                failed += self.jobs.error(key, token, message=why, stack=None)
            else:
                freed += 1
        return freed, failed

    def warnings(self) -> list[str]:
        if not self._is_there():
            raise Unusable(f"its jobs table {self.ledger} does not exist: run rota populate migrate")
        return []

    def migrate(self) -> list[str]:
        if self._is_there():
            return []
        postgresql = self.dialect is POSTGRESQL
        kinds = {"time": "TIMESTAMP(3)" if postgresql else "DATETIME(3)", "double": "DOUBLE PRECISION"}
        q = self.dialect.name
        names = ", ".join(map(q, self.jobs.key))
        # So the columns of the key have the types that the query gives them.
        self.execute(f"CREATE TABLE {self.ledger} AS SELECT {names} FROM ({self.jobs.source}) ks WHERE 1 = 0", ())
        changes = [f"ADD COLUMN {q(name)} {kind.format(**kinds)}" for name, kind in _COLUMNS.items()]
        self.execute(f"ALTER TABLE {self.ledger} {', '.join([*changes, f'ADD PRIMARY KEY ({names})'])}", ())
        return [f"the jobs table {self.ledger} was made"]

    def _is_there(self) -> bool:
        try:
            self.execute(f"SELECT 1 FROM {self.ledger} LIMIT 1", ())
        except Exception as error:
            if faults.kind_of(error) == faults.TRANSIENT:
                raise
            return False
        return True

    def lock(self, name: str) -> bool:
        return bool(self.execute(self.dialect.lock, (name,))[0][0][0])

    # ------------------------------------------------------------------ one batch

    def extend(self, token: str, lease_s: float) -> int:
        return self.jobs.extend(token, lease_s)

    def run(self, key: Key, token: str) -> str:
        if not self.jobs.reserve(key, token, user="", connection=0):
            return "skipped"
        if not self.jobs.is_made(key):
            self._commit_by_itself(False)
            try:
                self.make(dict(key), self.connection)
                self.connection.commit()
                self._commit_by_itself(True)
            except (KeyboardInterrupt, SystemExit, Exception) as error:
                outcome = self.settle(key, token, error)
                if faults.kind_of(error) == faults.TIMEOUT:
                    raise
                return outcome
        self.jobs.complete(key, token, keep=False, duration=None)
        return "done"

    def settle(self, key: Key, token: str, error: BaseException) -> str:
        self._recover()
        kind = faults.kind_of(error)
        if kind != faults.FAILED and self.jobs.is_made(key):
            self.jobs.complete(key, token, keep=False, duration=None)
            return "done"
        tries = TRIES if kind == faults.TRANSIENT else 0
        if kind == faults.TIMEOUT and self.policy.on_lost != ERROR:
            tries = self.policy.attempts
        if tries and self.jobs.give_back(key, token, why=described(error), tries=tries):
            return "released"
        stack = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        self.jobs.error(key, token, message=described(error), stack=stack)
        return "error"

    def _recover(self) -> None:
        """Roll back, over a new connection if this one is lost."""
        try:
            self.connection.rollback()
            self._commit_by_itself(True)
            self.execute("SELECT 1", ())
        except Exception:
            self.connection = self.connect()
            self._commit_by_itself(True)

    def _commit_by_itself(self, on: bool) -> None:
        if self.dialect is POSTGRESQL:
            self.connection.autocommit = on
        else:
            self.connection.autocommit(on)

    def close(self) -> None:
        self.connection.close()
