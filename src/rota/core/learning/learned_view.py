"""What is known about a learning group, for people: `rota learn NAME`."""

from __future__ import annotations

from msgspec import Struct

from rota.core.learning.model import Model
from rota.core.learning.observation import COMPLETE, LACKED, RESOURCES, Observation, Resource
from rota.core.learning.sizing import round_mem, round_time


class LearnedGroup(Struct, frozen=True, kw_only=True):
    """A learning group in a few figures. Recommendations are rounded and for a job without a known input."""

    observations: int  #: that are kept
    successes: int
    lacking: int  #: failures for lack of memory, disk or time
    mem: int | None
    disk: int | None
    time_s: float | None
    counting: list[Observation]  #: the failures below which nothing is recommended
    lines: dict[Resource, tuple[float, float]]  #: slope and intercept over the input's size
    oldest: float | None
    newest: float | None


class HistogramBucket(Struct, frozen=True, array_like=True, gc=False):
    """How many successes used from `low` (included) up to `high`."""

    low: float
    high: float
    count: int


def describe(model: Model) -> LearnedGroup:
    """What `rota learn` tells of a group."""
    kept = model.kept()
    recommended = {resource: _recommended(model, resource) for resource in RESOURCES}
    lines = {resource: line for resource in RESOURCES if (line := model.line(resource)) is not None}
    mem, disk, time_s = recommended["mem"], recommended["disk"], recommended["time"]
    return LearnedGroup(
        observations=len(kept),
        successes=sum(seen.outcome == COMPLETE for seen in kept),
        lacking=sum(seen.outcome in LACKED for seen in kept),
        mem=None if mem is None else round_mem(mem),
        disk=None if disk is None else round_mem(disk),
        time_s=None if time_s is None else round_time(time_s),
        counting=[seen for resource in RESOURCES for seen in model.counting(resource)],
        lines={resource: (line.slope, line.intercept) for resource, line in lines.items()},
        oldest=kept[0].at if kept else None,
        newest=kept[-1].at if kept else None,
    )


def _recommended(model: Model, resource: Resource) -> float | None:
    """To whoever asked for enough; as long as too little is known, more than was seen."""
    most = model.at_most(resource)
    return model.recommend(resource, asked=0) if most is None else most


def histogram(model: Model, resource: Resource, buckets: int = 10) -> list[HistogramBucket]:
    """How the values of the successes are spread, in buckets of equal width; one if all are equal."""
    values = list(model.values(resource))
    if not values or buckets < 1:
        return []
    low, high = min(values), max(values)
    width = (high - low) / buckets
    if not width:
        return [HistogramBucket(low, high, len(values))]
    counts = [0] * buckets
    for value in values:
        counts[min(buckets - 1, int((value - low) / width))] += 1
    edges = [low + width * number for number in range(buckets)] + [high]
    return [HistogramBucket(edges[number], edges[number + 1], count) for number, count in enumerate(counts)]
