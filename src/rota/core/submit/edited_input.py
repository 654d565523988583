"""An input was edited: jobs of lines that it has no more give way, if they came to nothing.

What waits, runs or is complete stays, and so does whom somebody outside the input still waits for by its id.
Those of them that are not complete are looked at again each time: it does not matter when an edit was made.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from rota.core.events import ChunkArrived, Former
from rota.core.jobs.job import Job
from rota.core.states import RETRYABLE, State
from rota.core.submit.parents import Wishes
from rota.core.world import NO_JOB, OPEN, Met, Upload, World


class Plan(NamedTuple):
    """What becomes of jobs that were there before a submission."""

    replaced: dict[int, tuple[Former, int]]  #: job → what is known of it, and who takes its place, or 0
    heirs: dict[int, int]  #: of these, job → the one that is identified like it
    changed: dict[int, Met]  #: job → as it is asked for now
    kept: list[int]  #: those that their input has no more and that stay


def former_of(job: Job) -> Former:
    """A job in memory as one that is about to be replaced."""
    after = msgspec.json.encode(job.after).decode() if job.after else None
    return Former(job.id, job.key, job.spec, after)


def drop_lines(world: World, upload: Upload, plan: Plan, *, wishes: Wishes, event: ChunkArrived) -> None:
    """Find jobs that the input once had and has no more, and add them to the plan."""
    contained = {*upload.entries, *plan.replaced}
    once = [*event.previous, *(id for id in event.kept if world.outcome(id) != State.COMPLETE)]
    gone = [id for id in once if id not in contained and not world.is_replaced(id)]
    dropped: dict[int, Former] = {}
    for id in gone:
        outcome, job = world.outcome(id), world.jobs.get(id)
        if outcome == OPEN:
            if job is not None and job.state is State.BLOCKED:
                dropped[id] = former_of(job)
        elif outcome in RETRYABLE and (former := former_of(job) if job else event.dropped.get(id)):
            dropped[id] = former
    _keep_parents(world, plan, dropped, wishes)
    plan.kept.extend(id for id in dict.fromkeys(gone) if id not in dropped and world.outcome(id) != NO_JOB)
    places = _places(upload, plan, event.previous, dropped)
    for id, former in dropped.items():
        plan.replaced[id] = (former, places.get(id, 0))


def _keep_parents(world: World, plan: Plan, dropped: dict[int, Former], wishes: Wishes) -> None:
    """Take out again what an unchanged job waits for by its id: nothing else could release that job."""
    named = {each.parent for waits in wishes.new.values() for each in waits}
    named |= {each.parent for id in plan.changed for each in wishes.met.get(id, ())}
    pending = list(dropped)
    while pending:
        id = pending.pop()
        children = {child for child, _condition in world.children.get(id, ())}
        if id not in dropped or not (id in named or children - dropped.keys() - plan.changed.keys()):
            continue
        del dropped[id]
        if (job := world.jobs.get(id)) is not None:
            pending += [each.parent for each in job.after if isinstance(each.parent, int)]


def _places(upload: Upload, plan: Plan, previous: list[int], dropped: dict[int, Former]) -> dict[int, int]:
    """Whose place new jobs take: as many new lines between two that stayed as there were old ones."""
    stayed = {*previous} & {*upload.entries} | {*plan.heirs.values()}
    old: dict[int, list[int]] = {}
    new: dict[int, list[int]] = {}
    anchor = 0
    for id in previous:
        if plan.heirs.get(id, id) in stayed:
            anchor = plan.heirs.get(id, id)
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
