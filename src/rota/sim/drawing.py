"""Pictures of simulated schedules: the rows and times of each job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

from rota.pictures.schedule import Drawn, Picture, runs
from rota.plan.site.bitset import parse_spans
from rota.sim.replay import RanJob, ReplayResult


def picture_of_replay(replayed: ReplayResult, *, title: str, note: str, processors: int) -> Picture:
    """The picture of a replayed trace. Jobs whose processors were only counted get the lowest free rows."""
    ran = replayed.ran
    counted = any(each.processors is None for each in ran)
    rows = _lowest_rows(ran, processors) if counted else [each.processors or [] for each in ran]
    drawn = [
        Drawn(
            id=each.job.id,
            label=f"user {each.job.user}" if each.job.user else "",
            start=each.start,
            end=each.end,
            rows=runs(taken),
            group=f"user {each.job.user}" if each.job.user else "",
        )
        for each, taken in zip(ran, rows, strict=True)
    ]
    row_title = "processors, counted" if counted else "processor"
    return Picture(title=title, note=note, drawn=drawn, rows=(1, processors), row_title=row_title)


def _lowest_rows(ran: Sequence[RanJob], processors: int) -> list[list[int]]:
    """The lowest free rows for each job, in the order of their starts."""
    found: list[list[int]] = [[] for _ in ran]
    free = list(range(1, processors + 1))
    ends: list[tuple[float, int]] = []
    for place in sorted(range(len(ran)), key=lambda place: (ran[place].start, place)):
        while ends and ends[0][0] <= ran[place].start:
            free += found[heappop(ends)[1]]
            heapify(free)
        found[place] = [heappop(free) for _ in range(min(ran[place].job.procs, len(free)))]
        heappush(ends, (ran[place].end, place))
    return found


def picture_of_site(jobs: Sequence[Mapping[str, object]], *, title: str, note: str) -> Picture:
    """The jobs of a simulated site, as its JSON has them; jobs without a start are left out."""
    drawn = []
    for job in jobs:
        start, end, resources = job.get("start"), job.get("end"), job.get("resources")
        if isinstance(start, int | float) and isinstance(end, int | float) and isinstance(resources, str):
            rows = runs(sorted(parse_spans(resources)))
            drawn.append(Drawn(str(job["id"]), str(job.get("state", "")), float(start), float(end), rows))
    numbers = [number for each in drawn for span in each.rows for number in span]
    rows_shown = (min(numbers), max(numbers)) if numbers else (1, 1)
    return Picture(title=title, note=note, drawn=drawn, rows=rows_shown, row_title="resource")
