"""Modify jobs that are not running: their size, rank and names."""

from __future__ import annotations

from rota.core.answers import MOST_WARNINGS, Acted
from rota.core.effects import SendReply
from rota.core.events import JobsModified
from rota.core.jobs.job import Job, Spec
from rota.core.learning.estimate import estimate
from rota.core.site.planning_terms import impossible
from rota.core.states import RETRYABLE, TERMINAL, WAITING, State
from rota.core.turn import Turn
from rota.core.world import World, dequeue, touch, write
from rota.errors import NeverFits


def on_jobs_modified(world: World, turn: Turn, event: JobsModified) -> None:
    """Give these jobs other specifications. Running and complete jobs stay as they are."""
    for _number, spec in event.specs.values():
        refusal = impossible(world, spec)
        if refusal is not None:
            raise NeverFits(refusal, hint="ask for less")
    changed, unchanged = [], []
    warnings: dict[str, None] = {}
    for id in event.jobs:
        job = world.jobs.get(id) or event.loaded.get(id)
        stays = job is None or job.state not in WAITING | RETRYABLE or world.is_replaced(id)
        if job is None or stays or world.outcome(id) not in (0, job.state):
            unchanged.append(id)
            continue
        if job.spec_id in event.notices and len(warnings) < MOST_WARNINGS:
            warnings |= dict.fromkeys(event.notices[job.spec_id])
        number, spec = event.specs.get(job.spec_id, (job.spec_id, job.spec))
        if spec == job.spec and event.input_bytes in (None, job.input_bytes):
            unchanged.append(id)
            continue
        changed.append(id)
        respecify(world, turn, job, number, spec, event.input_bytes)
        touch(world, (job,))
        turn.note(id, job.attempt, "modified", f"{', '.join(event.fields)} by {event.by.user}")
    turn.effects.append(SendReply(event.by, Acted(changed, unchanged, warnings=list(warnings)[:MOST_WARNINGS])))


def respecify(world: World, turn: Turn, job: Job, number: int, spec: Spec, input_bytes: int | None) -> None:
    """Give a job that is not running another specification. The caller updates its dependency groups."""
    if job.state is State.READY:
        dequeue(world, job)
    old = job.spec
    if spec.group != old.group:
        world.counts[old.group][job.state] -= 1
        world.counts[spec.group][job.state] += 1
        if job.state in TERMINAL:
            tally = turn.changes.tally
            for group, more in ((old.group, -1), (spec.group, 1)):
                tally[group, int(job.state)] = tally.get((group, int(job.state)), 0) + more
    job.spec, job.spec_id = spec, number
    if input_bytes is not None:
        job.input_bytes = input_bytes
    if spec.size != old.size:
        job.floor = None  # a new size is a decision made with the failures in view
    if job.state is State.READY:
        estimate(world, job)
        world.placement.offer(job.need, priority=spec.priority, jobs=[job.id])
    for upload in world.uploads.values():
        twin = upload.retried.get(job.id)  # loaded from disk by an upload that will re-open it
        if twin is not None:
            twin.spec, twin.spec_id, twin.input_bytes, twin.floor = spec, number, job.input_bytes, job.floor
    turn.changes.respecified[job.id] = (job.id, number, spec.group, spec.user, job.input_bytes)
    if spec.size != old.size:
        write(turn, job)
