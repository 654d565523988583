"""What a store has of jobs and attempts, as typed records, and the snapshot from which a manager starts.

Stores fill these records, `core.recovery` and views read them. Nothing here reads a store.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from rota.core.jobs.command import Command
from rota.core.jobs.element import Element
from rota.core.jobs.job import After, Job, Reason, Spec
from rota.core.jobs.outcome import Behaved
from rota.core.output.output_blocks import Output
from rota.core.output.output_report import OutputReport
from rota.core.rows import EdgeRow, GroupMember, IntentRow, MachineRow, ObservationRow, RunnerRow
from rota.core.states import State
from rota.plan.placement.given import Given
from rota.plan.size import Floor, Size


class StoredJob(Struct, gc=False):
    """One row of `jobs`, with the row of its newest attempt where a query asks for it."""

    id: int
    key: str
    submission: str
    spec_id: int
    group: str
    user: str
    cmd: Command
    state: int  #: of a live job: as last written; the manager's memory may be ahead
    attempt: int
    tries: int
    submitted_at: float
    ready_at: float | None
    due_at: float | None
    ended_at: float | None
    reason_code: str | None
    reason_message: str | None
    after: tuple[After, ...]
    newest: StoredAttempt | None = None
    floor: Floor | None = None
    input_bytes: int | None = None
    array: int | None = None
    index: int | None = None
    replaced_by: int | None = None  #: the job that replaced it; 0: its line was removed from the input
    pipeline_element: str | None = None  #: the element that a job of a pipeline is for


class StoredAttempt(Struct, gc=False):
    """One row of `attempts`. `outcome` is None while it is open."""

    job: int
    number: int
    token: int
    runner: str
    host: str
    leased_at: float
    started_at: float | None = None
    pid: int | None = None
    seat: int | None = None
    outcome: str | None = None  #: complete, failed, cancelled, lost, void
    exit_code: int | None = None
    signal: int | None = None
    reason_code: str | None = None
    reason_message: str | None = None
    ended_at: float | None = None
    cpu_s: float | None = None
    peak_mem: int | None = None
    peak_disk: int | None = None
    segment: str | None = None
    offset: int | None = None
    out_len: int | None = None
    err_len: int | None = None
    out_total: int | None = None
    err_total: int | None = None
    spec: int | None = None  #: the job's specification at that time; None in rows of older versions
    size: Size | None = None  #: if it differs from the specification
    behaviours: tuple[Behaved, ...] = ()
    given: Given | None = None  #: its allocation by the planner
    kept: OutputReport | None = (
        None  #: where its output is and what is missing; None: unknown, or it printed nothing
    )


def output_of(row: StoredAttempt) -> Output:
    """Where the output of an attempt is stored."""
    return Output(
        segment=row.segment or "",
        offset=row.offset or 0,
        out_len=row.out_len or 0,
        err_len=row.err_len or 0,
        out_total=row.out_total or 0,
        err_total=row.err_total or 0,
        kept=row.kept,
    )


def job_from_row(row: StoredJob, spec: Spec) -> Job:
    """The job as it was last written."""
    return Job(
        id=row.id,
        key=row.key,
        spec=spec,
        spec_id=row.spec_id,
        cmd=row.cmd,
        state=State(row.state),
        submission=row.submission,
        submitted_at=row.submitted_at,
        attempt=row.attempt,
        tries=row.tries,
        reason=Reason(row.reason_code, row.reason_message or "") if row.reason_code else None,
        ready_at=row.ready_at,
        due_at=row.due_at,
        ended_at=row.ended_at,
        after=row.after,
        floor=row.floor,
        input_bytes=row.input_bytes,
        element=Element(row.array, row.index) if row.array is not None and row.index is not None else None,
    )


class StoreSnapshot(Struct, gc=False):
    """Everything that a manager loads into memory when it starts."""

    jobs: list[StoredJob]  #: every job that is not terminal, by id; `newest` is not filled
    open_attempts: list[StoredAttempt]
    specs: dict[int, Spec]  #: all
    env_ids: dict[str, int]  #: digest → id, all
    outcomes: bytes  #: index = job id; terminal state number, 0 if live, 255 if there is no such job
    tally: dict[tuple[str, int], int]
    runners: list[RunnerRow]  #: those with open attempts
    meta: dict[str, str]
    next_job: int
    next_spec: int
    next_env: int
    limits: dict[str, str] = {}  #: name → declaration as JSON
    dep_groups: dict[str, int] = {}  #: every dependency group that ever had a member → complete members
    #: failed and cancelled members of dependency groups (`Spec.dep_groups`); replaced jobs are left out
    bad_members: list[GroupMember] = []
    #: all rows of `Changes.edges` whose dependent still exists
    edges: list[EdgeRow] = []
    #: job → spec id of the dependents in `edges` that are in dependency groups, ended or not
    edge_specs: dict[int, int] = {}
    #: without the job: the newest `OBSERVATIONS` of each learning group, oldest first
    observations: list[ObservationRow] = []
    site: dict[tuple[str, str], str] = {}  #: (kind, name) → value as JSON
    #: by host: the open row of its history; hosts that are gone are left out
    machines: dict[str, MachineRow] = {}
    replaced: list[int] = []  #: jobs that another job replaced
    intents: list[IntentRow] = []  #: runners that delegated pools were asked for, by name


#: Observations loaded per learning group; older ones may be removed.
OBSERVATIONS: Final = 1024
