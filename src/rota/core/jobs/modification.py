"""Modify jobs that are not running: their size, rank and names."""

from __future__ import annotations

from rota.core.answers import MOST_WARNINGS, Acted
from rota.core.effects import SendReply
from rota.core.events import JobsModified
from rota.core.jobs.respecification import respecify
from rota.core.site.planning_terms import impossible
from rota.core.states import RETRYABLE, WAITING
from rota.core.turn import Turn
from rota.core.world import World, touch
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
