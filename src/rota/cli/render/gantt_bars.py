"""The bars of a Gantt chart and the resources that they lie on, from a `GanttView`. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Final, NamedTuple

from rota.errors import BadInput
from rota.plan.site.bitset import parse_spans
from rota.wire.gantt import KEEPS, GanttAttempt, GanttHost, GanttJob, GanttView

#: The line of a bar.
RUNS: Final = "="
PLANNED: Final = "-"
KEPT: Final = "~"  #: an ended job keeps it
ENDED: Final = "_"
FAILED: Final = "x"

Run = tuple[int, int]  #: ids of resources, both ends inclusive


class Bar(NamedTuple):
    """One bar: a running or planned job, or an ended attempt."""

    id: int
    line: str
    start: float
    end: float
    runs: list[Run]
    shares: bool = False
    depth: int = 0  #: drawing order: containers first, running jobs last


class HostResources(NamedTuple):
    """A host with its resource ids; a host that is gone gets ids made up for the chart."""

    host: GanttHost
    runs: list[Run]


def owned(view: GanttView) -> list[HostResources]:
    """The hosts in their order."""
    runs = [list(runs_of(host.resources)) for host in view.hosts]
    free = max((high for its in runs for _low, high in its), default=0) + 1
    lines = view.past.lines if view.past is not None else {}
    found = []
    for host, its in zip(view.hosts, runs, strict=True):
        if not its and (count := lines.get(host.host, 0)):
            its = [(free, free + count - 1)]
            free += count
        found.append(HostResources(host, its))
    return found


def items(view: GanttView, hosts: list[HostResources]) -> list[Bar]:
    """All bars, in drawing order."""
    found = [_job(job) for job in view.jobs]
    if view.past is not None:
        ids = {each.host.host: [id for low, high in each.runs for id in range(low, high + 1)] for each in hosts}
        found += [_attempt(attempt, ids) for attempt in view.past.attempts]
    return sorted(found, key=lambda item: (item.depth, item.start))


def _job(job: GanttJob) -> Bar:
    waits = job.state == "ready"
    return Bar(
        id=job.id,
        line=PLANNED if waits else KEPT if job.state == KEEPS else RUNS,
        start=job.start.timestamp(),
        end=inf if job.end is None else job.end.timestamp(),
        runs=list(runs_of(job.resources)),
        shares=_has(job, "timesharing"),
        depth=0 if _has(job, "container", "placeholder", "besteffort") else 3 if waits else 4,
    )


def _attempt(attempt: GanttAttempt, ids: dict[str, list[int]]) -> Bar:
    mine = [
        ids[host][line]
        for host, lines in attempt.lines
        for line in _numbers(lines)
        if line < len(ids.get(host, ()))
    ]
    return Bar(
        id=attempt.id,
        line=ENDED if attempt.state == "complete" else FAILED,
        start=attempt.start.timestamp(),
        end=attempt.end.timestamp(),
        runs=joined(mine),
        shares=_has(attempt, "timesharing"),
        depth=0 if _has(attempt, "container", "placeholder", "besteffort") else 1 + (attempt.state != "complete"),
    )


def _numbers(spans: str) -> list[int]:
    """The numbers in `1-8,17`; none if they cannot be parsed, so that the bar is left out."""
    try:
        return parse_spans(spans)
    except BadInput:
        return []


def _has(job: GanttJob | GanttAttempt, *types: str) -> bool:
    return any(word.partition("=")[0] in types for word in job.type)


def runs_of(spans: str | None) -> Iterator[Run]:
    """``1-8,17`` as runs."""
    for part in spans.split(",") if spans else ():
        low, _, high = part.partition("-")
        yield int(low), int(high or low)


def joined(ids: list[int]) -> list[Run]:
    """Ids as runs."""
    found: list[Run] = []
    for id in sorted(ids):
        if found and found[-1][1] == id - 1:
            found[-1] = (found[-1][0], id)
        else:
            found.append((id, id))
    return found
