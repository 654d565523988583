"""Complete a submission: its jobs become visible and existing jobs are replaced or changed.

One decision and one commit. Replaced jobs leave first, then the new jobs enter, then changed jobs get their
dependencies, and finally all dependents are updated.
"""

from __future__ import annotations

from itertools import groupby

from rota.core.answers import Added, compact_answer
from rota.core.effects import SendReply
from rota.core.events import ChunkArrived
from rota.core.gangs.gang_state import gang_of
from rota.core.jobs.actions import reopen_for_retry
from rota.core.jobs.dependencies import announce_blocked, propagate, register_dependencies, waiting_state
from rota.core.jobs.job import After, Job
from rota.core.jobs.reopening import reopen_dependents
from rota.core.learning.estimate import offer
from rota.core.rows import EdgeRow, SubmissionRow
from rota.core.site.limits import declare
from rota.core.states import TERMINAL, State
from rota.core.submit.edited_input import Reconciliation
from rota.core.submit.parents import EntryParents, joined_by
from rota.core.submit.replacement import redirect_dependents, retire
from rota.core.submit.rewiring import reevaluate_waiting, respecify_again, unlink, update_ancestry
from rota.core.submit.staging import row_of, write_submission
from rota.core.submit.upload import Upload
from rota.core.turn import Turn
from rota.core.world import OPEN, World, evict_after_commit, touch


def seal(
    world: World,
    turn: Turn,
    event: ChunkArrived,
    upload: Upload,
    *,
    entry_parents: EntryParents,
    reconciled: Reconciliation,
) -> None:
    """Make the new jobs visible and re-open the retried ones."""
    del world.uploads[event.submission]
    if not world.uploads:
        world.successors.clear()
    declare(world, turn, event.limits)
    jobs = upload.jobs
    groups = retire(world, turn, reconciled.replaced)
    world.jobs.update(jobs)
    world.keys.update(upload.keys)
    for id in jobs:
        world.outcomes[id] = OPEN
    joined = joined_by(upload)
    for name, members in joined.items():
        turn.changes.dep_groups.setdefault(name, 0)
        for id in members:
            world.groups[name].join(id, State.READY)
    again = (
        _change(world, turn, upload, entry_parents, reconciled, joined=joined, left=groups)
        if reconciled.changed
        else []
    )
    if upload.gangs:
        for job in jobs.values():
            if job.spec.gang:
                gang_of(world, job)
    blocked = _enter_dependencies(world, turn, upload, entry_parents.new) if entry_parents.new else []
    if upload.gangs:
        blocked += _wait_together(world, turn, jobs)
    _enter_queues(world, jobs)
    touch(world, jobs.values())
    # From here on every job is counted in its state and may move.
    if again:
        update_ancestry(world, turn, {job.id: world.ancestry.get(job.id) for job in again})
        reevaluate_waiting(world, turn, again)
    redirect_dependents(
        world, turn, reconciled.successors, ended=event.followers, but={*jobs, *reconciled.changed}
    )
    if joined or blocked or groups or again:
        members_too = {id for ids in joined.values() for id in ids if id in world.jobs}
        propagate(world, turn, [*blocked, *again, *(world.jobs[id] for id in members_too)], groups=groups)
    if joined:
        reopen_dependents(world, turn, joined, ended=event.dependents)
    for id, loaded in upload.retried.items():
        reopen_for_retry(world, turn, id, loaded, by=event.by.user, why="added again")
        evict_after_commit(world, turn, id)  # it may have ended since and have stayed in memory for this upload
    answer = answer_to(upload, reconciled)
    kept = compact_answer(answer, upload.entries if event.input else None)
    write_submission(
        turn,
        SubmissionRow(event.submission, event.by.user, turn.wall, len(upload.entries), kept, event.input or None),
    )
    turn.effects.append(SendReply(event.by, answer))


def _change(
    world: World,
    turn: Turn,
    upload: Upload,
    entry_parents: EntryParents,
    reconciled: Reconciliation,
    *,
    joined: dict[str, list[int]],
    left: set[str],
) -> list[Job]:
    """Apply the new specifications and dependencies of existing jobs.

    Adds the groups that they join to `joined`, and the groups that they were in to `left`.
    """
    changed: list[Job] = []
    unlink(turn, reconciled.changed)
    for id, known in reconciled.changed.items():
        job = world.jobs.get(id) or upload.retried[id]
        if job is None or (job.state in TERMINAL and world.outcome(id) != job.state):
            continue
        if id not in world.jobs:  # it is re-opened below
            world.jobs[id] = job
            world.keys.setdefault(job.key, id)
        after = (
            job.after if id in entry_parents.fixed else tuple(dict.fromkeys(entry_parents.existing.get(id, ())))
        )
        left |= {*job.spec.dep_groups}
        for name in respecify_again(world, turn, job, known, after):
            joined.setdefault(name, []).append(id)
        changed.append(job)
    touch(world, changed)
    return changed


def _enter_dependencies(world: World, turn: Turn, upload: Upload, after: dict[int, list[After]]) -> list[Job]:
    """Register the dependencies of new jobs and set their states. Returns the blocked ones."""
    jobs = upload.jobs
    for id, parents in after.items():
        jobs[id].after = tuple(dict.fromkeys(parents))
    if any(
        isinstance(each.parent, str) or each.parent in world.ancestry for waits in after.values() for each in waits
    ):
        for id in after:
            world.ancestry.find(id, lambda id: (each.parent for each in jobs[id].after) if id in jobs else ())
    blocked = []
    for id in sorted(after):
        job = jobs[id]
        job.state = register_dependencies(world, job)
        if job.state is not State.READY:
            job.ready_at = None
            for name in job.spec.dep_groups:
                world.groups[name].move(id, State.READY, job.state)
        if job.state is State.BLOCKED:
            announce_blocked(world, turn, job)
            blocked.append(job)
        turn.changes.children.extend(EdgeRow(each.parent, id) for each in job.after)
        if reach := world.ancestry.get(id):
            turn.changes.edges.extend(EdgeRow(each.parent, id) for each in job.after)
            for name in job.spec.dep_groups:
                world.groups[name].wait_for(reach)
        turn.changes.jobs.append(row_of(job))
    return blocked


def _wait_together(world: World, turn: Turn, jobs: dict[int, Job]) -> list[Job]:
    """Members of gangs are ready, dependent or blocked together. Returns those that are blocked now."""
    blocked = []
    for job in jobs.values():
        if not job.spec.gang or (state := waiting_state(world, job)) is job.state:
            continue
        for name in job.spec.dep_groups:
            world.groups[name].move(job.id, job.state, state)
        job.state, job.ready_at = state, None
        if state is State.BLOCKED:
            announce_blocked(world, turn, job)
            blocked.append(job)
    return blocked


def answer_to(upload: Upload, reconciled: Reconciliation) -> Added:
    """The answer for the user."""
    return Added(
        upload.added, upload.existing, list(upload.retried), upload.warnings, upload.complete,
        sorted(reconciled.replaced), sorted(reconciled.changed), reconciled.kept,
    )  # fmt: skip


def _enter_queues(world: World, jobs: dict[int, Job]) -> None:
    """Count the new jobs, and offer the ready ones in runs of equal specifications."""
    for spec, run in groupby(jobs.values(), key=lambda job: job.spec):
        ready = []
        counts = world.counts[spec.group]
        for job in run:
            counts[job.state] += 1
            if job.state is State.READY:
                ready.append(job)
        if ready:
            offer(world, ready)
