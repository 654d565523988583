"""Redefine jobs that never started: another command, directory, environment, or other dependencies.

The identity key follows. Everything is checked before anything changes (`plan_redefinition`), and all jobs change
in one decision (`redefine`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from rota.core.events import Redefinition
from rota.core.jobs.command import Command, command_to_text, one_line
from rota.core.jobs.dependencies import propagate
from rota.core.jobs.job import After, Job, Spec
from rota.core.jobs.respecification import respecify
from rota.core.rows import RekeyedRow
from rota.core.states import WAITING
from rota.core.submit.identity import redefined_keys
from rota.core.submit.parents import redefined_after, refuse_cycles
from rota.core.submit.rewiring import reevaluate_waiting, rewire, unlink, update_ancestry
from rota.core.submit.upload import Upload
from rota.core.turn import Turn
from rota.core.world import NO_JOB, World
from rota.errors import BadInput

#: Characters of the former command in a job's story.
_MOST_SHOWN: Final = 200
_REPEAT: Final = "look again, and repeat it"


class NewSelf(NamedTuple):
    """What a job is to be."""

    number: int  #: of its specification
    spec: Spec
    input_bytes: int | None  #: None: as before
    cmd: Command
    key: str
    after: tuple[After, ...]


def never_started(job: Job, asked: Redefinition) -> bool:
    """Does the job wait, and was none of its attempts executed?"""
    return job.state in WAITING and (job.attempt == 0 or asked.unstarted.get(job.id) == job.attempt)


def plan_redefinition(
    world: World,
    asked: Redefinition,
    jobs: Mapping[int, tuple[int, Spec]],
    *,
    input_bytes: int | None,
) -> dict[int, NewSelf]:
    """What each of these jobs (id → its new specification) is to be; without jobs that would not change.

    Raises `BadInput` or `NotFound` if a key is in use, a parent does not exist, or there would be a cycle.
    """
    known = world.jobs
    keys = redefined_keys(((known[id], spec) for id, (_number, spec) in jobs.items()), asked.cmd)
    found: dict[int, NewSelf] = {}
    for id, (number, spec) in jobs.items():
        job = known[id]
        after = job.after if asked.after is None else redefined_after(world, spec, asked.after)
        if set(after) == set(job.after):
            after = job.after
        cmd = job.cmd if asked.cmd is None else asked.cmd
        same = (spec, cmd, after) == (job.spec, job.cmd, job.after)
        if not same or input_bytes not in (None, job.input_bytes):
            found[id] = NewSelf(number, spec, input_bytes, cmd, keys[id], after)
    _refuse_keys(world, asked, {id: new.key for id, new in found.items() if new.key != known[id].key})
    _refuse_uploads(world, found)
    moved = {id: new for id, new in found.items() if new.after is not known[id].after}
    alone = Upload(check=True)
    alone.retried.update(_ended(world, asked))
    refuse_cycles(
        world,
        alone,
        {id: list(new.after) for id, new in moved.items()},
        changed={id: new.spec for id, new in moved.items()},
        replaced={},
    )
    return found


def _refuse_keys(world: World, asked: Redefinition, keys: Mapping[int, str]) -> None:
    """Raise `BadInput` if two jobs would be the same."""
    taken: dict[str, int] = {}
    for id, key in keys.items():
        other = taken.setdefault(key, id)
        if other != id:
            raise BadInput(
                f"jobs {other} and {id} would be the same: one command in one directory",
                hint="change one, and remove the other",
            )
        other = world.keys.get(key, 0)
        if not other:
            if key not in asked.owners:
                raise BadInput(f"job {id} was changed meanwhile", hint=_REPEAT, code="changed")
            other = asked.owners[key]
            if world.outcome(other) == NO_JOB or world.is_replaced(other):
                continue
        raise BadInput(
            f"job {id} would be the same as job {other}, which has this command in this directory",
            hint=f"use job {other}, or remove it first",
        )


def _refuse_uploads(world: World, jobs: Mapping[int, NewSelf]) -> None:
    """Raise `BadInput` if a submission that is under way names one of these jobs, or what it would be."""
    for upload in world.uploads.values():
        named = jobs.keys() & {*upload.entries}
        named |= {id for id, new in jobs.items() if new.key in upload.keys}
        if named:
            raise BadInput(
                f"job {min(named)} is part of a submission that is under way", hint=_REPEAT, code="changed"
            )


def _ended(world: World, asked: Redefinition) -> dict[int, Job]:
    """The ended dependents that are still there, and in no other place of memory."""
    return {
        id: job
        for id, job in asked.ended.items()
        if world.outcome(id) == job.state and id not in world.jobs and not world.is_replaced(id)
    }


def redefine(world: World, turn: Turn, asked: Redefinition, found: Mapping[int, NewSelf]) -> None:
    """Let the jobs be what `plan_redefinition` found."""
    jobs = [world.jobs[id] for id in found]
    moved = [job for job in jobs if found[job.id].after is not job.after]
    unlink(turn, {job.id for job in moved})
    for job in jobs:
        _redefine(world, turn, job, found[job.id])
    if moved:
        _settle(world, turn, moved, _ended(world, asked))


def _redefine(world: World, turn: Turn, job: Job, new: NewSelf) -> None:
    if new.cmd != job.cmd or new.key != job.key:
        before = turn.changes.rekeyed.get(job.id)
        former = job.key if before is None else before.former
        turn.changes.rekeyed[job.id] = RekeyedRow(job.id, new.key, command_to_text(new.cmd), former)
        if world.keys.get(job.key) == job.id:
            del world.keys[job.key]
        world.keys[new.key] = job.id
        if new.cmd != job.cmd:
            turn.note(job.id, job.attempt, "command", f"was {_shown(job.cmd)}")
        job.key, job.cmd = new.key, new.cmd

    def change() -> None:
        # Also with the same specification: another command may belong to another learning group.
        respecify(world, turn, job, new.number, new.spec, new.input_bytes)

    if new.after is job.after:
        change()
    else:
        rewire(world, turn, job, new.after, change=change)


def _settle(world: World, turn: Turn, jobs: list[Job], ended: Mapping[int, Job]) -> None:
    """Move jobs with other dependencies, and all that wait for them, into the states that follow."""
    update_ancestry(world, turn, {job.id: world.ancestry.get(job.id) for job in jobs}, ended)
    reevaluate_waiting(world, turn, jobs)
    propagate(world, turn, jobs, groups={name for job in jobs for name in job.spec.dep_groups})


def _shown(cmd: Command) -> str:
    text = one_line(cmd)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
