"""Edited inputs: jobs whose line is gone from their input are replaced, if they failed, were cancelled or are
blocked.

Waiting, running and complete jobs stay, and so does a job that another job outside the input depends on by id.
Unless it is complete, a job that stayed is examined again at every later submission.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from rota.core.events import ChunkArrived, FormerJob
from rota.core.jobs.job import Job
from rota.core.states import RETRYABLE, State
from rota.core.submit.parents import EntryParents
from rota.core.submit.upload import KnownEntry, Upload
from rota.core.world import NO_JOB, OPEN, World


class Reconciliation(NamedTuple):
    """What a submission does to jobs that existed before it."""

    replaced: dict[int, tuple[FormerJob, int]]  #: job → (the job, its successor or 0)
    successors: dict[int, int]  #: replaced job → successor with the same identity
    changed: dict[int, KnownEntry]  #: job → its entry, as asked for now
    kept: list[int]  #: jobs that stay although their line is gone


def former_of(job: Job) -> FormerJob:
    """A job in memory, as one about to be replaced."""
    after = msgspec.json.encode(job.after).decode() if job.after else None
    return FormerJob(job.id, job.key, job.spec, after)


def drop_removed_lines(
    world: World, upload: Upload, reconciled: Reconciliation, *, entry_parents: EntryParents, event: ChunkArrived
) -> None:
    """Find jobs whose line is gone from the input, and add them to the reconciliation."""
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
    """Take back jobs that an unchanged job depends on by id: nothing else could release that job."""
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
    """Pair dropped jobs with new ones: if as many lines are new as were dropped between two that stayed."""
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
