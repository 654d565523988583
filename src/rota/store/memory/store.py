"""A store in plain dictionaries: for tests and the simulator. It keeps every promise but durability."""

from __future__ import annotations

import base64
import threading
from array import array
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from copy import deepcopy
from itertools import chain
from typing import Final

import msgspec

from rota.core.attempts.parts import lease_hosts
from rota.core.changes import Changes, Row
from rota.core.jobs.command import command_from_text, command_to_text
from rota.core.jobs.job import Parent, Spec
from rota.core.jobs.report_groups import has_prefix, is_in
from rota.core.output.output_blocks import Output
from rota.core.states import TERMINAL, State
from rota.core.stored import OBSERVATIONS, StoredAttempt, StoredJob, StoredRunner, StoreSnapshot, output_of
from rota.errors import Bug, NotFound, StoreFull
from rota.store.base import (
    Accounts,
    Brief,
    Clause,
    Order,
    Point,
    RunningAttempt,
    StoredEvent,
    StoredSubmission,
    folded,
)
from rota.store.memory.past import past_attempt, past_sum
from rota.store.memory.sums import MemorySums
from rota.store.past import PastAttempt, PastSum, overlaps
from rota.store.sqlite import json_columns

_NO_JOB: Final = 255
#: Columns of an observation that models use; the job comes after them.
_OBSERVED: Final = 11


_NONE: Final[Mapping[int, int]] = {}


class MemoryStore:
    """A `Store` without a disk. `room` stands in for free space: False is a full disk."""

    def __init__(self) -> None:
        self.room = True
        self._lock = threading.RLock()
        self._submissions: dict[str, StoredSubmission] = {}
        self._envs: dict[int, tuple[str, str]] = {}
        self._specs: dict[int, str] = {}
        self._jobs: dict[int, StoredJob] = {}
        self._attempts: dict[tuple[int, int], StoredAttempt] = {}
        self._events: list[StoredEvent] = []
        self._runners: dict[str, Row] = {}
        self._tally: dict[tuple[str, int], int] = {}
        self._meta: dict[str, str] = {}
        self._pruned: set[str] = set()
        self._highest_job = 0
        self._keys: dict[str, set[int]] = {}
        self._edges: set[tuple[Parent, int]] = set()
        self._children: set[tuple[Parent, int]] = set()
        self._dep_groups: dict[str, int] = {}
        self._limits: dict[str, str] = {}
        self._site: dict[tuple[str, str], str] = {}
        self._observed = 0  #: observations ever made; they are loaded in this order
        self._observations: dict[str, deque[tuple[int, Row]]] = {}
        self._sums = MemorySums()

    def reopened(self) -> MemoryStore:
        """A new store with everything committed so far, as found after a kill."""
        other = MemoryStore()
        with self._lock:
            for name, value in vars(self).items():
                if name != "_lock":
                    setattr(other, name, deepcopy(value))
        return other

    def load(self) -> StoreSnapshot:
        with self._lock:
            return self._snapshot()

    def commit(self, changes: Changes) -> None:
        with self._lock:
            if not self.room:
                raise StoreFull("there is no room", hint="free some space")
            self._undo({row[0] for row in changes.undone})
            self._check(changes)
            if changes.moved_by:
                self._move(changes.moved_by)
            self._insert(changes)
            self._run(changes)
            self._settle(changes)
            self._learn(changes)
            self._sums.add(changes)

    def can_accept(self, live_jobs: int) -> bool:
        return self.room

    def known_keys(self, user: str, keys: list[str]) -> dict[str, tuple[int, int]]:
        known: dict[str, tuple[int, int]] = {}
        with self._lock:
            for key in keys:
                same = [self._jobs[n] for n in self._keys.get(key, ())]
                seen = [job.id for job in same if self._visible(job) and job.replaced_by is None]
                if seen:
                    known[key] = (max(seen), self._jobs[max(seen)].state)
        return known

    def namesakes(self, keys: list[str]) -> list[Brief]:
        with self._lock:
            return self.briefs([n for key in keys for n in self._keys.get(key, ())])

    def briefs(self, ids: list[int]) -> list[Brief]:
        with self._lock:
            found = [self._jobs[n] for n in sorted(set(ids)) if n in self._jobs]
            return [
                Brief(job.key, job.id, job.state, job.spec_id, json_columns.after_text(job.after))
                for job in found
                if job.replaced_by is None and self._visible(job)
            ]

    def submission(self, submission: str) -> StoredSubmission | None:
        with self._lock:
            return deepcopy(self._submissions.get(submission))

    def last_of_input(self, user: str, name: str) -> StoredSubmission | None:
        with self._lock:
            found = [s for s in self._submissions.values() if (s.user, s.input) == (user, name)]
            return deepcopy(found[0]) if found else None

    def last_submission(self, user: str) -> StoredSubmission | None:
        with self._lock:
            mine = [s for s in self._submissions.values() if s.user == user and s.answer is not None]
            # Of equal times take the one stored last; dictionaries keep insertion order.
            return deepcopy(max(reversed(mine), key=lambda s: s.at, default=None))

    def find(self, clauses: list[Clause], *, above: int, limit: int) -> list[int]:
        with self._lock:
            return sorted(job.id for job in self._matching(clauses) if job.id > above)[:limit]

    def count(self, clauses: list[Clause], *, search: str = "", named: Collection[int] = ()) -> int:
        with self._lock:
            return sum(1 for job in self._matching(clauses) if _found(job, search, named))

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
        sign = -1 if order.descending else 1
        found: list[tuple[bool, float, int]] = []
        with self._lock:
            begun = {
                row.job: row.started_at
                for row in self._attempts.values()
                if order.by == "started" and row.outcome is None and row.started_at is not None
            }
            for job in self._matching(clauses):
                if not _found(job, search, named):
                    continue
                value = begun.get(job.id) or _ranked(job, self._newest(job), order.by, specs)
                found.append((value is None, sign * (value or 0), sign * job.id))
        ids = [sign * id for _unknown, _value, id in sorted(found)]
        return array("q", ids if limit < 0 else ids[:limit])

    def jobs(self, ids: list[int]) -> list[StoredJob]:
        with self._lock:
            known = [self._jobs[n] for n in sorted(set(ids)) if n in self._jobs]
            return [
                msgspec.structs.replace(job, newest=deepcopy(self._newest(job)))
                for job in known
                if self._visible(job)
            ]

    def tally(self, clauses: list[Clause]) -> dict[tuple[str, int], int]:
        total: dict[tuple[str, int], int] = {}
        with self._lock:
            for job in self._matching(clauses):
                total[job.group, job.state] = total.get((job.group, job.state), 0) + 1
        return total

    def attempts(self, job: int) -> list[StoredAttempt]:
        with self._lock:
            return [deepcopy(row) for key, row in sorted(self._attempts.items()) if key[0] == job]

    def events(self, job: int) -> list[StoredEvent]:
        with self._lock:
            return [deepcopy(event) for event in self._events if event.job == job]

    def dependents(self, parents: list[Parent]) -> list[int]:
        with self._lock:
            return sorted({child for parent, child in self._edges if parent in parents})

    def children(self, parent: Parent, *, limit: int) -> tuple[list[int], int]:
        with self._lock:
            found = sorted(child for each, child in self._children if each == parent)
            return found[:limit], len(found)

    def followers(self, parents: list[int]) -> list[int]:
        with self._lock:
            return sorted({child for parent, child in self._children if parent in parents})

    def accounts(self, *, first: int, end: int) -> Accounts:
        with self._lock:
            running = [
                RunningAttempt(row.spec or self._jobs[row.job].spec_id, row.size, row.given, row.started_at)
                for _, row in sorted(self._attempts.items())
                if row.outcome is None and row.started_at is not None
            ]
            return Accounts(self._sums.accounts(first, end), running)

    def minutes(self, *, since: int) -> list[tuple[int, ...]]:
        with self._lock:
            return self._sums.minutes(since)

    def host_states(self, *, host: str, since: int, until: int) -> list[tuple[str, int, str]]:
        with self._lock:
            return self._sums.host_states(host, since, until)

    def past(self, *, since: float, until: float, limit: int) -> list[PastAttempt]:
        with self._lock:
            return self._past(since, until)[:limit]

    def past_hosts(self, *, since: float, until: float, limit: int) -> tuple[int, set[str]]:
        found = self.past(since=since, until=until, limit=limit)
        return len(found), {row.host for row in found}

    def _past(self, since: float, until: float) -> list[PastAttempt]:
        found = []
        for _, row in sorted(self._attempts.items()):
            if overlaps(row, since, until):
                job = self._jobs[row.job]
                found.append(past_attempt(row, job.spec_id, job.group))
        return found

    def past_sums(self, *, since: float, until: float, slices: int) -> list[PastSum]:
        with self._lock:
            return [past_sum(row, since, until, slices) for row in self._past(since, until)]

    def ended_between(self, *, since: float, until: float) -> int:
        with self._lock:
            return sum(
                row.outcome not in (None, "void") and since <= (row.ended_at or 0.0) < until
                for row in self._attempts.values()
            )

    def points(self, group: str, *, limit: int) -> list[Point]:
        with self._lock:
            newest = [row for _, row in reversed(self._observations.get(group, ()))]
            return [_point(*row) for row in newest[:limit]]

    def env(self, env_id: int) -> bytes:
        with self._lock:
            if env_id not in self._envs:
                raise NotFound(f"there is no environment {env_id}")
            return base64.b64decode(self._envs[env_id][1])

    def segments_in_use(self) -> set[str]:
        with self._lock:
            return {row.segment for row in self._attempts.values() if row.segment}

    def outputs(self, *, after: tuple[int, int], limit: int) -> list[tuple[tuple[int, int], Output]]:
        with self._lock:
            found = [
                (key, output_of(row))
                for key, row in sorted(self._attempts.items())
                if key > after and (row.segment or row.kept is not None)
            ]
            return found[:limit]

    def pruned(self, segments: Collection[str]) -> set[str]:
        with self._lock:
            return self._pruned.intersection(segments)

    def close(self) -> None:
        """Does nothing: no resource is held."""

    def _snapshot(self) -> StoreSnapshot:
        for name in [s.id for s in self._submissions.values() if s.answer is None]:
            self._forget([n for n, job in self._jobs.items() if job.submission == name])
            del self._submissions[name]
        next_job = max(self._highest_job, *self._jobs, 0) + 1
        outcomes = bytearray([_NO_JOB]) * next_job
        for n, job in self._jobs.items():
            outcomes[n] = job.state if job.state in TERMINAL else 0
        open_attempts = [row for _, row in sorted(self._attempts.items()) if row.outcome is None]
        holding = {row.runner for row in open_attempts}
        specs = {n: msgspec.json.decode(text, type=Spec) for n, text in self._specs.items()}
        members = {n for n, spec in specs.items() if spec.dep_groups}
        edges = sorted((edge for edge in self._edges if edge[1] in self._jobs), key=_jobs_before_groups)
        return StoreSnapshot(
            jobs=[deepcopy(self._jobs[n]) for n in sorted(self._jobs) if outcomes[n] == 0],
            open_attempts=deepcopy(open_attempts),
            specs=specs,
            env_ids={digest: n for n, (digest, _) in self._envs.items()},
            outcomes=bytes(outcomes),
            tally=dict(self._tally),
            runners=[StoredRunner(*row) for n, row in sorted(self._runners.items()) if n in holding],
            meta=dict(self._meta),
            next_job=next_job,
            next_spec=max(0, 0, *self._specs) + 1,
            next_env=max(0, 0, *self._envs) + 1,
            limits=dict(self._limits),
            site=dict(self._site),
            dep_groups=dict(self._dep_groups),
            bad_members=[
                (n, job.spec_id)
                for n, job in sorted(self._jobs.items())
                if job.state in TERMINAL
                and job.state != State.COMPLETE
                and job.spec_id in members
                and job.replaced_by is None
            ],
            edges=edges,
            edge_specs={n: self._jobs[n].spec_id for _, n in edges if self._jobs[n].spec_id in members},
            observations=[row[:_OBSERVED] for _, row in sorted(chain(*self._observations.values()))],
            host_states=self._sums.last_host_states(),
            replaced=[n for n, job in sorted(self._jobs.items()) if job.replaced_by is not None],
        )

    def _check(self, changes: Changes) -> None:
        """Raise what a database would raise, before anything is written."""
        named = self._submissions.keys() | {row[0] for row in changes.submissions}
        for row in changes.jobs:
            if row[0] in self._jobs or row[2] not in named:
                raise Bug(f"a batch contradicts the store: job {row[0]} of submission {row[2]}")
        for row in changes.attempts:
            if row[:2] in self._attempts:
                raise Bug(f"a batch contradicts the store: attempt {row[:2]} is there already")

    def _move(self, by: float) -> None:
        for job in self._jobs.values():
            if job.state not in TERMINAL:
                job.submitted_at += by
                job.ready_at = None if job.ready_at is None else job.ready_at + by
                job.due_at = None if job.due_at is None else job.due_at + by
        for row in self._attempts.values():
            if row.outcome is None:
                row.leased_at += by
                row.started_at = None if row.started_at is None else row.started_at + by

    def _insert(self, changes: Changes) -> None:
        for name, user, at, count, answer, *source in changes.submissions:
            if source and source[0]:
                for other in self._submissions.values():
                    if (other.user, other.input) == (user, source[0]):
                        other.input = None
            old = self._submissions.get(name)
            sealed = old.answer if old is not None and answer is None else answer
            self._submissions[name] = StoredSubmission(name, user, at, count, sealed, *source)
        self._envs.update({row[0]: (row[1], row[2]) for row in changes.envs})
        self._specs.update({row[0]: row[1] for row in changes.specs})
        for (
            n,
            key,
            submission,
            spec,
            group,
            user,
            cmd,
            state,
            at,
            ready,
            code,
            message,
            after,
            input_bytes,
            array_id,
            index,
        ) in changes.jobs:
            self._jobs[n] = StoredJob(
                id=n, key=key, submission=submission, spec_id=spec, group=group, user=user,
                cmd=command_from_text(cmd), state=int(state), attempt=0, tries=0, submitted_at=at, ready_at=ready,
                due_at=None, ended_at=None, reason_code=code, reason_message=message,
                after=json_columns.after(after), input_bytes=input_bytes, array=array_id, index=index,
            )  # fmt: skip
            self._keys.setdefault(key, set()).add(n)
        for n, spec, group, user, input_bytes in changes.respecified.values():
            if (job := self._jobs.get(n)) is not None:
                job.spec_id, job.group, job.user, job.input_bytes = spec, group, user, input_bytes
        for n, key, cmd, _former in changes.rekeyed.values():
            if (job := self._jobs.get(n)) is not None:
                self._keys[job.key].discard(n)
                self._keys.setdefault(key, set()).add(n)
                job.key, job.cmd = key, command_from_text(cmd)
        again = changes.reafter.keys()
        gone = again | {n for n, _by in changes.replaced}
        self._edges = {edge for edge in self._edges if edge[1] not in gone} if gone else self._edges
        self._children = {edge for edge in self._children if edge[1] not in again} if again else self._children
        for n, after in changes.reafter.values():
            if (job := self._jobs.get(n)) is not None:
                job.after = json_columns.after(after)
        for n, by in changes.replaced:
            if (job := self._jobs.get(n)) is not None:
                job.replaced_by = by
        self._edges.update((parent, child) for parent, child in changes.edges)
        self._children.update((parent, child) for parent, child in changes.children)
        self._runners.update({row[0]: tuple(row) for row in changes.runners})

    def _run(self, changes: Changes) -> None:
        for row in changes.attempts:
            attempt = self._attempts[row[0], row[1]] = StoredAttempt(*row[:6])
            attempt.spec, attempt.size, attempt.given = (
                row[6],
                json_columns.size(row[7]),
                json_columns.given(row[8]),
            )
        for job, number, started_at, pid, seat in changes.starts:
            if (found := self._attempts.get((job, number))) is not None:
                found.started_at, found.pid, found.seat = started_at, pid, seat
        for row in changes.ends:
            if (found := self._attempts.get((row[0], row[1]))) is not None:
                _end(found, row)
        for job, number, given in changes.regiven.values():
            if (found := self._attempts.get((job, number))) is not None:
                found.given = json_columns.given(given)
        for job, number in changes.voids:
            if (found := self._attempts.get((job, number))) is not None:
                found.outcome = "void"

    def _settle(self, changes: Changes) -> None:
        for n, state, number, tries, due, ready, ended, code, message, floor in changes.job_states.values():
            if (job := self._jobs.get(n)) is not None:
                job.state, job.attempt, job.tries = int(state), number, tries
                job.due_at, job.ready_at, job.ended_at = due, ready, ended
                job.reason_code, job.reason_message, job.floor = code, message, json_columns.floor(floor)
        self._events += [StoredEvent(*row) for row in changes.events]
        for key, more in changes.tally.items():
            self._tally[key] = self._tally.get(key, 0) + more
        self._meta.update(changes.meta)
        self._pruned.update(name for (name,) in changes.pruned)
        self._forget([row[0] for row in changes.removed])
        for (submission,) in changes.dropped:
            found = self._submissions.get(submission)
            if found is not None and found.answer is None and not self._has_jobs(submission):
                del self._submissions[submission]

    def _undo(self, ids: set[int]) -> None:
        """Remove the jobs of refused uploads; their ids may be reused."""
        for n in ids & self._jobs.keys():
            self._keys[self._jobs.pop(n).key].discard(n)

    def _learn(self, changes: Changes) -> None:
        for name, more in changes.dep_groups.items():
            self._dep_groups[name] = self._dep_groups.get(name, 0) + more
        for name, declaration in changes.limits.items():
            if declaration is None:
                self._limits.pop(name, None)
            else:
                self._limits[name] = declaration
        for record, value in changes.site.items():
            if value is None:
                self._site.pop(record, None)
            else:
                self._site[record] = value
        for (group,) in changes.forgotten:
            self._observations.pop(group, None)
        for row in changes.observations:
            self._observed += 1
            newest = self._observations.setdefault(row[0], deque(maxlen=OBSERVATIONS))
            newest.append((self._observed, tuple(row)))

    def _has_jobs(self, submission: str) -> bool:
        return any(job.submission == submission for job in self._jobs.values())

    def _forget(self, ids: list[int]) -> None:
        gone = set(ids)
        if not gone:
            return
        self._highest_job = max(self._highest_job, *self._jobs, 0)
        for n in gone & self._jobs.keys():
            self._keys[self._jobs[n].key].discard(n)
            del self._jobs[n]
        for attempt in [key for key in self._attempts if key[0] in gone]:
            del self._attempts[attempt]
        self._events = [event for event in self._events if event.job not in gone]
        self._edges = {edge for edge in self._edges if edge[1] not in gone}
        self._children = {edge for edge in self._children if edge[1] not in gone}

    def _visible(self, job: StoredJob) -> bool:
        return self._submissions[job.submission].answer is not None

    def _newest(self, job: StoredJob) -> StoredAttempt | None:
        return self._attempts.get((job.id, job.attempt))

    def _matching(self, clauses: list[Clause]) -> Iterator[StoredJob]:
        for job in self._jobs.values():
            if self._visible(job) and any(self._matches(job, clause) for clause in clauses):
                yield job

    def _specified(self, job: StoredJob, clause: Clause) -> bool:
        if not (clause.queue or clause.project or clause.name or clause.name_prefix):
            return True
        spec = msgspec.json.decode(self._specs[job.spec_id], type=Spec)
        return (
            clause.queue in ("", spec.queue)
            and clause.project in ("", spec.project)
            and clause.name in ("", spec.name)
            and spec.name.startswith(clause.name_prefix)
        )

    def _matches(self, job: StoredJob, clause: Clause) -> bool:
        newest = self._newest(job)
        return (
            clause.low <= job.id <= (clause.high or job.id)
            and (not clause.group or is_in(clause.group, job.group))
            and clause.user in ("", job.user)
            and clause.submission in ("", job.submission)
            and clause.state in (0, job.state)
            and clause.array in (0, job.array)
            and (not (clause.array and clause.indexes) or _within(job.index, clause.indexes))
            and self._specified(job, clause)
            and (not clause.host or (newest is not None and clause.host in _hosts(newest)))
            and (not clause.group_prefix or has_prefix(clause.group_prefix, job.group))
            and (clause.exits is None or (newest is not None and _within(newest.exit_code, (clause.exits,))))
            and (not clause.before or _last_moment(job) < clause.before)
            and (not clause.cmd_text or folded(clause.cmd_text) in folded(command_to_text(job.cmd)))
        )


def _hosts(attempt: StoredAttempt) -> tuple[str, ...]:
    return attempt.host, *lease_hosts(attempt.given)


def _end(attempt: StoredAttempt, row: Row) -> None:
    (
        attempt.outcome, attempt.exit_code, attempt.signal, attempt.reason_code, attempt.reason_message,
        started_at, attempt.ended_at, attempt.cpu_s, attempt.peak_mem, attempt.peak_disk, attempt.segment,
        attempt.offset, attempt.out_len, attempt.err_len, attempt.out_total, attempt.err_total, behaviours,
        kept,
    ) = row[2:]  # fmt: skip
    if started_at is not None:
        attempt.started_at = started_at
    attempt.behaviours = json_columns.behaviours(behaviours)
    attempt.kept = json_columns.kept(kept)


def _point(
    _group: str,
    _place: int,
    at: float,
    mem: int,
    _disk: int,
    time_s: float,
    outcome: str,
    input_bytes: int | None,
    given_mem: int,
    _given_disk: int,
    given_time_s: float,
    job: int | None = None,
    asked_mem: int | None = None,
    _asked_disk: int | None = None,
    asked_time_s: float | None = None,
) -> Point:
    ok = outcome == "complete"
    return Point(job, at, input_bytes, given_mem, mem, given_time_s, time_s, ok, asked_mem, asked_time_s)


def _jobs_before_groups(edge: tuple[Parent, int]) -> tuple[bool, Parent, int]:
    return isinstance(edge[0], str), *edge


def _within(number: int | None, spans: tuple[tuple[int, int], ...]) -> bool:
    return number is not None and any(low <= number <= high for low, high in spans)


def _last_moment(job: StoredJob) -> float:
    return job.submitted_at if job.ended_at is None else job.ended_at


def _ranked(job: StoredJob, newest: StoredAttempt | None, by: str, specs: Mapping[int, int]) -> float | None:
    """The sort key of a job."""
    match by:
        case "submitted":
            return job.submitted_at
        case "ended":
            return job.ended_at
        case "priority":
            return specs.get(job.spec_id)
        case "id":
            return 0.0
    if newest is None:
        return None
    if by == "wall":
        over, begun = newest.ended_at, newest.started_at
        return over - begun if over is not None and begun is not None else None
    return {"started": newest.started_at, "cpu": newest.cpu_s, "mem": newest.peak_mem}[by]


def _found(job: StoredJob, search: str, named: Collection[int]) -> bool:
    return not search or folded(search) in folded(command_to_text(job.cmd)) or job.spec_id in named
