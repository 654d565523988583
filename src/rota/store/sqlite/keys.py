"""Finds jobs by key: the newest jobs in memory, the others in sorted runs on disk.

Keys are hashes. With one index over all of them, every added job would touch a page of its own, and adding would
get slower as ended jobs accumulate. So the keys of the newest jobs are in a dictionary; when a span of ids is
full, its keys are written once, sorted.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from typing import Final

import msgspec

from rota.core.rows import JobRow, KnownJob, RekeyedRow
from rota.store.base import Brief
from rota.store.sqlite.statements import statements

#: Ids in a run: the most that a start must read again.
RUN: Final = 1 << 17
#: Characters of a key stored in a run; the job's row has the whole key.
TAIL: Final = 8

_briefs = msgspec.json.Decoder(list[Brief])
_known = msgspec.json.Decoder(list[tuple[str, int, int]])


class Keys:
    """The keys of one database. Written by the writer's thread, read by any."""

    def __init__(self, *, run: int = RUN) -> None:
        self._run = run
        self._below = 0  #: jobs with a lower id are in runs
        self._newest: dict[str, int] = {}
        self._older: dict[str, list[int]] = {}  #: older jobs in memory with the same key; very few
        self._highest = 0
        self._loaded = False

    def load(self, connection: sqlite3.Connection) -> None:
        """Read the keys that are in no run."""
        sql = statements()
        self._below = int(connection.execute(sql["keys_below"]).fetchone()[0])
        rows = connection.execute(sql["newest_keys"], (self._below,)).fetchall()
        self._newest, self._older = dict(rows), {}
        if len(self._newest) < len(rows):
            for key, job in rows:
                if self._newest[key] != job:
                    self._older.setdefault(key, []).append(job)
        self._highest = max(self._newest.values(), default=0)
        self._loaded = True

    def late(self, jobs: Sequence[JobRow], rekeyed: Collection[RekeyedRow] = ()) -> list[tuple[int, str, int]]:
        """(run, tail, job) of new or rekeyed jobs whose run has already been written. The row of a former key
        stays in its run, and is not found: the key of the job is another."""
        if not self._below:
            return []
        keys = [(row.id, row.key) for row in jobs if row.id < self._below]
        keys += [(row.job, row.key) for row in rekeyed if row.job < self._below]
        return [(id // self._run, key[-TAIL:], id) for id, key in keys]

    def written(self, jobs: Sequence[JobRow]) -> None:
        """Record that these jobs are on disk."""
        if not self._loaded:
            return
        newest, below = self._newest, self._below
        for row in jobs:
            id, key = row.id, row.key
            if id >= below:
                before = newest.get(key)
                if before is not None and before != id:
                    self._older.setdefault(key, []).append(before)
                newest[key] = id
        self._highest = max(self._highest, jobs[-1].id)

    def rekeyed(self, jobs: Iterable[RekeyedRow]) -> None:
        """Record that these jobs have other keys on disk."""
        if not self._loaded:
            return
        for row in jobs:
            id, former = row.job, row.former
            if id < self._below:
                continue
            others = self._older.get(former, [])
            if self._newest.get(former) != id:
                self._older[former] = [other for other in others if other != id]
            elif others:
                newest = self._newest[former] = max(others)  # in any order: older jobs may have got the key later
                self._older[former] = [other for other in others if other != newest]
            else:
                del self._newest[former]
            self._add(row.key, id)

    def _add(self, key: str, job: int) -> None:
        before = self._newest.get(key)
        if before is not None and before != job:
            older, job = sorted((before, job))
            self._older.setdefault(key, []).append(older)
        self._newest[key] = job

    def write_runs(self, connection: sqlite3.Connection) -> None:
        """Write the full runs. A kill in between changes nothing."""
        sql = statements()
        while self._highest >= self._below + self._run:
            low, high = self._below, self._below + self._run
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(sql["write_run"], (low // self._run, low, high - 1))
            connection.execute(sql["move_keys_below"], (high,))
            connection.execute("COMMIT")
            newest = {key: job for key, job in self._newest.items() if job >= high}
            older = {key: [job for job in jobs if job >= high] for key, jobs in self._older.items()}
            self._older = {key: jobs for key, jobs in older.items() if jobs}
            self._newest, self._below = newest, high

    def now(self, connection: sqlite3.Connection) -> tuple[dict[str, int], int]:
        """The keys in memory, for `find`. Call it before the read transaction begins: a run written in between is
        then in both places, never in neither."""
        if not self._loaded:
            self.load(connection)
        return self._newest, self._below

    def find(
        self, connection: sqlite3.Connection, keys: list[str], *, at: tuple[dict[str, int], int], also: str
    ) -> dict[str, KnownJob]:
        """The newest job with each key; `also` is a condition on the jobs that count."""
        sql = statements()
        newest, below = at
        here = {key: newest[key] for key in keys if key in newest}
        found = _ask(connection, sql["known_jobs"], also, list(here.values()))
        # The id of a refused job may have been reused.
        found = {key: known for key, known in found.items() if key in here}
        if len(found) < len(here):
            # The newest job with that key was removed or does not count yet; an older one may.
            doubtful = [key for key in here if key not in found]
            found |= _ask(connection, sql["known_newest_keys"], also, doubtful, below)
        others = [key for key in keys if key not in found]
        if others and below:
            runs = list(range(below // self._run))
            found |= _ask(connection, sql["known_keys"], also, others, runs)
        return found

    def older(self) -> dict[str, list[int]]:
        """Keys shared by several jobs in memory, with all of these jobs but the newest. Call it like `now`."""
        return self._older

    def namesakes(
        self,
        connection: sqlite3.Connection,
        keys: list[str],
        *,
        at: tuple[dict[str, int], int],
        older: dict[str, list[int]],
        also: str,
    ) -> list[Brief]:
        """All jobs with these keys that were not replaced."""
        sql, (newest, below) = statements(), at
        here = [newest[key] for key in keys if key in newest]
        here += [job for key in keys if key in older for job in older[key]]
        asked = [("briefs", [msgspec.json.encode(here).decode()])]
        if below:
            runs = list(range(below // self._run))
            asked.append(("namesakes", [msgspec.json.encode(each).decode() for each in (keys, runs)]))
        found: list[Brief] = []
        for name, given in asked:
            (text,) = connection.execute(sql[name].replace("/* also */", also), given).fetchone()
            found += _briefs.decode(text)
        return list({brief.id: brief for brief in found}.values())


def _ask(
    connection: sqlite3.Connection, sql: str, also: str, *params: list[str] | list[int] | int
) -> dict[str, KnownJob]:
    given = [msgspec.json.encode(each).decode() if isinstance(each, list) else each for each in params]
    (text,) = connection.execute(sql.replace("/* also */", also), given).fetchone()
    return {key: KnownJob(job, state) for key, job, state in _known.decode(text)}
