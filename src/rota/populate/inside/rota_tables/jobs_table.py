"""The statements over a jobs table with a row per key, as DataJoint 2.x has them: all its SQL is here.

A queued key is `pending` with its `scheduled_time` in the future, which is its lease, and the token in `version`.
So a lease expires by itself, and native workers leave the key alone until then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .ledger import MARK, ROWS, Bin, Key, Look, cut, mark_of, tries_in, try_text, where_it_runs

#: Runs a statement; the rows, and how many were changed.
Execute = Callable[[str, Sequence[Any]], "tuple[Sequence[Sequence[Any]], int]"]

FREE, DONE, QUEUED, LATER = "free", "done", "queued", "later"


class Dialect:
    """What differs between servers."""

    def __init__(self, *, quote: str, postgresql: bool) -> None:
        self.quote = quote
        self.postgresql = postgresql
        self.text = "TEXT" if postgresql else "CHAR"

    def name(self, name: str) -> str:
        return f"{self.quote}{name}{self.quote}"

    now = "CURRENT_TIMESTAMP(3)"

    @property
    def lock(self) -> str:
        """Take the lock of a name, if it is free; the connection's end gives it back."""
        return "SELECT pg_try_advisory_lock(hashtext(%s))" if self.postgresql else "SELECT GET_LOCK(%s, 0)"

    @property
    def after(self) -> str:
        """The time so many seconds from now."""
        return (
            f"({self.now} + %s * INTERVAL '1' SECOND)" if self.postgresql else f"({self.now} + INTERVAL %s SECOND)"
        )


MYSQL = Dialect(quote="`", postgresql=False)
POSTGRESQL = Dialect(quote='"', postgresql=True)


class JobsTable:
    """The jobs of one table. `source` selects the keys, with what bins ask for; `target` is the table."""

    def __init__(
        self,
        *,
        dialect: Dialect,
        execute: Execute,
        jobs: str,
        key: Sequence[str],
        source: str,
        target: str,
        priority: int,
        value: Callable[[str, Any], Any],
    ) -> None:
        self.dialect = dialect
        self.execute = execute
        self.jobs = jobs
        self.key = list(key)
        self.source = source
        self.target = target
        self.priority = priority
        self.value = value  #: of a column, as Python has it

    def look(self, bins: Sequence[Bin]) -> Look:
        """One statement: a row for each state of a bin, and the free keys that are wanted."""
        q = self.dialect.name
        names = ", ".join(map(q, self.key))
        token = f"CASE WHEN {self._queued('j')} OR {self._running('j')} THEN j.{q('version')} ELSE '' END"
        state = (
            f"CASE WHEN EXISTS (SELECT 1 FROM {self.target} t WHERE {self._same('t', 's')}) THEN '{DONE}'"
            f" WHEN j.{q('status')} IS NULL OR j.{q('status')} = 'success' THEN '{FREE}'"
            f" WHEN {self._free('j')} THEN '{FREE}'"
            f" WHEN {self._queued('j')} THEN '{QUEUED}'"
            f" WHEN j.{q('status')} = 'pending' THEN '{LATER}'"
            f" ELSE CAST(j.{q('status')} AS {self.dialect.text}) END"
        )
        of_class = "PARTITION BY rota_bin, rota_state, rota_token"
        rank = f"ROW_NUMBER() OVER ({of_class} ORDER BY rota_priority, {names})"
        columns = ", ".join(f"s.{q(name)} AS {q(name)}" for name in self.key)
        sql = (
            f"SELECT {names}, rota_bin, rota_state, rota_token, rota_count, rota_place FROM ("
            f"SELECT {names}, rota_bin, rota_state, rota_token, COUNT(*) OVER ({of_class}) AS rota_count,"
            f" {rank} AS rota_place FROM ("
            f"SELECT {columns}, s.rota_bin AS rota_bin, {state} AS rota_state, {token} AS rota_token,"
            f" COALESCE(j.{q('priority')}, {self.priority}) AS rota_priority"
            f" FROM (SELECT {names}, {bin_of(bins)} AS rota_bin FROM ({self.source}) ks) s"
            f" LEFT JOIN {self.jobs} j ON {self._same('j', 's')}) a) b"
            f" WHERE rota_place = 1 OR (rota_state = '{FREE}' AND rota_place <= %s)"
            " ORDER BY rota_bin, rota_state, rota_token, rota_place"
        )
        most = max((each.quota for each in bins), default=0)
        rows, _ = self.execute(sql, [f"{MARK}%"] * sql.count("LIKE %s") + [most])
        look = Look(len(bins))
        width = len(self.key)
        for row in rows:
            number, class_state, class_token, n, place = row[width : width + 5]
            if place == 1:
                tally(look, int(number), str(class_state), str(class_token), int(n))
            if class_state == FREE and number >= 0 and len(look.free[number]) < bins[number].quota:
                look.free[number].append(self._key(row))
        return look

    def claim(self, batches: dict[str, list[Key]], lease_s: float) -> dict[str, list[Key]]:
        """Insert missing rows and take over free ones, a thousand in a statement."""
        wanted = [(key, token) for token, keys in batches.items() for key in keys]
        for start in range(0, len(wanted), ROWS):
            self._claim(wanted[start : start + ROWS], lease_s)
        return self._claimed(list(batches))

    def _claim(self, wanted: Sequence[tuple[Key, str]], lease_s: float) -> None:
        q = self.dialect.name
        fields = [*self.key, "status", "priority", "scheduled_time", "version"]
        row = f"({', '.join('%s' for _ in self.key)}, 'pending', {self.priority}, {self.dialect.after}, %s)"
        values: list[Any] = []
        for key, token in wanted:
            values += [*(key[name] for name in self.key), lease_s, mark_of(token)]
        sql = f" INTO {self.jobs} {{}}({', '.join(map(q, fields))}) VALUES {', '.join(row for _ in wanted)}"
        if self.dialect.postgresql:
            free = f"({self._free('j')} OR j.{q('status')} = 'success')"
            changes = ", ".join(
                f"{q(name)} = EXCLUDED.{q(name)}" for name in ("status", "scheduled_time", "version")
            )
            names = ", ".join(map(q, self.key))
            sql = f"INSERT{sql.format('AS j ')} ON CONFLICT ({names}) DO UPDATE SET {changes} WHERE {free}"
        else:
            # Assignments are made from left to right: what follows sees whether the token was taken.
            free = f"(({self._free('')}) OR {q('status')} = 'success')"
            taken = f"{q('version')} = VALUES({q('version')})"
            changes = (
                f"{q('version')} = IF({free}, VALUES({q('version')}), {q('version')}),"
                f" {q('status')} = IF({taken}, 'pending', {q('status')}),"
                f" {q('scheduled_time')} = IF({taken}, VALUES({q('scheduled_time')}), {q('scheduled_time')})"
            )
            sql = f"INSERT{sql.format('')} ON DUPLICATE KEY UPDATE {changes}"
        self.execute(sql, values)

    def _claimed(self, tokens: Sequence[str]) -> dict[str, list[Key]]:
        found: dict[str, list[Key]] = {token: [] for token in tokens}
        q = self.dialect.name
        names = ", ".join(map(q, self.key))
        for some in _parts(tokens):
            marks = ", ".join("%s" for _ in some)
            sql = f"SELECT {names}, {q('version')} FROM {self.jobs} WHERE {q('status')} = 'pending'"
            rows, _ = self.execute(f"{sql} AND {q('version')} IN ({marks})", [mark_of(token) for token in some])
            for row in rows:
                found[str(row[len(self.key)])[len(MARK) :]].append(self._key(row))
        return found

    def free_queued(self, token: str) -> int:
        q = self.dialect.name
        sql = (
            f"UPDATE {self.jobs} SET {q('scheduled_time')} = {self.dialect.now}, {q('version')} = ''"
            f" WHERE {q('status')} = 'pending' AND {q('version')} = %s"
        )
        return self.execute(sql, (mark_of(token),))[1]

    def running(self, token: str) -> list[Key]:
        """What the batch has begun and not ended."""
        q = self.dialect.name
        names = ", ".join(map(q, self.key))
        sql = f"SELECT {names} FROM {self.jobs} WHERE {q('status')} = 'reserved' AND {q('version')} = %s"
        return [self._key(row) for row in self.execute(sql, (mark_of(token),))[0]]

    # ------------------------------------------------------------------ one key of a batch

    def extend(self, token: str, lease_s: float) -> int:
        q = self.dialect.name
        lives = f"{q('scheduled_time')} > {self.dialect.now}"
        fence = f"WHERE {q('status')} = 'pending' AND {q('version')} = %s AND {lives}"
        sql = f"UPDATE {self.jobs} SET {q('scheduled_time')} = {self.dialect.after} {fence}"
        changed = self.execute(sql, (lease_s, mark_of(token)))[1]
        # Some servers do not count rows that have this lease already.
        return changed or int(
            self.execute(f"SELECT COUNT(*) FROM {self.jobs} {fence}", (mark_of(token),))[0][0][0]
        )

    def reserve(self, key: Key, token: str, *, user: str, connection: int) -> bool:
        q = self.dialect.name
        host, pid = where_it_runs()
        sql = (
            f"UPDATE {self.jobs} SET {q('status')} = 'reserved', {q('host')} = %s, {q('pid')} = %s,"
            f" {q('user')} = %s, {q('connection_id')} = %s, {q('reserved_time')} = {self.dialect.now}"
            f" WHERE {self._is()} AND {q('status')} = 'pending' AND {q('version')} = %s"
            f" AND {q('scheduled_time')} > {self.dialect.now}"
        )
        return self.execute(sql, (host, pid, user, connection, *self._values(key), mark_of(token)))[1] == 1

    def complete(self, key: Key, token: str, *, keep: bool, duration: float | None) -> None:
        q = self.dialect.name
        fence = f"WHERE {self._is()} AND {q('version')} = %s"
        values = (*self._values(key), mark_of(token))
        if not keep:
            self.execute(f"DELETE FROM {self.jobs} {fence}", values)
            return
        sql = (
            f"UPDATE {self.jobs} SET {q('status')} = 'success', {q('version')} = '', {q('error_message')} = '',"
            f" {q('completed_time')} = {self.dialect.now}, {q('duration')} = %s {fence}"
        )
        self.execute(sql, (duration, *values))

    def error(self, key: Key, token: str, *, message: str, stack: Any) -> bool:
        q = self.dialect.name
        sql = (
            f"UPDATE {self.jobs} SET {q('status')} = 'error', {q('version')} = '', {q('error_message')} = %s,"
            f" {q('error_stack')} = %s, {q('completed_time')} = {self.dialect.now}"
            f" WHERE {self._is()} AND {q('status')} = 'reserved' AND {q('version')} = %s"
        )
        return self.execute(sql, (cut(message), stack, *self._values(key), mark_of(token)))[1] == 1

    def give_back(self, key: Key, token: str, *, why: str, tries: int) -> bool:
        """Free the key for another batch, unless that was done so often already."""
        q = self.dialect.name
        fence = f"WHERE {self._is()} AND {q('status')} = 'reserved' AND {q('version')} = %s"
        values = (*self._values(key), mark_of(token))
        rows, _ = self.execute(f"SELECT {q('error_message')} FROM {self.jobs} {fence}", values)
        if not rows:
            return True  # it is not ours any more
        tried = tries_in(rows[0][0]) + 1
        if tried >= tries:
            return False
        sql = (
            f"UPDATE {self.jobs} SET {q('status')} = 'pending', {q('version')} = '', {q('error_message')} = %s,"
            f" {q('scheduled_time')} = {self.dialect.now} {fence}"
        )
        self.execute(sql, (try_text(tried, tries, why), *values))
        return True

    def is_made(self, key: Key) -> bool:
        where = " AND ".join(f"t.{self.dialect.name(name)} = %s" for name in self.key)
        return bool(self.execute(f"SELECT 1 FROM {self.target} t WHERE {where} LIMIT 1", self._values(key))[0])

    # ------------------------------------------------------------------ parts of statements

    def _column(self, alias: str, name: str) -> str:
        return f"{alias}.{self.dialect.name(name)}" if alias else self.dialect.name(name)

    def _free(self, alias: str) -> str:
        status, time = self._column(alias, "status"), self._column(alias, "scheduled_time")
        return f"({status} = 'pending' AND {time} <= {self.dialect.now})"

    def _queued(self, alias: str) -> str:
        status, time = self._column(alias, "status"), self._column(alias, "scheduled_time")
        mark = f"{self._column(alias, 'version')} LIKE %s"
        return f"({status} = 'pending' AND {time} > {self.dialect.now} AND {mark})"

    def _running(self, alias: str) -> str:
        return f"({self._column(alias, 'status')} = 'reserved' AND {self._column(alias, 'version')} LIKE %s)"

    def _same(self, one: str, other: str) -> str:
        return " AND ".join(f"{self._column(one, name)} = {self._column(other, name)}" for name in self.key)

    def _is(self) -> str:
        return " AND ".join(f"{self.dialect.name(name)} = %s" for name in self.key)

    def _values(self, key: Key) -> list[Any]:
        return [key[name] for name in self.key]

    def _key(self, row: Sequence[Any]) -> Key:
        return {name: self.value(name, row[at]) for at, name in enumerate(self.key)}


def bin_of(bins: Sequence[Bin]) -> str:
    """The number of the first bin whose condition holds, or -1."""
    cases = [(each.where, number) for number, each in enumerate(bins)]
    conditions = [
        f"WHEN ({where.replace('%', '%%')}) THEN {number}" for where, number in cases if where is not None
    ]
    last = next((number for where, number in cases if where is None), -1)
    return f"CASE {' '.join(conditions)} ELSE {last} END" if conditions else str(last)


def tally(look: Look, number: int, state: str, token: str, n: int) -> None:
    """Count so many keys of one bin and state, which one batch holds if there is a token."""
    if token:
        name = token[len(MARK) :]
        look.batches[name] = look.batches.get(name, 0) + n
    if state == DONE:
        look.done += n
        return
    look.todo += n
    look.queued += n if state == QUEUED else 0
    look.running += n if state == "reserved" else 0
    look.errors += n if state in ("error", "ignore") else 0
    look.unbinned += n if number < 0 and state in (FREE, LATER) else 0


def _parts(tokens: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(tokens), ROWS):
        yield tokens[start : start + ROWS]
