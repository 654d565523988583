"""Decide for each entry of a chunk whether it is new, existing, to be retried or a replacement.

Rows of new jobs are written with their chunk, except those with dependencies: their parents may be in a later
chunk.
"""

from __future__ import annotations

import msgspec

from rota.core.events import ChunkArrived, FormerJob
from rota.core.jobs.command import command_to_text
from rota.core.jobs.element import Element
from rota.core.jobs.job import Job
from rota.core.rows import JobRow, SubmissionRow
from rota.core.states import RETRYABLE, TERMINAL, State
from rota.core.submit.edited_input import former_of
from rota.core.submit.resubmission import catch_up, differences, warn
from rota.core.submit.upload import KnownEntry, Upload
from rota.core.turn import Turn
from rota.core.world import NO_JOB, OPEN, World


def applies(to: frozenset[int] | bool, entry: int) -> bool:
    """Is this entry, or every entry, meant?"""
    return to if isinstance(to, bool) else entry in to


def line_of(event: ChunkArrived, position: int) -> int:
    """The line of an entry, given its position in the chunk."""
    return event.lines[position] if event.lines else event.first + position + 1


def stage(world: World, turn: Turn, event: ChunkArrived, upload: Upload) -> None:
    """Take in the entries of a chunk."""
    with_after = {each.entry for each in event.after}
    live, staged, known = world.keys, upload.keys, event.known
    rows = turn.changes.jobs
    submission, now = event.submission, turn.wall
    special = bool(event.elements or event.inputs)
    fresh_ones, rerun_ones = event.fresh or False, event.rerun or False  # usually none of a hundred thousand
    for position, (cmd, key) in enumerate(zip(event.cmds, event.keys, strict=True)):
        entry = event.first + position
        index = event.spec_of[position] if event.spec_of else 0
        fresh = fresh_ones is not False and applies(fresh_ones, entry)
        again = rerun_ones is not False and not fresh and applies(rerun_ones, entry)
        found = None if fresh else live.get(key)
        state = world.jobs[found].state if found else None
        if found is None and not fresh and key in known and world.outcome(known[key].id) != NO_JOB:
            found, number = known[key]
            state = State(number)
            if world.is_replaced(found):
                found = None
        olds: list[FormerJob] = []
        if again and (state is None or state in TERMINAL):
            found, olds = _jobs_with_key(world, event, key)
            state = None if found is None else world.jobs[found].state
        if found is not None and state is not None:
            _take_known(world, upload, event, position, found, state, depends=entry in with_after)
            continue
        id = world.next_job + len(upload.added) if upload.check else world.new_job_id()
        spec, spec_id = event.specs[index], event.spec_ids[index]
        job = Job(id, key, spec, spec_id, cmd, State.READY, submission, now, ready_at=now)
        if special:
            _specialise(job, upload, event, entry)
        upload.jobs[id] = job
        staged[key] = id
        upload.entries.append(id)
        upload.added.append(id)
        if fresh:
            upload.fresh.add(id)
        elif olds:
            upload.replacing[id] = olds
        if entry not in with_after and not event.check:
            rows.append(row_of(job))
    upload.lines.extend(event.lines or range(event.first + 1, event.first + len(event.cmds) + 1))
    upload.after.extend((each.entry, each.parent, each.condition, each.local) for each in event.after)
    if event.first == 0 and not event.last and not event.check:
        write_submission(turn, SubmissionRow(submission, event.by.user, now, 0, None))


def _jobs_with_key(world: World, event: ChunkArrived, key: str) -> tuple[int | None, list[FormerJob]]:
    """Find the jobs with this key that were not replaced: one that has not ended, else all ended ones."""
    olds = {old.id: old for old in event.namesakes.get(key, ()) if world.outcome(old.id) != NO_JOB}
    if (newest := world.keys.get(key)) is not None:
        olds[newest] = former_of(world.jobs[newest])
    olds = {id: old for id, old in olds.items() if not world.is_replaced(id)}
    going = [id for id in olds if world.outcome(id) == OPEN]
    return (max(going), []) if going else (None, list(olds.values()))


def _take_known(
    world: World, upload: Upload, event: ChunkArrived, position: int, found: int, state: State, *, depends: bool
) -> None:
    """Record an entry whose job exists already."""
    upload.entries.append(found)
    job = world.jobs.get(found) or event.loaded.get(found)
    if state in RETRYABLE:
        upload.retried[found] = job
    else:
        upload.existing.append(found)
        if state is State.COMPLETE:
            upload.complete.append(found)
    entry = event.first + position
    index = event.spec_of[position] if event.spec_of else 0
    spec = event.specs[index]
    if depends or (job is not None and job.after):
        upload.known_entries[entry] = KnownEntry(
            found, event.keys[position], event.cmds[position], spec, event.spec_ids[index],
            event.inputs.get(entry), event.elements.get(entry), event.formers.get(found),
        )  # fmt: skip
    elif job is not None and state is not State.COMPLETE:
        names = differences(spec, job.spec, in_array=job.element is not None)
        if names:
            line = line_of(event, position)
            warn(upload, f"line {line}: job {found} keeps its own {', '.join(names)}; --rerun makes a new job")


def _specialise(job: Job, upload: Upload, event: ChunkArrived, entry: int) -> None:
    """Set the fields that a job does not share with others of its specification."""
    job.input_bytes = event.inputs.get(entry)
    if entry in event.elements:
        array, index = event.elements[entry]
        job.element = Element(upload.arrays.setdefault(array, job.id), index)


def renew(world: World, turn: Turn, event: ChunkArrived, upload: Upload, *, entry: int, known: KnownEntry) -> int:
    """Make a new job that replaces the existing job of an entry; returns its id."""
    id = world.next_job + len(upload.added) if upload.check else world.new_job_id()
    job = Job(
        id,
        known.key,
        known.spec,
        known.spec_id,
        known.cmd,
        State.READY,
        event.submission,
        turn.wall,
        ready_at=turn.wall,
    )
    job.input_bytes = known.input_bytes
    if known.array is not None:
        job.element = Element(upload.arrays.setdefault(known.array[0], id), known.array[1])
    old_job = world.jobs.get(known.job) or upload.retried.pop(known.job, None)
    upload.retried.pop(known.job, None)
    old = former_of(old_job) if old_job is not None else known.former
    del upload.known_entries[entry]
    upload.jobs[id] = job
    upload.keys[known.key] = id
    upload.entries[entry] = id
    upload.added.append(id)
    upload.replacing[id] = [] if old is None else [old]
    return id


def drop_doubles(world: World, turn: Turn, upload: Upload) -> None:
    """Drop new jobs that another submission added, re-opened or replaced meanwhile."""
    there = catch_up(world, upload)
    if not there:
        return
    for id in there:
        upload.retried.pop(id, None)
        upload.replacing.pop(id, None)
        if upload.jobs.pop(id, None) is not None and not upload.check:
            turn.changes.removed.append(id)
    upload.keys = {key: id for key, id in upload.keys.items() if id not in there}
    upload.added = [id for id in upload.added if id not in there]
    upload.entries = [there.get(id, id) for id in upload.entries]
    existing = {*upload.existing, *there.values()}
    upload.existing = [id for id in dict.fromkeys(upload.entries) if id in existing]
    upload.known_entries = {
        entry: known for entry, known in upload.known_entries.items() if known.job not in there
    }


def row_of(job: Job, *, pipeline_element: str | None = None) -> JobRow:
    """The row of a new job."""
    reason = job.reason
    after = msgspec.json.encode(job.after).decode() if job.after else None
    return JobRow(
        job.id, job.key, job.submission, job.spec_id, job.spec.group, job.spec.user, command_to_text(job.cmd),
        int(job.state), job.submitted_at, job.ready_at, reason.code if reason else None,
        reason.message if reason else None, after, job.input_bytes,
        job.element.array if job.element else None, job.element.index if job.element else None, pipeline_element,
    )  # fmt: skip


def write_submission(turn: Turn, row: SubmissionRow) -> None:
    """Write a submission's row, even if this batch dropped an earlier upload of it."""
    changes = turn.changes
    changes.dropped = [dropped for dropped in changes.dropped if dropped != row.id]
    changes.submissions.append(row)
