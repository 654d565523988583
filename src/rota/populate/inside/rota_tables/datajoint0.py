"""The ledger of DataJoint 0.14: one jobs table a schema, whose rows keep native workers away from their keys.

A row of ours has the end of its lease in `timestamp`, and the token in `host`: alone while the key is queued,
after the name of the host while it runs. `migrate` adds the status `queued`; the mark `reserved` does without.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import datajoint_table as dj
from . import faults
from .datajoint_table import DataJointTable
from .jobs_table import FREE, QUEUED, bin_of, tally
from .ledger import (
    ERROR,
    MARK,
    ROWS,
    TRIES,
    Bin,
    Key,
    Look,
    Policy,
    Unusable,
    cut,
    described,
    mark_of,
    tries_in,
    try_text,
    where_it_runs,
)  # fmt: skip

_LEASE = "(CURRENT_TIMESTAMP + INTERVAL %s SECOND)"
_FIELDS = "table_name, key_hash, status, `key`, host, pid, user, connection_id, timestamp"


class DataJoint0:
    """Of one table. Raises `Unusable` if it cannot be populated in batches."""

    def __init__(self, cls: Any, *, bins: bool, policy: Policy, mark: str) -> None:
        self.table = DataJointTable(cls)
        self.policy = policy
        self.table.check()
        self.mark = mark
        self.user = str(self.table.connection.get_user())
        table = self.table.table
        self.name = table.target.table_name
        self.key = list(self.table.key_source().primary_key)
        self.source = self.table.source(joined=bins)
        self.rows = self.table.connection.schemas[table.target.database].jobs
        self.jobs = self.rows.full_table_name
        # Not from the heading, which may be older than a migration.
        sql = "SELECT column_type FROM information_schema.columns WHERE table_schema = %s AND table_name = %s"
        names = (table.target.database, self.rows.table_name)
        rows, _ = self.table.execute(f"{sql} AND column_name = 'status'", names)
        self.statuses = str(rows[0][0])
        self.knows_queued = f"'{QUEUED}'" in self.statuses

    def look(self, bins: Sequence[Bin]) -> Look:
        """Two statements: the rows of the table, and all missing keys, which only Python can match with them."""
        self._usable()
        states, batches = self._look_at_jobs()
        if FREE in states.values():
            self._free_expired()
        q = self.table.dialect.name
        names = ", ".join(map(q, self.key))
        same = " AND ".join(f"t.{q(name)} = s.{q(name)}" for name in self.key)
        made = f"EXISTS (SELECT 1 FROM {self.table.table.target.full_table_name} t WHERE {same})"
        sql = (
            f"SELECT {names}, rota_bin, rota_made, rota_count FROM ("
            f"SELECT {names}, rota_bin, rota_made, COUNT(*) OVER (PARTITION BY rota_made) AS rota_count,"
            f" ROW_NUMBER() OVER (PARTITION BY rota_made ORDER BY {names}) AS rota_place FROM ("
            f"SELECT s.*, {made} AS rota_made FROM ("
            f"SELECT {names}, {bin_of(bins)} AS rota_bin FROM ({self.source}) ks) s) a) b"
            " WHERE NOT rota_made OR rota_place <= %s ORDER BY rota_place"
        )
        rows, _ = self.table.execute(sql, (1,))
        look = Look(len(bins))
        look.batches = batches
        width = len(self.key)
        for row in rows:
            number, is_made, n = row[width : width + 3]
            if is_made:
                look.done = int(n)
                continue
            key = {name: self.table.value(name, row[at]) for at, name in enumerate(self.key)}
            state = states.get(self._hash(key), FREE)
            tally(look, int(number), state, "", 1)
            if state == FREE and number >= 0 and len(look.free[number]) < bins[number].quota:
                look.free[number].append(key)
        return look

    def _look_at_jobs(self) -> tuple[dict[str, str], dict[str, int]]:
        """The state of each hash, `FREE` if its lease has ended; and batches with how many keys they hold."""
        sql = (
            f"SELECT key_hash, status, host, timestamp <= CURRENT_TIMESTAMP FROM {self.jobs} WHERE table_name = %s"
        )
        states: dict[str, str] = {}
        batches: dict[str, int] = {}
        for hash_, status, host, expired in self.table.execute(sql, (self.name,))[0]:
            before, mark, token = str(host).partition(MARK)
            state = str(status)
            if mark and not before and state in (QUEUED, "reserved"):
                state = FREE if expired else QUEUED
            states[str(hash_)] = state
            if token and state in (QUEUED, "reserved"):
                batches[token] = batches.get(token, 0) + 1
        return states, batches

    def claim(self, batches: dict[str, list[Key]], lease_s: float) -> dict[str, list[Key]]:
        wanted = {self._hash(key): (key, token) for token, keys in batches.items() for key in keys}
        hashes = list(wanted)
        for start in range(0, len(hashes), ROWS):
            self._claim({each: wanted[each] for each in hashes[start : start + ROWS]}, lease_s)
        got: dict[str, list[Key]] = {token: [] for token in batches}
        marks = ", ".join("%s" for _ in batches)
        sql = f"SELECT key_hash FROM {self.jobs} WHERE table_name = %s AND host IN ({marks})"
        for (each,) in self.table.execute(sql, (self.name, *map(mark_of, batches)))[0]:
            key, token = wanted[str(each)]
            got[token].append(key)
        return got

    def _claim(self, wanted: dict[str, tuple[Key, str]], lease_s: float) -> None:
        values: list[Any] = []
        with dj.library().config(enable_python_native_blobs=True):
            for each, (key, token) in wanted.items():
                blob = dj.library().blob.pack(key)
                values += [self.name, each, self.mark, blob, mark_of(token), self.user, lease_s]
        row = f"(%s, %s, %s, %s, %s, 0, %s, 0, {_LEASE})"
        ours = f"(host LIKE '{MARK}%%' AND status IN ('queued', 'reserved') AND timestamp <= CURRENT_TIMESTAMP)"
        taken = "host = VALUES(host)"
        sql = (
            f"INSERT INTO {self.jobs} ({_FIELDS}) VALUES {', '.join(row for _ in wanted)} ON DUPLICATE KEY UPDATE"
            f" host = IF({ours}, VALUES(host), host), status = IF({taken}, VALUES(status), status),"
            f" timestamp = IF({taken}, VALUES(timestamp), timestamp)"
        )
        self.table.execute(sql, values)

    def release(self, token: str, on_lost: str, why: str) -> tuple[int, int]:
        fence = (self.name, mark_of(token))
        freed = self.table.execute(f"DELETE FROM {self.jobs} WHERE table_name = %s AND host = %s", fence)[1]
        failed = 0
        running = "table_name = %s AND status = 'reserved' AND host LIKE %s"
        sql = f"SELECT `key` FROM {self.jobs} WHERE {running}"
        for (blob,) in self.table.execute(sql, (self.name, f"%{mark_of(token)}"))[0]:
            key = dj.library().blob.unpack(blob)
            if self.table.is_made(key):
                self._complete(key, token)
            elif on_lost == ERROR or not self._give_back(key, token, why=why, tries=self.policy.attempts):
                failed += self._error(key, token, message=why, stack="")
            else:
                freed += 1
        return freed, failed

    def _free_expired(self) -> None:
        """Rows whose lease has ended stand in the way of native workers. Those with tries are kept."""
        ours = f"host LIKE '{MARK}_%%' AND status IN ('queued', 'reserved')"
        self.table.execute(
            f"DELETE FROM {self.jobs} WHERE table_name = %s AND {ours} AND timestamp <= CURRENT_TIMESTAMP",
            (self.name,),
        )

    def warnings(self) -> list[str]:
        self._usable()
        own = [name for name in self.table.heading.primary_key if name not in self.key]
        return [f"its jobs do not tell rows apart that differ in {', '.join(own)}"] if own else []

    def _usable(self) -> None:
        if self.mark == QUEUED and not self.knows_queued:
            raise Unusable(
                "its jobs table knows no status 'queued': run rota populate migrate, or set mark: reserved"
            )

    def migrate(self) -> list[str]:
        if self.mark != QUEUED or self.knows_queued:
            return []
        kind = self.statuses.replace("enum(", f"enum('{QUEUED}',", 1)
        self.table.execute(f"ALTER TABLE {self.jobs} MODIFY status {kind} NOT NULL", ())
        self.knows_queued = True
        return [f"the status 'queued' was added to {self.jobs}"]

    def lock(self, name: str) -> bool:
        return self.table.lock(name)

    # ------------------------------------------------------------------ one batch

    def extend(self, token: str, lease_s: float) -> int:
        mine = "table_name = %s AND host = %s AND timestamp > CURRENT_TIMESTAMP"
        fence = (self.name, mark_of(token))
        sql = f"UPDATE {self.jobs} SET timestamp = {_LEASE} WHERE {mine}"
        changed = self.table.execute(sql, (lease_s, *fence))[1]
        # Rows that have this lease already do not count as changed.
        return changed or int(self.table.execute(f"SELECT COUNT(*) FROM {self.jobs} WHERE {mine}", fence)[0][0][0])

    def run(self, key: Key, token: str) -> str:
        return self.table.run(key, _Reservation(self, token))

    def settle(self, key: Key, token: str, error: BaseException) -> str:
        self.table.reconnect()
        if self.table.is_made(key):
            self._complete(key, token)
            return "done"
        return self._failed(key, token, error, message=described(error), stack="")

    def _reserve(self, key: Key, token: str) -> bool:
        host, pid = where_it_runs()
        sql = (
            f"UPDATE {self.jobs} SET status = 'reserved', host = %s, pid = %s, connection_id = %s"
            " WHERE table_name = %s AND key_hash = %s AND host = %s AND timestamp > CURRENT_TIMESTAMP"
        )
        connection = self.table.connection.connection_id
        values = (f"{host} {mark_of(token)}", pid, connection, self.name, self._hash(key), mark_of(token))
        return self.table.execute(sql, values)[1] == 1

    def _fence(self, key: Key, token: str) -> tuple[str, tuple[Any, ...]]:
        return "WHERE table_name = %s AND key_hash = %s AND host LIKE %s", (
            self.name, self._hash(key), f"%{mark_of(token)}",
        )  # fmt: skip

    def _complete(self, key: Key, token: str) -> None:
        fence, values = self._fence(key, token)
        self.table.execute(f"DELETE FROM {self.jobs} {fence}", values)

    def _error(self, key: Key, token: str, *, message: str, stack: str) -> bool:
        fence, values = self._fence(key, token)
        sql = f"UPDATE {self.jobs} SET status = 'error', error_message = %s, error_stack = %s, host = %s"
        blob = dj.library().blob.pack(stack) if stack else None
        given = (cut(message), blob, where_it_runs()[0], *values)
        return self.table.execute(f"{sql}, timestamp = CURRENT_TIMESTAMP {fence}", given)[1] == 1

    def _give_back(self, key: Key, token: str, *, why: str, tries: int) -> bool:
        """As a queued key whose lease has ended: so its tries are known to the next batch."""
        fence, values = self._fence(key, token)
        rows, _ = self.table.execute(f"SELECT error_message FROM {self.jobs} {fence}", values)
        tried = tries_in(rows[0][0]) + 1 if rows else 0
        if tried >= tries:
            return False
        fields = "status = %s, host = %s, error_message = %s, timestamp = CURRENT_TIMESTAMP"
        sql = f"UPDATE {self.jobs} SET {fields} {fence}"
        self.table.execute(sql, (self.mark, MARK, try_text(tried, tries, why), *values))
        return True

    def _failed(self, key: Key, token: str, error: BaseException | None, *, message: str, stack: str) -> str:
        self.table.reconnect()
        made = error is not None and faults.kind_of(error) == faults.DUPLICATE and self.table.is_made(key)
        outcome, tries = dj.judged(error, policy=self.policy, made=made)
        if outcome == "done":
            self._complete(key, token)
            return outcome
        message = dj.message_of(error, message)
        if outcome == "released" and self._give_back(key, token, why=message, tries=tries or TRIES):
            return outcome
        self._error(key, token, message=message, stack=stack)
        return "error"

    def _hash(self, key: Key) -> str:
        return str(dj.library("datajoint.hash").key_hash(self.table.table._job_key(key)))

    def close(self) -> None:
        self.table.close()


class _Reservation:
    """In the place of the library's jobs, for one key."""

    def __init__(self, ledger: DataJoint0, token: str) -> None:
        self.ledger = ledger
        self.token = token
        self.outcome = "skipped"
        self.timed_out = False  #: the library keeps such an exception to itself

    def reserve(self, table_name: str, key: Key) -> bool:
        got = self.ledger._reserve(key, self.token)
        self.outcome = "reserved" if got else "skipped"
        return got

    def complete(self, table_name: str, key: Key) -> None:
        self.ledger._complete(key, self.token)
        self.outcome = "done"

    def error(self, table_name: str, key: Key, error_message: str, error_stack: str | None = None) -> None:
        error = dj.handled()
        self.timed_out = error is not None and faults.kind_of(error) == faults.TIMEOUT
        self.outcome = self.ledger._failed(key, self.token, error, message=error_message, stack=error_stack or "")
