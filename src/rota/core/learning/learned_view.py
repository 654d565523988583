"""Summaries of learning groups for `rota learn`."""

from __future__ import annotations

from msgspec import Struct

from rota.core.learning.model import Model
from rota.core.learning.next_attempt_size import round_mem, round_time
from rota.core.learning.observation import COMPLETE, LACKED, RESOURCES, Observation, Resource


class LearnedGroup(Struct, frozen=True, kw_only=True):
    """A learning group in a few figures.

    Recommendations are rounded, and for a job of unknown input size.
    """

    observations: int  #: number kept
    successes: int
    lacking: int  #: failures for lack of memory, disk or time
    mem: int | None
    disk: int | None
    time_s: float | None
    counting: list[Observation]  #: recent failures, which bound recommendations from below
    lines: dict[Resource, tuple[float, float]]  #: resource → slope and intercept over the input size
    oldest: float | None
    newest: float | None


class HistogramBucket(Struct, frozen=True, array_like=True, gc=False):
    """The number of successes that used at least `low` and less than `high`."""

    low: float
    high: float
    count: int


def describe(model: Model) -> LearnedGroup:
    """Summarise a learning group."""
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
    """The recommendation for a job that asked for enough; with too few successes, a bound above what was seen."""
    most = model.at_most(resource)
    return model.recommend(resource, asked=0) if most is None else most


def histogram(model: Model, resource: Resource, buckets: int = 10) -> list[HistogramBucket]:
    """The distribution of the successes' values in buckets of equal width; one bucket if all are equal."""
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
