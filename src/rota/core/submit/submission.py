"""Take submissions chunk by chunk; their jobs become visible all at once.

Rows of a chunk are written as it arrives, marked as unfinished; the commit of the last chunk makes them jobs. A
refused chunk undoes the whole submission.
"""

from __future__ import annotations

from rota.core.answers import MOST_WARNINGS
from rota.core.effects import SendReply
from rota.core.events import ChunkArrived, LibraryGrew, UploadDropped
from rota.core.gangs.admission import refuse_bad_gangs
from rota.core.gangs.conflicts import refuse_conflicts
from rota.core.site import planning_terms
from rota.core.site.plan_facts import inform
from rota.core.submit.edited_input import Reconciliation
from rota.core.submit.parents import EntryParents, joined_by, refuse_cycles, resolve_after
from rota.core.submit.resubmission import decide, rerun_dependents
from rota.core.submit.sealing import answer_to, seal
from rota.core.submit.staging import applies, drop_doubles, line_of, renew, stage
from rota.core.submit.upload import Upload
from rota.core.turn import Turn
from rota.core.world import World, evict_after_commit
from rota.errors import BadInput, NeverFits, NotGranted, RotaError
from rota.plan.ask import ask_of


def on_chunk_arrived(world: World, turn: Turn, event: ChunkArrived) -> None:
    """Take one chunk, and answer after the last."""
    if event.first == 0:
        _discard(world, turn, event.submission)
        world.uploads[event.submission] = Upload(check=event.check)
    upload = world.uploads.get(event.submission)
    if upload is None:
        raise BadInput(f"chunk begins at entry {event.first}, expected 0", hint="send the input again")
    try:
        _refuse_unfitting(event, upload)
        _refuse_impossible(world, event, upload)
        stage(world, turn, event, upload)
        upload.warnings += event.warnings[:MOST_WARNINGS]
        if not event.last:
            turn.effects.append(SendReply(event.by, None))
            return
        if event.first:
            drop_doubles(world, turn, upload)
        if upload.replacing and upload.known_entries:
            rerun_dependents(
                world,
                upload,
                lambda entry, known: renew(world, turn, event, upload, entry=entry, known=known),
            )
        entry_parents = resolve_after(world, upload)
        reconciled = decide(world, upload, entry_parents, event)
        _refuse_cycles(world, upload, entry_parents, reconciled)
        if upload.gangs:
            refuse_bad_gangs(world, upload, entry_parents.new)
            refuse_conflicts(world, turn, upload, event)
        _refuse_reservation(world, turn, upload)
    except RotaError:
        _discard(world, turn, event.submission)
        raise
    if upload.check:
        _discard(world, turn, event.submission)
        turn.effects.append(SendReply(event.by, answer_to(upload, reconciled)))
        return
    seal(world, turn, event, upload, entry_parents=entry_parents, reconciled=reconciled)


def on_library_grew(world: World, turn: Turn, event: LibraryGrew) -> None:
    """Write new specifications and environments, even if their submission is refused: others may refer to them
    already."""
    turn.changes.envs.extend(event.envs)
    turn.changes.specs.extend(event.specs)


def on_upload_dropped(world: World, turn: Turn, event: UploadDropped) -> None:
    """The rest of a submission will not arrive."""
    _discard(world, turn, event.submission)


def _discard(world: World, turn: Turn, submission: str) -> None:
    """Undo an unfinished upload, written or not."""
    upload = world.uploads.pop(submission, None)
    if upload is None:
        return
    if not world.uploads:
        world.successors.clear()
    for id in upload.retried:
        evict_after_commit(world, turn, id)  # it may have stayed in memory for this upload
    if upload.check or not upload.entries:
        return
    changes = turn.changes
    changes.jobs = [row for row in changes.jobs if row.id not in upload.jobs]
    # An earlier upload of the same id may have been accepted in this batch: its row stays, its jobs refer to it.
    changes.submissions = [row for row in changes.submissions if row.id != submission or row.answer is not None]
    changes.undone.extend(upload.jobs)
    changes.dropped.append(submission)
    world.give_back(upload.jobs)


def _refuse_unfitting(event: ChunkArrived, upload: Upload) -> None:
    """Raise if a chunk does not continue the upload or refers to entries of another chunk."""
    have = len(upload.entries)
    if event.first != have:
        raise BadInput(f"chunk begins at entry {event.first}, expected {have}", hint="send the input again")
    end = have + len(event.cmds)
    if event.check != upload.check or any(not have <= each.entry < end for each in event.after):
        raise BadInput("the chunk does not fit those before it", hint="send the input again")


def _refuse_impossible(world: World, event: ChunkArrived, upload: Upload) -> None:
    """Raise if an entry asks for what no host has. Checks each specification once. Members of gangs are examined
    together, when all have arrived."""
    impossible: dict[int, str] = {}
    for index in (sorted(set(event.spec_of)) if event.spec_of else [0]) if event.cmds else ():
        try:
            why = planning_terms.impossible(world, event.specs[index])
        except BadInput as error:
            line = line_of(event, event.spec_of.index(index) if event.spec_of else 0)
            raise error.at(line=line) from None
        if event.specs[index].gang:
            upload.gangs = True
        elif why is not None:
            impossible[index] = why
    if not impossible:
        return
    for position in range(len(event.cmds)):
        index = event.spec_of[position] if event.spec_of else 0
        if index in impossible and not applies(event.allow_unsatisfiable, event.first + position):
            raise NeverFits(
                impossible[index],
                line=line_of(event, position),
                hint="ask for less, or keep it anyway with --allow-unsatisfiable",
            )


def _refuse_cycles(world: World, upload: Upload, entry_parents: EntryParents, reconciled: Reconciliation) -> None:
    """Raise if there is a cycle. Skipped if none is possible: no groups, all jobs new, all parents on earlier
    lines."""
    after = entry_parents.new | {
        id: waits for id, waits in entry_parents.existing.items() if id in reconciled.changed
    }
    if after and (entry_parents.forward or reconciled.changed or reconciled.successors or joined_by(upload)):
        refuse_cycles(
            world,
            upload,
            after,
            changed={id: known.spec for id, known in reconciled.changed.items()},
            replaced={
                id: (former.spec, reconciled.successors.get(id, 0))
                for id, (former, _by) in reconciled.replaced.items()
            },
        )


def _refuse_reservation(world: World, turn: Turn, upload: Upload) -> None:
    """Raise if a single reservation cannot be granted: the answer is given at submission."""
    if len(upload.entries) != 1 or not upload.jobs:
        return
    (job,) = upload.jobs.values()
    if job.spec.at is None:
        return
    inform(world, turn.wall, anew=world.placement.planner is None)
    why = world.placement.rejection(ask_of(job.spec, job.size), turn.wall)
    if why is not None:
        raise NotGranted(
            f"the reservation is {why}",
            field="at",
            line=upload.lines[0],
            hint="ask for another time, or for less",
        )
