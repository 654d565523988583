"""`rota learn`: what is known about learning groups, as clients see it."""

from __future__ import annotations

from datetime import UTC, datetime

from rota.core.learning.learned_view import describe, histogram
from rota.core.learning.model import Model
from rota.core.learning.observation import Resource
from rota.core.world import World
from rota.errors import NotFound
from rota.store.base import Point
from rota.wire.views import BucketView, LearnedGroupView, LearningPoint


def view(world: World, name: str) -> list[LearnedGroupView]:
    """The group of this name with histograms, or, without a name, all of them without."""
    if not name:
        return [_view(each, model, buckets=0) for each, model in sorted(world.models.items())]
    model = world.models.get(name)
    if model is None:
        raise NotFound(f"nothing was learned about '{name}'", hint="list what was with 'rota learn'")
    return [_view(name, model, buckets=12)]


def points(found: list[Point], *, apart: bool = True) -> list[LearningPoint]:
    """Attempts as clients see them. For clients of earlier versions, asked amounts are the given ones."""
    return [
        LearningPoint(
            job=each.job,
            at=datetime.fromtimestamp(each.at, UTC),
            input_bytes=each.input_bytes,
            asked_mem=each.asked_mem if apart else each.given_mem,
            used_mem=max(0, each.used_mem),
            asked_time_s=each.asked_time_s if apart else each.given_time_s,
            used_time_s=each.used_time_s,
            ok=each.ok,
            most_mem=-each.used_mem if each.used_mem < 0 else None,
            given_mem=each.given_mem,
            given_time_s=each.given_time_s,
        )
        for each in found
    ]


def _view(name: str, model: Model, *, buckets: int) -> LearnedGroupView:
    known = describe(model)

    def spread(resource: Resource) -> list[BucketView]:
        return [BucketView(each.low, each.high, each.count) for each in histogram(model, resource, buckets)]

    return LearnedGroupView(
        name=name,
        observations=known.observations,
        successes=known.successes,
        lacking=known.lacking,
        mem_bytes=known.mem,
        disk_bytes=known.disk,
        time_s=known.time_s,
        lines={resource: list(line) for resource, line in known.lines.items()},
        oldest=_time(known.oldest),
        newest=_time(known.newest),
        mem_histogram=spread("mem"),
        time_histogram=spread("time"),
        disk_histogram=spread("disk"),
    )


def _time(at: float | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at, UTC)
