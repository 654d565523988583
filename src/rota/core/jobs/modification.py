"""Modify jobs that are not running."""

from __future__ import annotations

import msgspec

from rota.core.answers import MOST_WARNINGS, Acted
from rota.core.effects import SendReply
from rota.core.events import JobsModified
from rota.core.fields.field import ADD_ANEW
from rota.core.gangs.admission import check_members, refuse_part_of_gang
from rota.core.jobs.job import Job
from rota.core.jobs.redefinition import never_started, plan_redefinition, redefine
from rota.core.jobs.respecification import respecify
from rota.core.site.planning_terms import impossible
from rota.core.states import RETRYABLE, TERMINAL, WAITING
from rota.core.turn import Turn
from rota.core.world import World, evict_after_commit, touch
from rota.errors import BadInput, NeverFits


def on_jobs_modified(world: World, turn: Turn, event: JobsModified) -> None:
    """Give these jobs other specifications. Running and complete jobs stay as they are, and what a job is (its
    command, directory, environment and dependencies) stays from its first execution on."""
    for _number, spec in event.specs.values():
        refusal = impossible(world, spec)
        if refusal is not None:
            raise NeverFits(refusal, hint="ask for less")
    warnings: dict[str, None] = {}
    jobs = _modifiable(world, event, warnings)
    _refuse_parts_of_gangs(world, event, jobs)
    if event.redefinition is None:
        changed = [job for job in jobs if _respecified(world, turn, event, job)]
    else:
        news = {job.id: event.specs[job.spec_id] for job in jobs if job.spec_id in event.specs}
        found = plan_redefinition(world, event.redefinition, news, input_bytes=event.input_bytes)
        redefine(world, turn, event.redefinition, found)
        changed = [job for job in jobs if job.id in found]
    for job in changed:
        turn.note(job.id, job.attempt, "modified", f"{', '.join(event.fields)} by {event.by.user}")
    touch(world, changed)
    for job in changed:
        if job.state in TERMINAL:  # until this is on disk, whoever loads it there finds what it was before
            world.jobs.setdefault(job.id, job)
            world.keys.setdefault(job.key, job.id)
            evict_after_commit(world, turn, job.id)
    done = [job.id for job in changed]
    same = {*done}
    left = [id for id in event.jobs if id not in same]
    turn.effects.append(SendReply(event.by, Acted(done, left, warnings=list(warnings)[:MOST_WARNINGS])))


def _refuse_parts_of_gangs(world: World, event: JobsModified, jobs: list[Job]) -> None:
    """Raise `BadInput` if a gang that waits would be changed in part, or into something that is no gang."""
    gangs: dict[tuple[str, str], list[Job]] = {}
    for job in jobs:
        if job.spec.gang and job.state in WAITING:
            refuse_part_of_gang(world, job, event.jobs, "modified")
            _number, spec = event.specs.get(job.spec_id, (job.spec_id, job.spec))
            gangs.setdefault((job.submission, job.spec.gang), []).append(msgspec.structs.replace(job, spec=spec))
    if gangs and event.redefinition is not None and event.redefinition.after is not None:
        raise BadInput("what the members of a gang wait for is fixed", field="after", hint=ADD_ANEW)
    for members in gangs.values():
        check_members(members)


def _modifiable(world: World, event: JobsModified, warnings: dict[str, None]) -> list[Job]:
    """The jobs that may change, in order."""
    found = []
    for id in event.jobs:
        job = world.jobs.get(id) or event.loaded.get(id)
        if job is None or job.state not in WAITING | RETRYABLE or world.is_replaced(id):
            continue
        if world.outcome(id) not in (0, job.state):
            continue
        if event.redefinition is not None and not never_started(job, event.redefinition):
            if len(warnings) < MOST_WARNINGS:
                warnings[f"job {id} has been started before, and stays what it is; add it anew"] = None
            continue
        if job.spec_id in event.notices and len(warnings) < MOST_WARNINGS:
            warnings |= dict.fromkeys(event.notices[job.spec_id])
        found.append(job)
    return found


def _respecified(world: World, turn: Turn, event: JobsModified, job: Job) -> bool:
    """Give a job its new specification; False: it has it already."""
    number, spec = event.specs.get(job.spec_id, (job.spec_id, job.spec))
    if spec == job.spec and event.input_bytes in (None, job.input_bytes):
        return False
    respecify(world, turn, job, number, spec, event.input_bytes)
    return True
