"""Makes the snapshot of a `MemoryStore` from which a manager starts."""

from __future__ import annotations

from copy import deepcopy
from itertools import chain
from typing import Final

import msgspec

from rota.core.jobs.job import Parent, Spec
from rota.core.rows import EdgeRow, GroupMember, ObservationRow
from rota.core.states import TERMINAL, State
from rota.core.stored import StoreSnapshot
from rota.store.memory.tables import MemoryTables

_NO_JOB: Final = 255


def load(tables: MemoryTables) -> StoreSnapshot:
    """Remove unfinished uploads, then read."""
    for name in [row.id for row in tables.submissions.values() if row.answer is None]:
        tables.forget([n for n, job in tables.jobs.items() if job.submission == name])
        del tables.submissions[name]
    jobs = tables.jobs
    next_job = max(tables.highest_job, *jobs, 0) + 1
    outcomes = bytearray([_NO_JOB]) * next_job
    for n, job in jobs.items():
        outcomes[n] = job.state if job.state in TERMINAL else 0
    open_attempts = [row for _, row in sorted(tables.attempts.items()) if row.outcome is None]
    holding = {row.runner for row in open_attempts}
    specs = {n: msgspec.json.decode(text, type=Spec) for n, text in tables.specs.items()}
    members = {n for n, spec in specs.items() if spec.dep_groups}
    edges = sorted((edge for edge in tables.edges if edge.child in jobs), key=_jobs_before_groups)
    return StoreSnapshot(
        jobs=[deepcopy(jobs[n]) for n in sorted(jobs) if outcomes[n] == 0],
        open_attempts=deepcopy(open_attempts),
        specs=specs,
        env_ids={row.digest: row.id for row in tables.envs.values()},
        outcomes=bytes(outcomes),
        tally=dict(tables.tally),
        runners=[row for n, row in sorted(tables.runners.items()) if n in holding],
        meta=dict(tables.meta),
        next_job=next_job,
        next_spec=max(0, 0, *tables.specs) + 1,
        next_env=max(0, 0, *tables.envs) + 1,
        limits=dict(tables.limits),
        site=dict(tables.site),
        dep_groups=dict(tables.dep_groups),
        bad_members=[
            GroupMember(n, job.spec_id)
            for n, job in sorted(jobs.items())
            if job.state in TERMINAL
            and job.state != State.COMPLETE
            and job.spec_id in members
            and job.replaced_by is None
        ],
        edges=edges,
        edge_specs={edge.child: jobs[edge.child].spec_id for edge in edges if jobs[edge.child].spec_id in members},
        observations=[_without_job(row) for _, row in sorted(chain(*tables.observations.values()))],
        machines=tables.sums.last_machine_rows(),
        replaced=[n for n, job in sorted(jobs.items()) if job.replaced_by is not None],
        intents=[row for _, row in sorted(tables.intents.items())],
    )


def _without_job(row: ObservationRow) -> ObservationRow:
    return msgspec.structs.replace(row, job=None, asked_mem=None, asked_disk=None, asked_time_s=None)


def _jobs_before_groups(edge: EdgeRow) -> tuple[bool, Parent, int]:
    return isinstance(edge.parent, str), edge.parent, edge.child
