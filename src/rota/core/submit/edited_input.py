"""An input was edited: jobs of lines that it has no more give way, if they came to nothing.

What waits, runs or is complete stays, and so does whom somebody outside the input still waits for by its id.
Those of them that are not complete are looked at again each time: it does not matter when an edit was made.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from rota.core.events import ChunkArrived, FormerJob
from rota.core.jobs.job import Job
from rota.core.states import RETRYABLE, State
from rota.core.submit.parents import EntryParents
from rota.core.world import NO_JOB, OPEN, KnownEntry, Upload, World


class Reconciliation(NamedTuple):
    """What becomes of jobs that were there before a submission."""

    replaced: dict[int, tuple[FormerJob, int]]  #: job → what is known of it, and who takes its place, or 0
    successors: dict[int, int]  #: of these, job → the one that is identified like it
    changed: dict[int, KnownEntry]  #: job → as it is asked for now
    kept: list[int]  #: those that their input has no more and that stay


def former_of(job: Job) -> FormerJob:
    """A job in memory as one that is about to be replaced."""
    after = msgspec.json.encode(job.after).decode() if job.after else None
    return FormerJob(job.id, job.key, job.spec, after)


def drop_removed_lines(
    world: World, upload: Upload, reconciled: Reconciliation, *, entry_parents: EntryParents, event: ChunkArrived
) -> None:
    """Find jobs that the input once had and has no more, and add them to the plan."""
    contained = {*upload.entries, *reconciled.replaced}
    once = [*event.previous, *(id for id in event.kept if world.outcome(id) != State.COMPLETE)]
    gone = [id for id in once if id not in contained and not world.is_replaced(id)]
    dropped: dict[int, FormerJob] = {}
    for id in gone:
        outcome, job = world.outcome(id), world.jobs.get(id)
        if outcome == OPEN:
            if job is not None and job.state is State.BLOCKED:
                dropped[id] = former_of(job)
        elif outcome in RETRYABLE and (former := former_of(job) if job else event.dropped.get(id)):
            dropped[id] = former
    _keep_parents(world, reconciled, dropped, entry_parents)
    reconciled.kept.extend(id for id in dict.fromkeys(gone) if id not in dropped and world.outcome(id) != NO_JOB)
    places = _places(upload, reconciled, event.previous, dropped)
    for id, former in dropped.items():
        reconciled.replaced[id] = (former, places.get(id, 0))


def _keep_parents(
    world: World, reconciled: Reconciliation, dropped: dict[int, FormerJob], entry_parents: EntryParents
) -> None:
    """Take out again what an unchanged job waits for by its id: nothing else could release that job."""
    named = {each.parent for waits in entry_parents.new.values() for each in waits}
    named |= {each.parent for id in reconciled.changed for each in entry_parents.existing.get(id, ())}
    pending = list(dropped)
    while pending:
        id = pending.pop()
        children = {child for child, _condition in world.children.get(id, ())}
        if id not in dropped or not (id in named or children - dropped.keys() - reconciled.changed.keys()):
            continue
        del dropped[id]
        if (job := world.jobs.get(id)) is not None:
            pending += [each.parent for each in job.after if isinstance(each.parent, int)]


def _places(
    upload: Upload, reconciled: Reconciliation, previous: list[int], dropped: dict[int, FormerJob]
) -> dict[int, int]:
    """Whose place new jobs take: as many new lines between two that stayed as there were old ones."""
    stayed = {*previous} & {*upload.entries} | {*reconciled.successors.values()}
    old: dict[int, list[int]] = {}
    new: dict[int, list[int]] = {}
    anchor = 0
    for id in previous:
        if reconciled.successors.get(id, id) in stayed:
            anchor = reconciled.successors.get(id, id)
        elif id in dropped:
            old.setdefault(anchor, []).append(id)
    anchor = 0
    for id in upload.entries:
        if id in stayed:
            anchor = id
        elif id in upload.jobs:
            new.setdefault(anchor, []).append(id)
    pairs: dict[int, int] = {}
    for where, ids in old.items():
        if len(now := new.get(where, [])) == len(ids):
            pairs |= zip(ids, now, strict=True)
    return pairs
