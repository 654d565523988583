"""Selects, searches and orders the jobs of a `MemoryStore`, with the same answers as SQL."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from rota.core.attempts.parts import lease_hosts
from rota.core.jobs.command import one_line
from rota.core.jobs.job import Spec, name_of
from rota.core.jobs.report_groups import has_prefix, is_in
from rota.core.stored import StoredAttempt, StoredJob
from rota.store.base import Clause, Order, folded, in_pool
from rota.store.memory.tables import MemoryTables


def matching(tables: MemoryTables, clauses: Sequence[Clause]) -> Iterator[StoredJob]:
    """The visible jobs that match any clause."""
    for job in tables.jobs.values():
        if tables.is_visible(job) and any(_matches(tables, job, clause) for clause in clauses):
            yield job


def is_found(job: StoredJob, search: str, named: Collection[int]) -> bool:
    """Is the text in its command or the element that it is for, or its specification one of those named?"""
    texts = (one_line(job.cmd), job.pipeline_element or "")
    return not search or any(folded(search) in folded(text) for text in texts) or job.spec_id in named


def in_order(
    tables: MemoryTables, jobs: Iterator[StoredJob], order: Order, *, specs: Mapping[int, int], limit: int
) -> array[int]:
    """The ids of these jobs in this order, or the first `limit` of them."""
    sign = -1 if order.descending else 1
    begun = {
        row.job: row.started_at
        for row in tables.attempts.values()
        if order.by == "started" and row.outcome is None and row.started_at is not None
    }
    found: list[tuple[bool, float, int]] = []
    for job in jobs:
        value = begun.get(job.id) or _ranked(job, tables.newest(job), order.by, specs)
        found.append((value is None, sign * (value or 0), sign * job.id))
    ids = [sign * id for _unknown, _value, id in sorted(found)]
    return array("q", ids if limit < 0 else ids[:limit])


def _matches(tables: MemoryTables, job: StoredJob, clause: Clause) -> bool:
    newest = tables.newest(job)
    return (
        clause.low <= job.id <= (clause.high or job.id)
        and (not clause.group or is_in(clause.group, job.group))
        and clause.user in ("", job.user)
        and clause.submission in ("", job.submission)
        and clause.state in (0, job.state)
        and clause.array in (0, job.array)
        and (not (clause.array and clause.indexes) or _is_within(job.index, clause.indexes))
        and _is_specified(tables, job, clause)
        and (not clause.host or (newest is not None and clause.host in _hosts(newest)))
        and (not clause.pool or _is_of_pool(tables, job, newest, clause))
        and (not clause.group_prefix or has_prefix(clause.group_prefix, job.group))
        and (clause.exits is None or (newest is not None and _is_within(newest.exit_code, (clause.exits,))))
        and (not clause.before or _last_moment(job) < clause.before)
        and (not clause.cmd_text or folded(clause.cmd_text) in folded(one_line(job.cmd)))
    )


def _is_specified(tables: MemoryTables, job: StoredJob, clause: Clause) -> bool:
    if not (clause.queue or clause.project or clause.name or clause.name_prefix or clause.gang):
        return True
    spec = msgspec.json.decode(tables.specs[job.spec_id], type=Spec)
    return (
        clause.queue in ("", spec.queue)
        and clause.project in ("", spec.project)
        and clause.name in ("", spec.name, name_of(spec, job.pipeline_element))
        and clause.gang in ("", spec.gang)
        and name_of(spec, job.pipeline_element).startswith(clause.name_prefix)
    )


def _is_of_pool(tables: MemoryTables, job: StoredJob, newest: StoredAttempt | None, clause: Clause) -> bool:
    spec = msgspec.json.decode(tables.specs[job.spec_id], type=Spec)
    return clause.pool == spec.pool or (newest is not None and in_pool(clause, newest.host))


def _hosts(attempt: StoredAttempt) -> tuple[str, ...]:
    return attempt.host, *lease_hosts(attempt.given)


def _is_within(number: int | None, spans: tuple[tuple[int, int], ...]) -> bool:
    return number is not None and any(low <= number <= high for low, high in spans)


def _last_moment(job: StoredJob) -> float:
    return job.submitted_at if job.ended_at is None else job.ended_at


def _ranked(job: StoredJob, newest: StoredAttempt | None, by: str, specs: Mapping[int, int]) -> float | None:
    """The sort key of a job."""
    match by:
        case "submitted":
            return job.submitted_at
        case "ended":
            return job.ended_at
        case "priority":
            return specs.get(job.spec_id)
        case "id":
            return 0.0
    if newest is None:
        return None
    if by == "wall":
        over, begun = newest.ended_at, newest.started_at
        return over - begun if over is not None and begun is not None else None
    return {"started": newest.started_at, "cpu": newest.cpu_s, "mem": newest.peak_mem}[by]
