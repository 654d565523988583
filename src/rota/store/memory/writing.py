"""Writes `Changes` into the tables of a `MemoryStore`."""

from __future__ import annotations

from collections import deque

from msgspec.structs import replace

from rota.core.changes import Changes
from rota.core.jobs.command import command_from_text
from rota.core.rows import EndRow, JobRow
from rota.core.states import TERMINAL
from rota.core.stored import OBSERVATIONS, StoredAttempt, StoredJob
from rota.errors import Bug
from rota.store import json_columns
from rota.store.memory.tables import MemoryTables


def write(tables: MemoryTables, changes: Changes) -> None:
    """Write one batch. Raises `Bug` if it contradicts what is stored."""
    tables.undo(changes.undone)
    _check(tables, changes)
    if changes.moved_by:
        _move(tables, changes.moved_by)
    _write_submissions(tables, changes)
    _write_jobs(tables, changes)
    _write_dependencies(tables, changes)
    _write_attempts(tables, changes)
    _write_states(tables, changes)
    _write_facts(tables, changes)
    _write_observations(tables, changes)
    tables.sums.add(changes)


def _check(tables: MemoryTables, changes: Changes) -> None:
    """Raise what a database would raise, before anything is written."""
    named = tables.submissions.keys() | {row.id for row in changes.submissions}
    for job in changes.jobs:
        if job.id in tables.jobs or job.submission not in named:
            raise Bug(f"a batch contradicts the store: job {job.id} of submission {job.submission}")
    for row in changes.attempts:
        if (row.job, row.number) in tables.attempts:
            raise Bug(f"a batch contradicts the store: attempt {row.number} of job {row.job} is there already")


def _move(tables: MemoryTables, by: float) -> None:
    for job in tables.jobs.values():
        if job.state not in TERMINAL:
            job.submitted_at += by
            job.ready_at = None if job.ready_at is None else job.ready_at + by
            job.due_at = None if job.due_at is None else job.due_at + by
    for row in tables.attempts.values():
        if row.outcome is None:
            row.leased_at += by
            row.started_at = None if row.started_at is None else row.started_at + by


def _write_submissions(tables: MemoryTables, changes: Changes) -> None:
    stored = tables.submissions
    for row in changes.submissions:
        if row.input:
            for other in stored.values():
                if (other.user, other.input) == (row.user, row.input):
                    stored[other.id] = replace(other, input=None)
        old = stored.get(row.id)
        if old is not None and row.answer is None:
            row = replace(row, answer=old.answer)
        stored[row.id] = row
    tables.envs.update({row.id: row for row in changes.envs})
    tables.specs.update({row.id: row.spec for row in changes.specs})


def _write_jobs(tables: MemoryTables, changes: Changes) -> None:
    for row in changes.jobs:
        tables.jobs[row.id] = _new_job(row)
        tables.keys.setdefault(row.key, set()).add(row.id)
    for other in changes.respecified.values():
        if (job := tables.jobs.get(other.job)) is not None:
            job.spec_id, job.group, job.user = other.spec_id, other.group, other.user
            job.input_bytes = other.input_bytes
    for again in changes.rekeyed.values():
        if (job := tables.jobs.get(again.job)) is not None:
            tables.keys[job.key].discard(again.job)
            tables.keys.setdefault(again.key, set()).add(again.job)
            job.key, job.cmd = again.key, command_from_text(again.cmd)


def _new_job(row: JobRow) -> StoredJob:
    return StoredJob(
        id=row.id,
        key=row.key,
        submission=row.submission,
        spec_id=row.spec_id,
        group=row.group,
        user=row.user,
        cmd=command_from_text(row.cmd),
        state=int(row.state),
        attempt=0,
        tries=0,
        submitted_at=row.submitted_at,
        ready_at=row.ready_at,
        due_at=None,
        ended_at=None,
        reason_code=row.reason_code,
        reason_message=row.reason_message,
        after=json_columns.after(row.after),
        input_bytes=row.input_bytes,
        array=row.array,
        index=row.index,
        pipeline_element=row.pipeline_element,
    )


def _write_dependencies(tables: MemoryTables, changes: Changes) -> None:
    again = changes.reafter.keys()
    gone = again | {row.job for row in changes.replaced}
    if gone:
        tables.edges = {edge for edge in tables.edges if edge.child not in gone}
    if again:
        tables.children = {edge for edge in tables.children if edge.child not in again}
    for row in changes.reafter.values():
        if (job := tables.jobs.get(row.job)) is not None:
            job.after = json_columns.after(row.after)
    for replaced in changes.replaced:
        if (job := tables.jobs.get(replaced.job)) is not None:
            job.replaced_by = replaced.by
    tables.edges.update(changes.edges)
    tables.children.update(changes.children)
    for name, more in changes.dep_groups.items():
        tables.dep_groups[name] = tables.dep_groups.get(name, 0) + more


def _write_attempts(tables: MemoryTables, changes: Changes) -> None:
    tables.runners.update({row.id: row for row in changes.runners})
    stored = tables.attempts
    for row in changes.attempts:
        stored[row.job, row.number] = StoredAttempt(
            row.job,
            row.number,
            row.token,
            row.runner,
            row.host,
            row.leased_at,
            spec=row.spec_id,
            size=json_columns.size(row.size),
            given=json_columns.given(row.given),
        )
    for start in changes.starts:
        if (found := stored.get((start.job, start.number))) is not None:
            found.started_at, found.pid, found.seat = start.started_at, start.pid, start.seat
    for end in changes.ends:
        if (found := stored.get((end.job, end.number))) is not None:
            _end(found, end)
    for left in changes.returned:
        tables.returned[left.job, left.number] = left.returned
    for again in changes.regiven.values():
        if (found := stored.get((again.job, again.number))) is not None:
            found.given = json_columns.given(again.given)
    for void in changes.voids:
        if (found := stored.get((void.job, void.number))) is not None:
            found.outcome = "void"


def _end(attempt: StoredAttempt, row: EndRow) -> None:
    attempt.outcome, attempt.exit_code, attempt.signal = row.outcome, row.exit_code, row.signal
    attempt.reason_code, attempt.reason_message = row.reason_code, row.reason_message
    if row.started_at is not None:
        attempt.started_at = row.started_at
    attempt.ended_at, attempt.cpu_s = row.ended_at, row.cpu_s
    attempt.peak_mem, attempt.peak_disk = row.peak_mem, row.peak_disk
    attempt.segment, attempt.offset = row.segment, row.offset
    attempt.out_len, attempt.err_len = row.out_len, row.err_len
    attempt.out_total, attempt.err_total = row.out_total, row.err_total
    attempt.behaviours = json_columns.behaviours(row.behaviours)
    attempt.kept = json_columns.kept(row.kept)


def _write_states(tables: MemoryTables, changes: Changes) -> None:
    for row in changes.job_states.values():
        if (job := tables.jobs.get(row.job)) is not None:
            job.state, job.attempt, job.tries = int(row.state), row.attempt, row.tries
            job.due_at, job.ready_at, job.ended_at = row.due_at, row.ready_at, row.ended_at
            job.reason_code, job.reason_message = row.reason_code, row.reason_message
            job.floor = json_columns.floor(row.floor)
    tables.events += changes.events
    for key, more in changes.tally.items():
        tables.tally[key] = tables.tally.get(key, 0) + more
    tables.pruned.update(changes.pruned)
    tables.forget(changes.removed)
    for submission in changes.dropped:
        found = tables.submissions.get(submission)
        if found is not None and found.answer is None and not tables.has_jobs(submission):
            del tables.submissions[submission]


def _write_facts(tables: MemoryTables, changes: Changes) -> None:
    for key, fact in changes.meta.items():
        if fact is None:
            tables.meta.pop(key, None)
        else:
            tables.meta[key] = fact
    for name, declaration in changes.limits.items():
        if declaration is None:
            tables.limits.pop(name, None)
        else:
            tables.limits[name] = declaration
    for record, value in changes.site.items():
        if value is None:
            tables.site.pop(record, None)
        else:
            tables.site[record] = value
    for name, intent in changes.intents.items():
        if intent is None:
            tables.intents.pop(name, None)
        else:
            tables.intents[name] = intent


def _write_observations(tables: MemoryTables, changes: Changes) -> None:
    for group in changes.forgotten:
        tables.observations.pop(group, None)
    for row in changes.observations:
        tables.observed += 1
        newest = tables.observations.setdefault(row.group, deque(maxlen=OBSERVATIONS))
        newest.append((tables.observed, row))
