"""Reads the trace of a whole site from a JSON document, strictly: its resources, queues, quotas and jobs.

Errors name the path of the wrong field. `sim.site_run` runs the trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from rota.errors import BadInput
from rota.plan.policy.calendar_document import parse_calendar
from rota.plan.policy.policy import BACKFILLS, DEFAULT_QUEUES, MOST_WEIGHT, ORDERS, FairShare, Policy, Queue
from rota.plan.policy.quota_rules import parse_rules
from rota.plan.policy.quotas import Quotas
from rota.plan.site.resources import Site
from rota.sim.gangs import Gang, gangs_of
from rota.sim.jobs import JobReader, TraceJob
from rota.sim.lab import Lab, Stock
from rota.sim.objects import read_object
from rota.sim.rows import HostRow, Row, read_rows
from rota.sim.site_events import Event, EventReader
from rota.sim.stock import read_stock
from rota.sim.values import Moments, WrongField, did_you_mean, duration, field, shown, walltime

#: Other names of backfills.
_FCFS: Final = {"fcfs": "none"}
_NAMES: Final = (*BACKFILLS, *_FCFS)


class QueueFields(Struct, kw_only=True):
    """The fields of a queue in the document."""

    priority: int = 2
    order: str | None = None
    backfill: str | None = None
    policy: str | None = None
    walltime: float | str | None = None
    max_wait: float | str | None = None
    shares: dict[str, float] = {}


class FairShareFields(Struct, kw_only=True):
    """The fair share settings in the document: weights, half-life and window."""

    project: float | None = None
    used: float = 1.0
    asked: float = 1.0
    half_life: float | str | None = None
    window: float | str | None = None


class Document(Struct, kw_only=True):
    """The whole document; only its outer structure is checked."""

    resources: list[Row]
    jobs: list[object] = []
    levels: list[str] | None = None
    epoch: str | None = None
    timezone: str = "UTC"
    policy: str | None = None
    order: str | None = None
    hosts: dict[str, dict[str, object]] = {}
    queues: dict[str, dict[str, object]] | None = None
    quotas: dict[str, list[float | str]] | None = None
    calendar: dict[str, object] | None = None
    usage: dict[str, float] = {}
    limits: dict[str, int] = {}
    fair_share: dict[str, object] | None = None
    machines: dict[str, dict[str, object]] = {}
    machine_groups: dict[str, dict[str, object]] = {}
    events: list[object] = []


class Trace(Struct, kw_only=True, frozen=True):
    """A checked trace, ready to run."""

    site: Site  #: as it is at the beginning
    stock: Stock
    policy: Policy
    quotas: Quotas | None
    usage: dict[str, float]
    limits: dict[str, int]  #: of the whole site
    jobs: list[TraceJob]  #: in the order of the file
    gangs: list[Gang]
    events: list[Event]  #: in the order in which they happen
    count: int  #: of all resources that are there at some time


def read_trace(document: bytes, *, policy: str | None = None) -> Trace:
    """The trace in a document; `policy` overrides its orders and backfills. Raises `BadInput`."""
    given = _document(document)
    moments = Moments(given.epoch, given.timezone)
    hosts = {
        name: read_object(host, HostRow, f"hosts.{name}", "figures of a host")
        for name, host in given.hosts.items()
    }
    reader = EventReader(read_rows(given.resources, moments), moments)
    events = reader.read(given.events)
    stock = read_stock(
        reader, levels=given.levels, hosts=hosts, machines=given.machines, groups=given.machine_groups
    )
    site = Lab(stock).site()
    queues = _queues(given, policy)
    for user, used in given.usage.items():
        if used < 0:
            raise WrongField(f"usage.{user}", f"{used:g} is negative", hint="give resource-seconds")
    for name, units in given.limits.items():
        if units < 0:
            raise WrongField(f"limits.{name}", f"{units} is negative", hint="give a number of units")
    limits = {*given.limits, *(limit for host in hosts.values() for limit in host.limits)}
    jobs = _jobs(given.jobs, JobReader(site, queues, limits, moments, hosts=reader.machines))
    reader.check_cancels({job.id: job for job in jobs})
    return Trace(
        site=site,
        stock=stock,
        policy=Policy(queues=queues, fair_share=_fair_share(given)),
        quotas=_quotas(given, moments, site),
        usage=dict(given.usage),
        limits=dict(given.limits),
        jobs=jobs,
        gangs=gangs_of(jobs),
        events=events,
        count=len(reader.known),
    )


def _document(text: bytes) -> Document:
    try:
        given = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"the trace is not JSON: {error}", hint="see 'rota simulate --help'") from None
    if not isinstance(given, dict):
        raise BadInput("the trace is not a JSON object", hint='write it like {"resources": [...], "jobs": [...]}')
    return read_object(given, Document, "", "fields of a trace")


# -- queues


def _queues(given: Document, policy: str | None) -> dict[str, Queue]:
    """The default queues, changed by the document. `policy`: all are fifo with this backfill."""
    if policy is not None:
        backfill = _backfill(policy)
        if backfill is None:
            raise WrongField(
                "policy", f"there is no policy {shown(policy)}", hint=did_you_mean(policy, _NAMES, "policies")
            )
    else:
        order, backfill = _ways(given.order, None, given.policy, "")
    fields = {name: QueueFields(priority=queue.priority) for name, queue in DEFAULT_QUEUES.items()}
    ways: dict[str, tuple[str | None, str | None]] = dict.fromkeys(fields, (None, None))
    for name, own in (given.queues or {}).items():
        path = f"queues.{name}"
        fields[name] = read_object(own, QueueFields, path, "fields of a queue")
        ways[name] = _ways(fields[name].order, fields[name].backfill, fields[name].policy, f"{path}.")
    if policy is not None:
        order, ways = "fifo", dict.fromkeys(fields, (None, None))
    elif order is None:
        ordered = any(own for own, _ in ways.values())
        order = "fairshare" if given.usage and not ordered else "fifo"
    return {
        name: _queue(
            own, order=ways[name][0] or order, backfill=ways[name][1] or backfill or "conservative", name=name
        )
        for name, own in fields.items()
    }


def _queue(own: QueueFields, *, order: str, backfill: str, name: str) -> Queue:
    with field(f"queues.{name}"):
        for who, share in own.shares.items():
            if share <= 0:
                raise WrongField(f"shares.{who}", f"{share:g} is not a share", hint="give a number above 0")
        with field("walltime"):
            limit = None if own.walltime is None else walltime(own.walltime)
        with field("max_wait"):
            max_wait = Queue().max_wait_s if own.max_wait is None else duration(own.max_wait)
    return Queue(
        priority=own.priority,
        order=order,
        backfill=backfill,
        walltime_s=limit,
        max_wait_s=max_wait,
        shares=dict(own.shares),
    )


def _fair_share(given: Document) -> FairShare:
    if given.fair_share is None:
        return FairShare()
    own = read_object(given.fair_share, FairShareFields, "fair_share", "settings of fair share")
    usual = FairShare()
    with field("fair_share"):
        for name in ("project", "used", "asked"):
            weight = getattr(own, name)
            if weight is not None and not 0 <= weight <= MOST_WEIGHT:
                raise WrongField(
                    name, f"{weight:g} is not a weight", hint=f"give a number from 0 to {MOST_WEIGHT}"
                )
        times: dict[str, float | None] = {}
        for name in ("half_life", "window"):
            with field(name):
                given_time = getattr(own, name)
                times[name] = None if given_time is None else duration(given_time)
                if times[name] == 0:
                    raise BadInput("it must be longer than nothing", hint="write it like 7d")
    return FairShare(
        project=own.project,
        used=own.used,
        asked=own.asked,
        half_life_s=times["half_life"] or usual.half_life_s,
        window_s=times["window"],
    )


def _ways(order: str | None, backfill: str | None, policy: str | None, path: str) -> tuple[str | None, str | None]:
    """Order and backfill, None where not given; `policy` may name either."""
    if order is not None and order not in ORDERS:
        raise WrongField(
            f"{path}order", f"there is no order {shown(order)}", hint=did_you_mean(order, ORDERS, "orders")
        )
    if backfill is not None and _backfill(backfill) is None:
        raise WrongField(
            f"{path}backfill",
            f"there is no backfill {shown(backfill)}",
            hint=did_you_mean(backfill, _NAMES, "backfills"),
        )
    found = None if backfill is None else _backfill(backfill)
    if policy is None:
        return order, found
    named = _backfill(policy)
    if named is None and policy not in ORDERS:
        known = (*_NAMES, *ORDERS)
        raise WrongField(
            f"{path}policy", f"there is no policy {shown(policy)}", hint=did_you_mean(policy, known, "policies")
        )
    if named is None:
        return order or policy, found
    return order, found or named


def _backfill(name: str) -> str | None:
    return _FCFS.get(name) or (name if name in BACKFILLS else None)


# -- quotas


def _quotas(given: Document, moments: Moments, site: Site) -> Quotas | None:
    """Permanent quotas, and those of the calendar."""
    if given.quotas is None and given.calendar is None:
        return None
    with field("quotas"):
        parse_rules(given.quotas or {}, total=site.count)
    with field("calendar"):
        calendar = None if given.calendar is None else parse_calendar(given.calendar, moments.clock)
        return Quotas(given.quotas or {}, total=site.count, calendar=calendar)


# -- jobs


def _jobs(given: Sequence[object], reader: JobReader) -> list[TraceJob]:
    found: list[TraceJob] = []
    places: dict[int, int] = {}
    for number, fields in enumerate(given):
        with field(f"jobs[{number}]"):
            job = reader.read(fields)
            if job.id in places:
                raise WrongField(
                    "id", f"{job.id} is that of jobs[{places[job.id]}] as well", hint="give each job its own"
                )
            places[job.id] = number
            found.append(job)
    for number, job in enumerate(found):
        for parent in job.after:
            if parent.id not in places:
                raise WrongField(
                    f"jobs[{number}].after", f"there is no job {parent.id}", hint="name a job of this trace"
                )
    _refuse_cycles(found, places)
    _refuse_overlaps(found)
    return found


def _refuse_cycles(jobs: Sequence[TraceJob], places: Mapping[int, int]) -> None:
    """Raise `BadInput`, which names the cycle, if jobs wait for each other."""
    done: set[int] = set()
    for first in jobs:
        path: dict[int, None] = {}
        todo: list[tuple[int, bool]] = [(first.id, False)]
        while todo:
            id, leave = todo.pop()
            if leave:
                del path[id]
                done.add(id)
            elif id in path:
                cycle = [*path][[*path].index(id) :]
                words = " → ".join(map(str, [*cycle, id]))
                raise WrongField(
                    f"jobs[{places[id]}].after", f"jobs wait for each other: {words}", hint="break the cycle"
                )
            elif id not in done:
                path[id] = None
                todo.append((id, True))
                todo.extend((parent.id, False) for parent in jobs[places[id]].after)


def _refuse_overlaps(jobs: Sequence[TraceJob]) -> None:
    """Raise `BadInput` if running jobs hold the same resources, unless their types allow it."""
    taken = 0
    for number, job in enumerate(jobs):
        types = job.ask.types
        if job.start is None or types.timesharing or types.inner or types.allowed or types.placeholder:
            continue
        if taken & job.resources:
            raise WrongField(
                f"jobs[{number}].resources",
                "some are held by another running job",
                hint="give it resources of its own",
            )
        taken |= job.resources
