"""What both lines of DataJoint share: the table, its connection, and the library's own step for one key."""

from __future__ import annotations

import importlib
import inspect
import sys
import uuid
from collections.abc import Sequence
from typing import Any

from . import faults
from .jobs_table import MYSQL, POSTGRESQL, Dialect
from .ledger import Key, Policy, Unusable, described

#: Of `_populate1`, in this order after the key.
_STEP = ("key", "jobs", "suppress_errors", "return_exception_objects")

#: Names in a configuration → settings of DataJoint.
SETTINGS = {
    "host": "database.host",
    "port": "database.port",
    "user": "database.user",
    "password": "database.password",
    "use_tls": "database.use_tls",
    "backend": "database.backend",
    "name": "database.name",
}


def configure(settings: dict[str, Any]) -> None:
    """Before tables are imported, because that connects."""
    if not settings:
        return
    for name, value in settings.items():
        library().config[SETTINGS[name]] = value


def library(name: str = "datajoint") -> Any:
    """Imported late: a plain query needs none."""
    return importlib.import_module(name)


def is_table(found: Any) -> bool:
    """A class that DataJoint populates."""
    return (
        isinstance(found, type) and callable(getattr(found, "_populate1", None)) and hasattr(found, "key_source")
    )


class DataJointTable:
    """One instance is kept: each new one would read the information schema again."""

    def __init__(self, cls: Any) -> None:
        self.table = cls()
        self.connection = self.table.connection
        step = tuple(inspect.signature(type(self.table)._populate1).parameters)[1:]
        if step[: len(_STEP)] != _STEP:
            raise Unusable(f"this version of DataJoint is not known: its populate step takes {', '.join(step)}")
        self.heading = self.table.heading

    @property
    def dialect(self) -> Dialect:
        adapter = getattr(self.connection, "adapter", None)
        return POSTGRESQL if getattr(adapter, "backend", "mysql") == "postgresql" else MYSQL

    def execute(self, sql: str, values: Sequence[Any]) -> tuple[Sequence[Sequence[Any]], int]:
        cursor = self.connection.query(sql, args=tuple(values))
        rows = cursor.fetchall() if sql.startswith("SELECT") else ()
        return rows, cursor.rowcount

    def value(self, name: str, value: Any) -> Any:
        """Of a key, as DataJoint would have fetched it."""
        attribute = self.heading[name]
        declared = getattr(attribute, "original_type", None) or attribute.type
        is_uuid = getattr(attribute, "uuid", False) or str(declared).startswith("uuid")
        return uuid.UUID(bytes=value) if is_uuid and isinstance(value, bytes) else value

    def stored(self, values: Sequence[Any]) -> list[Any]:
        """As the drivers take them."""
        mysql = self.dialect is MYSQL
        given = [value.bytes if isinstance(value, uuid.UUID) and mysql else value for value in values]
        return [str(value) if isinstance(value, uuid.UUID) else value for value in given]

    def key_source(self) -> Any:
        return self.table._jobs_to_do(())

    def source(self, *, joined: bool) -> str:
        """Selects the keys; with what conditions of bins may name, from the primary parents too."""
        keys = self.key_source()
        if not joined:
            return str(keys.make_sql())
        found = self.table.key_source
        found = found() if inspect.isclass(found) else found
        for parent, props in self.table.parents(primary=True, as_objects=True, foreign_key_info=True):
            renamed = {child: old for child, old in props["attr_map"].items() if child != old}
            found = found * (parent.proj(..., **renamed) if renamed else parent)
        return str(found.make_sql())

    def primary_from_parents(self) -> set[str]:
        """Attributes of the key that come from foreign keys."""
        names: set[str] = set()
        for _, props in self.table.parents(primary=True, foreign_key_info=True):
            names.update(props["attr_map"])
        return names

    def check(self) -> None:
        """Raises `Unusable`."""
        if not self.primary_from_parents():
            raise Unusable(f"{self.table.full_table_name} has no key that comes from foreign keys")
        if self.table.restriction:
            raise Unusable(f"{self.table.full_table_name} is restricted; give the table itself")

    def lock(self, name: str) -> bool:
        return bool(self.execute(self.dialect.lock, (name,))[0][0][0])

    def run(self, key: Key, reservation: Any) -> str:
        """The library's step for one key, and what became of it. `reservation` stands in for its jobs."""
        try:
            self.step(key, reservation)
        except SystemExit as error:
            # A key's own exit is recorded as its error, and the batch goes on.
            if reservation.outcome == "reserved" or faults.kind_of(error) == faults.TIMEOUT:
                raise
        if reservation.timed_out:
            raise faults.Killed("the time limit has passed")
        outcome: str = reservation.outcome
        return outcome

    def step(self, key: Key, jobs: Any) -> Any:
        """The library's own step, with our object in the place of its jobs."""
        return self.table._populate1(key, jobs, True, True)

    def is_made(self, key: Key) -> bool:
        return bool(self.table & key)

    def reconnect(self) -> None:
        """Out of any transaction, over a new connection if this one is lost; drivers find that out by using it."""
        try:
            if self.connection.in_transaction:
                self.connection.cancel_transaction()
            else:
                self.execute("SELECT 1", ())
        except Exception:
            self.connection._in_transaction = False
            self.connection.connect()

    def close(self) -> None:
        """Nothing: all tables of a process share the library's connection, and the next batch may need it."""


def judged(error: BaseException | None, *, policy: Policy, made: bool) -> tuple[str, int]:
    """What becomes of a key after an error, `done`, `error` or `released`; and how many tries it has."""
    kind = faults.kind_of(error) if error is not None else faults.FAILED
    if kind == faults.DUPLICATE and made:
        return "done", 0
    if kind == faults.TRANSIENT:
        return "released", 3
    if kind == faults.TIMEOUT and policy.on_lost == "release":
        return "released", policy.attempts
    return "error", 0


def handled() -> BaseException | None:
    """The error that is being handled where this is called from."""
    return sys.exc_info()[1]


def message_of(error: BaseException | None, given: str) -> str:
    """As a user should read it: what ended a batch is not the key's own error."""
    if error is not None and faults.kind_of(error) == faults.TIMEOUT:
        return f"the batch was ended while this key ran ({described(error)})"
    return given
