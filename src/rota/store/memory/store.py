"""A store in plain dictionaries: for tests and the simulator. It keeps every promise but durability."""

from __future__ import annotations

import base64
from array import array
from collections.abc import Collection, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Final

import msgspec

from rota.core.accounts.sums import MinuteRow
from rota.core.changes import Changes
from rota.core.jobs.job import Parent
from rota.core.rows import EventRow, KnownJob, MachineRow, ObservationRow, SubmissionRow
from rota.core.stored import StoredAttempt, StoredJob, StoreSnapshot, output_of
from rota.errors import NotFound, StoreFull
from rota.store import json_columns
from rota.store.base import Accounts, BackedUp, Brief, Clause, Order, Point, Progress, RunningAttempt, StoredOutput
from rota.store.memory.backup import write_backup
from rota.store.memory.past import past_attempts, past_sum
from rota.store.memory.selection import in_order, is_found, matching
from rota.store.memory.snapshot import load
from rota.store.memory.tables import MemoryTables
from rota.store.memory.writing import write
from rota.store.past import PastAttempt, PastSum

_NONE: Final[Mapping[int, int]] = {}


class MemoryStore:
    """A `Store` without a disk. `room` stands in for free space: False is a full disk."""

    def __init__(self, tables: MemoryTables | None = None) -> None:
        self.room = True
        self.tables = MemoryTables() if tables is None else tables
        self._lock = self.tables.lock

    def reopened(self) -> MemoryStore:
        """A new store with everything committed so far, as found after a kill."""
        return MemoryStore(self.tables.copy())

    def load(self) -> StoreSnapshot:
        with self._lock:
            return load(self.tables)

    def commit(self, changes: Changes) -> None:
        with self._lock:
            if not self.room:
                raise StoreFull("there is no room", hint="free some space")
            write(self.tables, changes)

    def can_accept(self, live_jobs: int) -> bool:
        return self.room

    # ------------------------------------------------------------------ what an add asks

    def known_keys(self, user: str, keys: list[str]) -> dict[str, KnownJob]:
        tables, known = self.tables, {}
        with self._lock:
            for key in keys:
                same = [tables.jobs[n] for n in tables.keys.get(key, ())]
                seen = [job for job in same if tables.is_visible(job) and job.replaced_by is None]
                if seen:
                    newest = max(seen, key=lambda job: job.id)
                    known[key] = KnownJob(newest.id, newest.state)
        return known

    def namesakes(self, keys: list[str]) -> list[Brief]:
        with self._lock:
            return self.briefs([n for key in keys for n in self.tables.keys.get(key, ())])

    def briefs(self, ids: list[int]) -> list[Brief]:
        tables = self.tables
        with self._lock:
            found = [tables.jobs[n] for n in sorted(set(ids)) if n in tables.jobs]
            return [
                Brief(job.key, job.id, job.state, job.spec_id, json_columns.after_text(job.after))
                for job in found
                if job.replaced_by is None and tables.is_visible(job)
            ]

    def submission(self, submission: str) -> SubmissionRow | None:
        with self._lock:
            return self.tables.submissions.get(submission)

    def last_of_input(self, user: str, name: str) -> SubmissionRow | None:
        with self._lock:
            found = [s for s in self.tables.submissions.values() if (s.user, s.input) == (user, name)]
            return found[0] if found else None

    def last_submission(self, user: str) -> SubmissionRow | None:
        with self._lock:
            mine = [s for s in self.tables.submissions.values() if s.user == user and s.answer is not None]
            # Of equal times take the one stored last; dictionaries keep insertion order.
            return max(reversed(mine), key=lambda s: s.at, default=None)

    def env(self, env_id: int) -> bytes:
        with self._lock:
            if env_id not in self.tables.envs:
                raise NotFound(f"there is no environment {env_id}")
            return base64.b64decode(self.tables.envs[env_id].data)

    # ------------------------------------------------------------------ jobs

    def find(self, clauses: list[Clause], *, above: int, limit: int) -> list[int]:
        with self._lock:
            return sorted(job.id for job in matching(self.tables, clauses) if job.id > above)[:limit]

    def count(self, clauses: list[Clause], *, search: str = "", named: Collection[int] = ()) -> int:
        with self._lock:
            return sum(is_found(job, search, named) for job in matching(self.tables, clauses))

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
        with self._lock:
            jobs = (job for job in matching(self.tables, clauses) if is_found(job, search, named))
            return in_order(self.tables, jobs, order, specs=specs, limit=limit)

    def jobs(self, ids: list[int]) -> list[StoredJob]:
        tables = self.tables
        with self._lock:
            known = [tables.jobs[n] for n in sorted(set(ids)) if n in tables.jobs]
            return [
                msgspec.structs.replace(job, newest=deepcopy(tables.newest(job)))
                for job in known
                if tables.is_visible(job)
            ]

    def tally(self, clauses: list[Clause]) -> dict[tuple[str, int], int]:
        total: dict[tuple[str, int], int] = {}
        with self._lock:
            for job in matching(self.tables, clauses):
                total[job.group, job.state] = total.get((job.group, job.state), 0) + 1
        return total

    def attempts(self, job: int) -> list[StoredAttempt]:
        with self._lock:
            return [deepcopy(row) for _, row in sorted(self.tables.attempts.items()) if row.job == job]

    def returned(self, jobs: list[int]) -> dict[int, tuple[int, str]]:
        wanted = set(jobs)
        with self._lock:
            return {job: (n, left) for (job, n), left in sorted(self.tables.returned.items()) if job in wanted}

    def events(self, job: int) -> list[EventRow]:
        with self._lock:
            return [event for event in self.tables.events if event.job == job]

    def dependents(self, parents: list[Parent]) -> list[int]:
        with self._lock:
            return sorted({edge.child for edge in self.tables.edges if edge.parent in parents})

    def children(self, parent: Parent, *, limit: int) -> tuple[list[int], int]:
        with self._lock:
            found = sorted(edge.child for edge in self.tables.children if edge.parent == parent)
            return found[:limit], len(found)

    def followers(self, parents: list[int]) -> list[int]:
        with self._lock:
            return sorted({edge.child for edge in self.tables.children if edge.parent in parents})

    # ------------------------------------------------------------------ sums and the past

    def accounts(self, *, first: int, end: int) -> Accounts:
        tables = self.tables
        with self._lock:
            running = [
                RunningAttempt(row.spec or tables.jobs[row.job].spec_id, row.size, row.given, row.started_at)
                for _, row in sorted(tables.attempts.items())
                if row.outcome is None and row.started_at is not None
            ]
            return Accounts(tables.sums.accounts(first, end), running)

    def minutes(self, *, since: int) -> list[MinuteRow]:
        with self._lock:
            return self.tables.sums.minutes(since)

    def machine_hosts(self) -> list[str]:
        with self._lock:
            return self.tables.sums.machine_hosts()

    def machine_rows(self, *, host: str, since: int, until: int) -> list[MachineRow]:
        with self._lock:
            return self.tables.sums.machine_rows(host, since, until)

    def past(self, *, since: float, until: float, limit: int) -> list[PastAttempt]:
        with self._lock:
            return past_attempts(self.tables, since, until)[:limit]

    def past_hosts(self, *, since: float, until: float, limit: int) -> tuple[int, set[str]]:
        found = self.past(since=since, until=until, limit=limit)
        return len(found), {row.host for row in found}

    def past_sums(self, *, since: float, until: float, slices: int) -> list[PastSum]:
        with self._lock:
            found = past_attempts(self.tables, since, until)
            return [past_sum(row, since, until, slices) for row in found]

    def ended_between(self, *, since: float, until: float) -> int:
        with self._lock:
            return sum(
                row.outcome not in (None, "void") and since <= (row.ended_at or 0.0) < until
                for row in self.tables.attempts.values()
            )

    def points(self, group: str, *, limit: int) -> list[Point]:
        with self._lock:
            newest = [row for _, row in reversed(self.tables.observations.get(group, ()))]
            return [_point(row) for row in newest[:limit]]

    # ------------------------------------------------------------------ output

    def segments_in_use(self) -> set[str]:
        with self._lock:
            return {row.segment for row in self.tables.attempts.values() if row.segment}

    def outputs(self, *, after: tuple[int, int], limit: int) -> list[StoredOutput]:
        with self._lock:
            found = [
                StoredOutput(key, output_of(row))
                for key, row in sorted(self.tables.attempts.items())
                if key > after and (row.segment or row.kept is not None)
            ]
            return found[:limit]

    def pruned(self, segments: Collection[str]) -> set[str]:
        with self._lock:
            return self.tables.pruned.intersection(segments)

    def back_up(self, draft: Path, *, target: Path, progress: Progress) -> BackedUp:
        return write_backup(self.tables, draft, progress)

    def close(self) -> None:
        """Does nothing: no resource is held."""


def _point(row: ObservationRow) -> Point:
    return Point(
        job=row.job,
        at=row.at,
        input_bytes=row.input_bytes,
        given_mem=row.given_mem,
        used_mem=row.mem,
        given_time_s=row.given_time_s,
        used_time_s=row.time_s,
        ok=row.outcome == "complete",
        asked_mem=row.asked_mem,
        asked_time_s=row.asked_time_s,
    )
