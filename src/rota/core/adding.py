"""Take submissions: chunk by chunk, visible all at once.

Rows of a chunk are written as it comes, marked as part of an unfinished upload; only the commit of
the last chunk makes them jobs. A refused chunk takes the whole submission back.
"""

from __future__ import annotations

from itertools import groupby

import msgspec

from rota.core import asking
from rota.core.acting import reopen_for_retry
from rota.core.answers import Added, compact_answer
from rota.core.dependencies import announce_blocked, register, ripple
from rota.core.effects import Reply
from rota.core.estimate import offer
from rota.core.events import ChunkArrived, LibraryGrew, UploadDropped
from rota.core.job import After, Element, Job, Spec, command_to_text
from rota.core.limiting import declare
from rota.core.parents import joined_by, resolve_after
from rota.core.reopening import reopen_dependents
from rota.core.states import RETRYABLE, State
from rota.core.turn import Turn
from rota.core.world import NO_JOB, OPEN, Upload, World, leave, touch
from rota.errors import BadInput, NeverFits, NotGranted, RotaError

_MOST_WARNINGS = 10


def on_chunk_arrived(world: World, turn: Turn, event: ChunkArrived) -> None:
    """Take one chunk; after the last one, answer."""
    if event.first == 0:
        _discard(world, turn, event.submission)
        world.uploads[event.submission] = Upload(check=event.check)
    upload = world.uploads.get(event.submission)
    if upload is None:
        raise BadInput(f"chunk begins at entry {event.first}, expected 0", hint="send the input again")
    try:
        _refuse_unfitting(event, upload)
        _refuse_impossible(world, event)
        _stage(world, turn, event, upload)
        upload.warnings += event.warnings[:_MOST_WARNINGS]
        if not event.last:
            turn.effects.append(Reply(event.by, None))
            return
        if event.first:
            _drop_doubles(world, turn, upload)
        edges = resolve_after(world, upload)
        _refuse_reservation(world, turn, upload)
    except RotaError:
        _discard(world, turn, event.submission)
        raise
    if upload.check:
        _discard(world, turn, event.submission)
        turn.effects.append(Reply(event.by, _answer(upload)))
        return
    _seal(world, turn, event, upload, edges)


def on_library_grew(world: World, turn: Turn, event: LibraryGrew) -> None:
    """Written whatever becomes of the submission that brought them: others may refer to them now."""
    turn.changes.envs.extend(event.envs)
    turn.changes.specs.extend(event.specs)


def on_upload_dropped(world: World, turn: Turn, event: UploadDropped) -> None:
    """The rest of a submission will never come."""
    _discard(world, turn, event.submission)


def _discard(world: World, turn: Turn, submission: str) -> None:
    """Take back everything of an unfinished upload, whether it was written already or not."""
    upload = world.uploads.pop(submission, None)
    if upload is None:
        return
    for id in upload.retried:
        leave(world, turn, id)  # it may have been kept in memory for this upload
    if upload.check or not upload.entries:
        return
    changes = turn.changes
    changes.jobs = [row for row in changes.jobs if row[0] not in upload.jobs]
    changes.submissions = [row for row in changes.submissions if row[0] != submission]
    changes.removed.extend((id,) for id in upload.jobs)
    changes.dropped.append((submission,))


def _refuse_unfitting(event: ChunkArrived, upload: Upload) -> None:
    """Refuse a chunk that does not continue the upload, or that speaks of entries of another chunk."""
    have = len(upload.entries)
    if event.first != have:
        raise BadInput(f"chunk begins at entry {event.first}, expected {have}", hint="send the input again")
    end = have + len(event.cmds)
    if event.check != upload.check or any(not have <= each.entry < end for each in event.after):
        raise BadInput("the chunk does not fit those before it", hint="send the input again")


def _line(event: ChunkArrived, position: int) -> int:
    return event.lines[position] if event.lines else event.first + position + 1


def _applies(to: frozenset[int] | bool, entry: int) -> bool:
    return to if isinstance(to, bool) else entry in to


def _refuse_impossible(world: World, event: ChunkArrived) -> None:
    """Refuse the chunk if an entry asks for what no host has. Each specification is looked at once."""
    impossible: dict[int, str] = {}
    for index in (sorted(set(event.spec_of)) if event.spec_of else [0]) if event.cmds else ():
        try:
            why = asking.impossible(world, event.specs[index])
        except BadInput as error:
            line = _line(event, event.spec_of.index(index) if event.spec_of else 0)
            raise BadInput(f"line {line}: {error.message}", hint=error.hint) from None
        if why is not None:
            impossible[index] = why
    if not impossible:
        return
    for position in range(len(event.cmds)):
        index = event.spec_of[position] if event.spec_of else 0
        if index in impossible and not _applies(event.allow_unsatisfiable, event.first + position):
            raise NeverFits(
                f"line {_line(event, position)}: {impossible[index]}",
                hint="ask for less, or keep it anyway with --allow-unsatisfiable",
            )


def _refuse_reservation(world: World, turn: Turn, upload: Upload) -> None:
    """A reservation is answered when it is asked for: a single one that cannot be granted is not added."""
    if len(upload.entries) != 1 or not upload.jobs:
        return
    (job,) = upload.jobs.values()
    if job.spec.at is None:
        return
    why = world.placement.rejection(asking.ask_of(job.spec, job.size), turn.wall)
    if why is not None:
        raise NotGranted(
            f"line {upload.lines[0]}: field 'at': the reservation is {why}",
            hint="ask for another time, or for less",
        )


def _stage(world: World, turn: Turn, event: ChunkArrived, upload: Upload) -> None:
    """Decide for each entry whether it is new, known or to be retried; write rows for the new ones."""
    with_after = {each.entry for each in event.after}
    live, staged, known = world.keys, upload.keys, event.known
    rows = turn.changes.jobs
    submission, now = event.submission, turn.wall
    special = bool(event.elements or event.inputs)
    for position, (cmd, key) in enumerate(zip(event.cmds, event.keys, strict=True)):
        index = event.spec_of[position] if event.spec_of else 0
        fresh = _applies(event.fresh, event.first + position)
        found = None if fresh else live.get(key)
        state = world.jobs[found].state if found else None
        if found is None and not fresh and key in known and world.outcome(known[key][0]) != NO_JOB:
            found, number = known[key]
            state = State(number)
        if found is not None and state is not None:
            upload.entries.append(found)
            if state in RETRYABLE:
                upload.retried[found] = world.jobs.get(found) or event.loaded.get(found)
            else:
                upload.existing.append(found)
                if state is State.COMPLETE:
                    upload.complete.append(found)
            known_job = world.jobs.get(found) or event.loaded.get(found)
            if known_job is not None and state is not State.COMPLETE:
                _warn_of_differences(upload, event, position, known_job)
            continue
        id = world.next_job + len(upload.added) if upload.check else world.new_job_id()
        spec, spec_id = event.specs[index], event.spec_ids[index]
        job = Job(id, key, spec, spec_id, cmd, State.READY, submission, now, ready_at=now)
        if special:
            _specialise(job, upload, event, event.first + position)
        upload.jobs[id] = job
        staged[key] = id
        upload.entries.append(id)
        upload.added.append(id)
        if fresh:
            upload.fresh.add(id)
        # Entries with dependencies are written with the last chunk: their parents may come later.
        if event.first + position not in with_after and not event.check:
            rows.append(_row(job))
    upload.lines.extend(event.lines or range(event.first + 1, event.first + len(event.cmds) + 1))
    upload.after.extend((each.entry, each.parent, each.condition, each.local) for each in event.after)
    if event.first == 0 and not event.last and not event.check:
        _write_submission(turn, (submission, event.by.user, now, 0, None))


def _specialise(job: Job, upload: Upload, event: ChunkArrived, entry: int) -> None:
    """What one job has that others of its specification have not."""
    job.input_bytes = event.inputs.get(entry)
    if entry in event.elements:
        array, index = event.elements[entry]
        job.element = Element(upload.arrays.setdefault(array, job.id), index)


def _write_submission(turn: Turn, row: tuple[object, ...]) -> None:
    changes = turn.changes
    changes.dropped = [dropped for dropped in changes.dropped if dropped[0] != row[0]]
    changes.submissions.append(row)


def _drop_doubles(world: World, turn: Turn, upload: Upload) -> None:
    """The same commands may have been added by somebody else while this upload was on its way."""
    other = {
        id: world.keys[key] for key, id in upload.keys.items() if key in world.keys and id not in upload.fresh
    }
    if not other:
        return
    for id in other:
        del upload.jobs[id]
        if not upload.check:
            turn.changes.removed.append((id,))
    upload.keys = {key: id for key, id in upload.keys.items() if id not in other}
    upload.added = [id for id in upload.added if id not in other]
    upload.entries = [other.get(id, id) for id in upload.entries]
    existing = {*upload.existing, *other.values()}
    upload.existing = [id for id in dict.fromkeys(upload.entries) if id in existing]


def _warn_of_differences(upload: Upload, event: ChunkArrived, position: int, job: Job) -> None:
    """A live job stays as it was asked for first; say what the new wish would have changed."""
    asked = event.specs[event.spec_of[position] if event.spec_of else 0]
    if asked == job.spec or len(upload.warnings) >= _MOST_WARNINGS:
        return
    # The environment is captured anew by every submission and differs by accident, and so does the name of
    # the limit that holds down an array.
    names = [
        n
        for n in Spec.__struct_fields__
        if n not in ("env", "limits") and getattr(asked, n) != getattr(job.spec, n)
    ]
    if [use for use in asked.limits if use not in job.spec.limits and not job.element]:
        names.append("limits")
    if names:
        upload.warnings.append(
            f"line {_line(event, position)}: job {job.id} keeps its own {', '.join(names)}; "
            "--rerun makes a new job"
        )


def _row(job: Job) -> tuple[object, ...]:
    reason = job.reason
    after = msgspec.json.encode(job.after).decode() if job.after else None
    return (
        job.id, job.key, job.submission, job.spec_id, job.spec.group, job.spec.user, command_to_text(job.cmd),
        int(job.state), job.submitted_at, job.ready_at, reason.code if reason else None,
        reason.message if reason else None, after, job.input_bytes,
        job.element.array if job.element else None, job.element.index if job.element else None,
    )  # fmt: skip


def _seal(world: World, turn: Turn, event: ChunkArrived, upload: Upload, after: dict[int, list[After]]) -> None:
    """All chunks are there: the new jobs become visible, the failed ones are retried."""
    del world.uploads[event.submission]
    declare(world, turn, event.limits)
    jobs = upload.jobs
    world.jobs.update(jobs)
    world.keys.update(upload.keys)
    for id in jobs:
        world.outcomes[id] = OPEN
    joined = joined_by(upload)
    for name, members in joined.items():
        turn.changes.dep_groups.setdefault(name, 0)
        for id in members:
            world.groups[name].join(id, State.READY)
    blocked = _enter_dependencies(world, turn, upload, after) if after else []
    _enter_queues(world, jobs)
    touch(world, jobs.values())
    if joined or blocked:
        ripple(world, turn, [*blocked, *(jobs[id] for id in {id for ids in joined.values() for id in ids})])
    if joined:
        reopen_dependents(world, turn, joined, ended=event.dependents)
    for id, loaded in upload.retried.items():
        reopen_for_retry(world, turn, id, loaded, by=event.by.user, why="added again")
        leave(world, turn, id)  # it may have ended since, and have been kept in memory for this upload
    answer = _answer(upload)
    _write_submission(
        turn, (event.submission, event.by.user, turn.wall, len(upload.entries), compact_answer(answer))
    )
    turn.effects.append(Reply(event.by, answer))


def _enter_dependencies(world: World, turn: Turn, upload: Upload, after: dict[int, list[After]]) -> list[Job]:
    """Put the new jobs that wait for something where they belong; those that are blocked."""
    jobs = upload.jobs
    for id, parents in after.items():
        jobs[id].after = tuple(dict.fromkeys(parents))
    if any(
        isinstance(each.parent, str) or each.parent in world.reach for waits in after.values() for each in waits
    ):
        for id in after:
            world.reach.find(id, lambda id: (each.parent for each in jobs[id].after) if id in jobs else ())
    blocked = []
    for id in sorted(after):
        job = jobs[id]
        job.state = register(world, job)
        if job.state is not State.READY:
            job.ready_at = None
            for name in job.spec.dep_groups:
                world.groups[name].move(id, State.READY, job.state)
        if job.state is State.BLOCKED:
            announce_blocked(world, turn, job)
            blocked.append(job)
        turn.changes.children.extend((each.parent, id) for each in job.after)
        if reach := world.reach.get(id):
            turn.changes.edges.extend((each.parent, id) for each in job.after)
            for name in job.spec.dep_groups:
                world.groups[name].wait_for(reach)
        turn.changes.jobs.append(_row(job))
    return blocked


def _answer(upload: Upload) -> Added:
    return Added(upload.added, upload.existing, list(upload.retried), upload.warnings, upload.complete)


def _enter_queues(world: World, jobs: dict[int, Job]) -> None:
    """Count the new jobs and offer those that are ready, run by run of equal specifications."""
    for spec, run in groupby(jobs.values(), key=lambda job: job.spec):
        ready = []
        counts = world.counts[spec.group]
        for job in run:
            counts[job.state] += 1
            if job.state is State.READY:
                ready.append(job)
        if ready:
            offer(world, ready)
