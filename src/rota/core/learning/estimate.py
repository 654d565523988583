"""Sizes of jobs: estimated when a job becomes ready, learned when an attempt has ended.

Connects the world with the models (`core.learning.model`) and the rules for sizes (`core.learning.sizing`).
"""

from __future__ import annotations

from rota.core.accounts.amounts import given_s, observed_asked
from rota.core.effects import SendReply
from rota.core.events import LearningForgotten
from rota.core.jobs.job import Job
from rota.core.jobs.outcome import Outcome
from rota.core.learning.model import CachedSize, Model
from rota.core.learning.next_attempt_size import Decision, LearnedSizes, advice, after_failure, decide
from rota.core.learning.observation import LACKED, Observation, at_most, observation_row
from rota.core.restart import Restart
from rota.core.rows import ObservationRow
from rota.core.turn import Turn
from rota.core.world import World
from rota.errors import NotFound
from rota.plan.placement.queue import Offer
from rota.plan.size import Capacity, Size

#: Models in memory; the least recently used is dropped first.
MOST_MODELS = 4096
#: Larger reports of a runner are not believed.
_MOST = 1 << 46
#: Reasons that say nothing about what a job needs.
_TEACH_NOTHING = frozenset({"lost", "kill_requested", "not_found", "preempted", "provision"})


def decision(world: World, job: Job) -> Decision:
    """The size of the job's next attempt, with what was learned."""
    spec = job.spec
    return decide(
        spec.size,
        given=frozenset(spec.given),
        override=spec.override,  # type: ignore[arg-type]  # checked when it was added
        model=world.models.get(job.learning_group),
        floor=job.floor,
        largest=_largest(world),
        input_bytes=job.input_bytes,
    )


def estimate(world: World, job: Job) -> None:
    """Set the size of a job that is about to wait for room."""
    if not world.models and job.floor is None:
        job.learned = None
        return
    if job.floor is None and job.input_bytes is None:
        job.learned = _cached_size(world, job)
    else:
        job.learned = _learned(world, job)


def _learned(world: World, job: Job) -> Size | None:
    used = decision(world, job).used
    # Many jobs have the same few sizes: they share one object.
    return None if used == job.spec.size else world.sizes.setdefault(used, used)


def _cached_size(world: World, job: Job) -> Size | None:
    """The learned size of an ordinary job, from a cache: percentiles move slowly, while jobs end one by one."""
    name = job.learning_group
    model = world.models.get(name)
    if model is None:
        return None
    known = world.cached_sizes.get((job.spec_id, name))
    if known is None or not known.holds(model, _largest(world)):
        if len(world.cached_sizes) >= MOST_MODELS:
            world.cached_sizes.clear()
        learned = _learned(world, job)
        known = CachedSize(learned, model, model.fresh_until(), model.lacked, _largest(world))
        world.cached_sizes[job.spec_id, name] = known
    return known.learned


def resize(world: World, sizes: dict[int, Size]) -> None:
    """Waiting jobs have other sizes, the placement found, by what was learned since they were offered."""
    for id, size in sizes.items():
        job = world.jobs[id]
        job.learned = None if size == job.spec.size else world.sizes.setdefault(size, size)


def offer(world: World, jobs: list[Job]) -> None:
    """Offer many jobs of one specification, ids ascending, to the placement."""
    spec = jobs[0].spec
    for queued in world.points.queued:
        if queued(world, None, jobs):
            return
    if not world.models:
        world.placement.offer(Offer(spec, jobs[0].need, jobs[0].rank_key, [job.id for job in jobs]))
        return
    usual: dict[str, Size | None] = {}  #: learning group → learned size of its ordinary jobs
    by_size: dict[Size | None, list[int]] = {}
    for job in jobs:
        name = job.learning_group
        if job.input_bytes is not None or job.floor is not None or name not in usual:
            estimate(world, job)
            if job.input_bytes is None and job.floor is None:
                usual[name] = job.learned
        else:
            job.learned = usual[name]
        by_size.setdefault(job.learned, []).append(job.id)
    for size, ids in by_size.items():
        need = spec.need(size or spec.size, jobs[0].spec_id)
        world.placement.offer(Offer(spec, need, jobs[0].rank_key, ids))


def restore_models(world: World, restart: Restart) -> None:
    """Restore the most recent models from the stored observations."""
    rows: dict[str, list[ObservationRow]] = {}
    for row in restart.snapshot.observations:
        rows.setdefault(row.group, []).append(row)
    newest = sorted(rows, key=lambda name: max(row.at for row in rows[name]))
    world.models = {name: Model.from_rows(rows[name]) for name in newest[-MOST_MODELS:]}


def learn(
    world: World,
    turn: Turn,
    job: Job,
    outcome: Outcome,
    *,
    code: str | None,
    started_at: float | None,
    lacked: bool = True,
) -> None:
    """Learn from an ended attempt, for the group and, if it `lacked` something, for the job's next attempt."""
    if started_at is None or code in _TEACH_NOTHING:
        return
    size = job.size
    given = job.lease.given if job.lease is not None else None
    elapsed_s = max(0.0, outcome.ended_at - started_at)
    disk = min(outcome.peak_disk, _MOST)
    mem = min(outcome.peak_mem, _MOST) or at_most(min(outcome.most_mem, _MOST))
    seen = Observation(
        outcome.ended_at,
        mem,
        disk,
        elapsed_s,
        code or "complete",
        job.input_bytes,
        size.mem,
        size.disk,
        given_s(job.spec, size, given),
    )
    name = job.learning_group
    model = model_of(world, name)
    place = model.observe(seen)
    asked_mem, asked_disk, asked_time_s = observed_asked(job.spec, given)
    turn.changes.observations.append(
        observation_row(name, place, seen, job.id, asked_mem, asked_disk, asked_time_s)
    )
    if code is None:
        model.took(asked_time_s, elapsed_s)
    if code in LACKED:
        world.placement.learned(name, LearnedSizes(model, _largest(world)))
    elif place & (place + 1) == 0 and (advised := advice(model)) != model.last_advice:
        # Compared after 1, 2, 4, 8… successes.
        model.last_advice = advised
        world.placement.learned(name, LearnedSizes(model, _largest(world)))
    if code is not None and lacked:
        job.floor = after_failure(
            code,
            peak_mem=outcome.peak_mem,
            elapsed_s=elapsed_s,
            peak_disk=outcome.peak_disk,
            size=size,
            floor=job.floor,
        )


def model_of(world: World, name: str) -> Model:
    """The model of a learning group, created if new."""
    models = world.models
    model = models.pop(name, None)
    if model is None:
        model = Model()
        if len(models) >= MOST_MODELS:
            oldest = next(iter(models))
            del models[oldest]
            world.placement.learned(oldest, None)
    models[name] = model  # most recently used last
    return model


def _largest(world: World) -> Size | None:
    """The upper bound of learned sizes; None where another engine may have larger hosts than any that is known."""
    return None if world.settings.pools else world.largest


def largest_of(capacities: list[Capacity]) -> Size | None:
    """The largest amount of each resource on any host: an upper bound for learned sizes. None: no host is
    known."""
    if not capacities:
        return None
    return Size(
        cpus=max(each.cpus for each in capacities),
        mem=max(each.mem for each in capacities),
        disk=max(each.disk for each in capacities),
        gpus=max(each.gpus for each in capacities),
    )


def on_learning_forgotten(world: World, turn: Turn, event: LearningForgotten) -> None:
    """Discard what these groups have learned."""
    unknown = [name for name in event.names if name not in world.models]
    if unknown:
        raise NotFound(f"nothing was learned about '{unknown[0]}'", hint="list what was with 'rota learn'")
    for name in event.names:
        del world.models[name]
        world.placement.learned(name, None)
        turn.changes.observations = [row for row in turn.changes.observations if row.group != name]
        turn.changes.forgotten.append(name)
    turn.effects.append(SendReply(event.by, None))
