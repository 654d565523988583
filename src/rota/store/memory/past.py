"""Ended attempts in a `MemoryStore`, with the same answers as SQL."""

from __future__ import annotations

import msgspec

from rota.core.stored import StoredAttempt, StoredJob
from rota.store.memory.tables import MemoryTables
from rota.store.past import PastAttempt, PastSum, overlaps


def past_attempts(tables: MemoryTables, since: float, until: float) -> list[PastAttempt]:
    """All ended attempts that overlap a window, by job."""
    return [
        _past_attempt(row, tables.jobs[row.job])
        for _, row in sorted(tables.attempts.items())
        if overlaps(row, since, until)
    ]


def _past_attempt(row: StoredAttempt, job: StoredJob) -> PastAttempt:
    assert row.started_at is not None
    assert row.ended_at is not None
    return PastAttempt(
        row.job, row.number, row.host, row.started_at, row.ended_at, row.outcome or "", row.spec or job.spec_id,
        job.group, row.size, row.given, job.pipeline_element,
    )  # fmt: skip


def past_sum(row: PastAttempt, since: float, until: float, slices: int) -> PastSum:
    """The sum over a single attempt."""
    given = row.given
    paused_s = given.pause.before_s if given is not None and given.pause is not None else 0.0
    end = min(row.ended_at, until) - since
    begin = min(end, max(row.started_at + paused_s, since) - since)
    place, spec, cpus = row.host, 0, 1.0
    if given is None or not given.nodes:
        if row.size is None:
            spec = row.spec
        else:
            cpus = float(row.size.cpus)
    elif len(given.nodes) == 1 and not given.elsewhere:
        cpus = float(given.size.cpus)
    else:
        place = msgspec.json.encode(given.nodes).decode()

    def slice_of(at: float) -> int:
        return min(int(at * slices / (until - since)), slices - 1)

    return PastSum(
        place, slice_of(begin), slice_of(end), spec, 1, int(row.outcome == "failed"), cpus,
        cpus * begin, cpus * end, int(row.ended_at < until),
    )  # fmt: skip
