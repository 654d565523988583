"""Give a job that is not running another specification."""

from __future__ import annotations

from rota.core.jobs.job import Job, Spec
from rota.core.learning.estimate import offer
from rota.core.rows import RespecifiedRow
from rota.core.states import TERMINAL, State
from rota.core.turn import Turn
from rota.core.world import World, dequeue, write


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
        offer(world, [job])
    for upload in world.uploads.values():
        twin = upload.retried.get(job.id)  # loaded from disk by an upload that will re-open it
        if twin is not None:
            twin.spec, twin.spec_id, twin.input_bytes, twin.floor = spec, number, job.input_bytes, job.floor
    turn.changes.respecified[job.id] = RespecifiedRow(job.id, number, spec.group, spec.user, job.input_bytes)
    if spec.size != old.size:
        write(turn, job)
