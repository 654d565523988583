"""`rota gantt`: which job has which resources when. The loop takes a snapshot; a reader draws it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from math import inf
from typing import Any, NamedTuple

from msgspec import Raw

from rota.core.forecast import expectation
from rota.core.forecast.expected_times import Expectations
from rota.core.jobs.explain import Explanation, why
from rota.core.jobs.job import Job
from rota.core.jobs.reason_texts import sentence
from rota.core.jobs.report_groups import first_of
from rota.core.machines.hold_records import KeptMachines, kept_machines
from rota.core.machines.hosts import site_now
from rota.core.states import WAITING
from rota.core.world import World
from rota.errors import BadInput
from rota.manager.views.gantt_past import Past, PastRows, PastWindow
from rota.manager.views.gantt_rows import ChartBar
from rota.plan.explain.causes import MOST_ENTRIES
from rota.plan.language.hostlist import natural
from rota.plan.planner.endangered import danger
from rota.plan.planner.planner import Planner
from rota.plan.schedule import plan_entry as entries
from rota.plan.site.availability import HORIZON_S, closed_spans
from rota.plan.site.bitset import lowest, positions, spans_of
from rota.plan.site.resources import Site
from rota.plan.site.site_builder import host_record, hours_of
from rota.plan.size import CORE
from rota.wire import codec
from rota.wire import messages as m
from rota.wire.gantt import KEEPS, GanttHost, GanttJob, GanttPast, GanttView, GanttWaiting

#: Jobs without a planned start that are shown with a reason.
_REASONS = 50
#: A reason that is found by trial costs a copy of the plan, on the loop's thread. This bounds the copied entries,
#: except for the first few jobs.
_COPIED = 5_000
_FEW_REASONS = 5
_MOST_JOBS = 100_000
#: An answer holds at most about this much.
_BYTES = 16 << 20
_JOB_BYTES = 300
#: Jobs that are checked for waiting without a planned start.
_LOOKED_AT = 20_000
#: At most so many attempts that are over are listed one by one.
_MOST_PAST = 40_000
#: Hours are not worked out for so distant times, nor more of their ends than this.
_DISTANT_S = 10 * 365 * 86_400.0
_MOST_CLOSED = 20_000
#: What the calendar of the answer can express.
_FAR_S = 253_402_300_799.0


class _Row(NamedTuple):
    """A job that runs or is planned."""

    start: float
    end: float | None
    job: Job
    label: str  #: its state
    host: str | None
    resources: int
    danger: str = ""


class GanttSnapshot(NamedTuple):
    """The data of a Gantt chart."""

    wall: float
    plan: bool
    site: Site
    records: dict[str, dict[str, Any]]
    connected: set[str]
    rows: list[_Row]
    later: int  #: jobs that begin after the requested time
    earlier: int  #: jobs that end before it
    waiting: list[tuple[Job, Explanation]]
    waiting_total: int
    since: float = -inf  #: the requested time
    until: float = inf
    kept: Sequence[tuple[KeptMachines, int]] = ()  #: what ended jobs keep, and which resources that are


def snapshot(world: World, ask: m.Gantt, wall: float, expected: Expectations | None = None) -> GanttSnapshot:
    """What runs and is planned now, as far as it lies within what is asked for. Belongs to the loop's thread.

    Raises `BadInput` for a time that ends before it begins.
    """
    since = -inf if ask.since is None else ask.since
    until = inf if ask.until is None else ask.until
    if not since < until:  # NaN, too
        raise BadInput("'to' is not after 'from'", hint="give a later end, or none")
    planner = world.placement.planner
    site = planner.plan.site if planner is not None else site_now(world)
    planned = list(_planned(world, planner))
    expected = expected or Expectations(expectation.snapshot(world, None, now=0.0, wall=wall))
    rows = [_timed(row, expected) for row in (*_running(world, planner, site, wall), *planned)]
    later = sum(row.start >= until for row in rows)
    found = [row for row in rows if row.start < until and (row.end is None or row.end > since)]
    waiting = list(islice(_unplanned(world, planner, wall), _most_reasons(planner)))
    return GanttSnapshot(
        wall=wall,
        plan=planner is not None,
        site=site,
        records=world.site,
        connected={runner.host for runner in world.runners.values() if runner.connected},
        rows=found,
        later=later,
        earlier=len(rows) - len(found) - later,
        waiting=waiting,
        waiting_total=sum(counts[state] for counts in world.counts.values() for state in WAITING) - len(planned),
        since=since,
        until=until,
        kept=[
            (each, _resources_kept(each, planner, site))
            for each in kept_machines(world)
            if each.since < until and each.until > since
        ],
    )


def _resources_kept(kept: KeptMachines, planner: Planner | None, site: Site) -> int:
    """Where to draw what a job keeps: as planned, or else on the first cores of its host."""
    entry = planner.plan.entries.get(kept.job) if planner is not None else None
    if entry is not None:
        return entry.resources
    return lowest(site.hosts.get(kept.host, 0), kept.need.size.cpus // CORE)


def _timed(row: _Row, expected: Expectations) -> _Row:
    """Start and end as in all other answers. Without an expected end, a job is drawn for as long as the plan holds
    its resources."""
    found = expected.of(row.job)
    start = row.start if row.job.lease is not None or found.start is None else found.start
    length = None if row.end is None else max(0.0, row.end - row.start)
    end = found.end if found.end is not None or length is None else start + length
    return row._replace(start=start, end=end)


def _running(world: World, planner: Planner | None, site: Site, wall: float) -> Iterator[_Row]:
    """Jobs with a lease: as planned, or else for their walltime on the first cores of their host."""
    free = dict(site.hosts)
    for runner in world.runners.values():
        for id in runner.leases:
            job = world.jobs.get(id)
            if job is None or job.lease is None:
                continue
            lease, label, host = job.lease, job.state.label, runner.host
            entry = planner.plan.entries.get(id) if planner is not None else None
            # One that resumes is shown where it will go on.
            if entry is not None and entry.state != entries.SUSPENDED and entry.start is not None:
                yield _Row(entry.start, entry.end, job, label, host, entry.resources)
                continue
            start = lease.started_at
            if start is None:
                continue  # sent ahead: it has nothing yet
            mask = 0
            if planner is None and job.size.cpus >= CORE:
                rest = free.get(host, 0)
                for _ in range(min(job.size.cpus // CORE, rest.bit_count())):
                    mask |= rest & -rest
                    rest &= rest - 1
                free[host] = rest
            yield _Row(start, None, job, label, host, mask)


def _planned(world: World, planner: Planner | None) -> Iterator[_Row]:
    for entry in planner.plan.entries.values() if planner is not None else ():
        job = world.jobs.get(entry.id)
        if entry.state == entries.WAITING and entry.start is not None and job is not None and job.lease is None:
            missing = danger(planner.plan, entry) if entry.fixed and planner is not None else ""
            yield _Row(entry.start, entry.end, job, job.state.label, None, entry.resources, missing)


def _unplanned(world: World, planner: Planner | None, wall: float) -> Iterator[tuple[Job, Explanation]]:
    """Jobs that wait without a planned start, each with its first reason: jobs that the plan has considered, then
    the others."""
    planned = planner.plan.entries if planner is not None else {}
    for entry in planned.values():
        job = world.jobs.get(entry.id)
        if entry.start is None and job is not None and job.state in WAITING:
            yield from _kept(world, job, wall)
    for job in islice(world.jobs.values(), _LOOKED_AT):
        if job.state in WAITING and job.id not in planned:
            yield from _kept(world, job, wall)


def _most_reasons(planner: Planner | None) -> int:
    number = len(planner.plan.entries) if planner is not None else 0
    if not 0 < number <= MOST_ENTRIES:
        return _REASONS  # none is tried
    return min(_REASONS, max(_FEW_REASONS, _COPIED // number))


def _kept(world: World, job: Job, wall: float) -> Iterator[tuple[Job, Explanation]]:
    reasons = why(world, job, wall=wall)
    yield job, reasons[0] if reasons else Explanation("ready", "it starts as soon as there is room")


def looks_back(found: GanttSnapshot) -> bool:
    """Is any of the requested time in the past?"""
    return -inf < found.since < found.wall and found.until > found.since


def view(found: GanttSnapshot, limit: int, past: Past | None = None) -> GanttView:
    """The answer: jobs by start, as many as fit, and the past part of the requested time."""
    rows = sorted(found.rows, key=lambda row: (row.start, row.job.id))
    over: GanttPast | None = None
    if past is not None and looks_back(found):
        over, rows = _with_past(found, rows, limit, past)
    jobs: list[GanttJob] = []
    size = 0
    for row in rows[: max(0, min(limit, _MOST_JOBS))]:
        spans = found.site.spans(row.resources)
        size += _JOB_BYTES + len(spans) + 4 * len(row.job.name) + 4 * len(row.job.spec.group)
        if size > _BYTES and jobs:
            break
        jobs.append(_job(row, spans))
    left_out = len(rows) - len(jobs)
    jobs += (_keeping(kept, found.site.spans(resources)) for kept, resources in found.kept)
    return GanttView(
        now=_time(found.wall),
        plan=found.plan,
        hosts=[*_hosts(found), *_gone(over)],
        jobs=jobs,
        left_out=left_out,
        waiting=[_waiting(job, reason) for job, reason in found.waiting],
        waiting_total=max(found.waiting_total, len(found.waiting)),
        later=found.later,
        earlier=found.earlier,
        closed=_closed(found),
        past=over,
    )


def encoded(drawn: GanttView) -> Raw:
    """The encoded answer. An encoder holds the interpreter lock, so long lists are encoded in pieces."""
    whole: Any = drawn
    lists = [(whole, "jobs")]
    if whole.past is not None:
        lists += [(whole.past, name) for name in ("attempts", "merged", "states")]
    for owner, name in lists:
        setattr(owner, name, [codec.body(each) for each in getattr(owner, name)])
    return codec.body(drawn)


def _with_past(found: GanttSnapshot, rows: list[_Row], limit: int, past: Past) -> tuple[GanttPast, list[_Row]]:
    """The past, and the same rows: a running job without known cores is drawn on lines that were free."""
    ids = {host: list(found.site.ids(mask)) for host, mask in found.site.hosts.items()}
    lines = PastRows(
        {host: len(its) for host, its in ids.items()},
        {id: (host, line) for host, its in ids.items() for line, id in enumerate(its)},
    )
    running = [number for number, row in enumerate(rows) if row.host is not None and row.resources]
    bars = []
    for row in (rows[number] for number in running):
        known: dict[str, list[int]] = {}
        for host, line in (lines.of[id] for id in found.site.ids(row.resources)) if found.plan else ():
            known.setdefault(host, []).append(line)
        bars.append(ChartBar(row.host or "", row.start, inf, row.resources.bit_count(), known))
    window = PastWindow(found.since, min(found.until, found.wall), max(1, min(limit, _MOST_PAST)))
    over, places = past.view(window, lines, bars)
    moved = list(rows)
    for number, place in zip(running, places, strict=True):
        if place and not found.plan:
            host, its = next(iter(place.items()))
            moved[number] = rows[number]._replace(resources=_mask(found.site.hosts[host], its))
    return over, moved


def _mask(host: int, lines: list[int]) -> int:
    """The resources of a host that are drawn on these lines."""
    bits = list(positions(host))
    return sum(1 << bits[line] for line in lines)


def _gone(over: GanttPast | None) -> Iterator[GanttHost]:
    """Former hosts on which something ran."""
    for host in sorted(over.lines) if over is not None else ():
        yield GanttHost(
            host=host,
            resources="",
            state="gone",
            drain=False,
            connected=False,
            usable=False,
            available_until=None,
        )


def _job(row: _Row, spans: str) -> GanttJob:
    spec = row.job.spec
    return GanttJob(
        id=row.job.id,
        name=row.job.name,
        user=spec.user,
        project=spec.project,
        queue=spec.queue,
        group=first_of(spec.group),
        state=row.label,
        type=list(spec.types),
        start=_time(row.start),
        end=None if row.end is None else _time(row.end),
        resources=spans or None,
        host=row.host,
        reserved=spec.at is not None,
        danger=row.danger,
        gang=spec.gang,
    )


def _keeping(kept: KeptMachines, spans: str) -> GanttJob:
    """An ended job that keeps its machines."""
    return GanttJob(
        id=kept.job,
        name="",
        user=kept.user,
        project=kept.project,
        queue=kept.queue,
        group="",
        state=KEEPS,
        type=[],
        start=_time(kept.since),
        end=_time(kept.until),
        resources=spans or None,
        host=kept.host,
    )


def _hosts(found: GanttSnapshot) -> Iterator[GanttHost]:
    site = found.site
    for host, mask in sorted(site.hosts.items(), key=lambda each: natural(each[0])):
        record = host_record(found.records, host)
        until = record.available_until
        yield GanttHost(
            host=host,
            resources=spans_of(site.ids(mask)),
            state=record.state,
            drain=record.drain,
            connected=host in found.connected,
            usable=bool(mask & site.usable),
            available_until=None if until is None else _time(until),
            hours=hours_of(found.records, host, record),
            condition=record.condition,
        )


def _closed(found: GanttSnapshot) -> dict[str, list[tuple[datetime, datetime]]]:
    """When hosts with hours may not be used, from now on; hosts with the same hours share the answer. What
    they did before is in the past."""
    begin = found.wall if found.since == -inf else max(found.since, found.wall)
    end = min(found.until, begin + HORIZON_S)
    clock = found.site.clock
    if clock is None or not abs(begin - found.wall) < _DISTANT_S or not begin < end:
        return {}
    closed: dict[str, list[tuple[datetime, datetime]]] = {}
    left = _MOST_CLOSED
    for hours in sorted(found.site.hours):
        spans = closed_spans(hours, clock, begin, end)
        left -= len(spans)
        if left < 0:
            break
        if spans:
            closed[hours] = [(_time(start), _time(stop)) for start, stop in spans]
    return closed


def _waiting(job: Job, reason: Explanation) -> GanttWaiting:
    spec = job.spec
    return GanttWaiting(
        id=job.id,
        name=job.name,
        user=spec.user,
        queue=spec.queue,
        state=job.state.label,
        code=reason.code,
        message=sentence(reason.code, reason.message),
    )


def _time(moment: float) -> datetime:
    return datetime.fromtimestamp(min(moment, _FAR_S), UTC)
