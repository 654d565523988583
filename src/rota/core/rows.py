"""The rows that decisions write, as typed records. The order of fields is that of the columns.

A record that is encoded as an array is built in less time than a tuple and encoded almost as fast, so a store can
still write a whole list of rows with one statement. Several of them are also what a store gives back.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from rota.core.jobs.job import Parent


class Row(Struct, frozen=True, array_like=True, gc=False):
    """A row. Its fields are numbers and texts, so the garbage collector need not visit it."""


class SubmissionRow(Row, frozen=True):
    """An `add` that was accepted, or one that is still being uploaded (`answer` is None)."""

    id: str
    user: str
    at: float
    count: int
    answer: str | None  #: as JSON
    input: str | None = None  #: path or name of the input, if this is its newest submission


class EnvRow(Row, frozen=True):
    """An environment."""

    id: int
    digest: str
    data: str  #: base64 of NUL-separated K=V


class SpecRow(Row, frozen=True):
    """What many jobs have in common."""

    id: int
    spec: str  #: JSON of the `Spec`


class JobRow(Row, frozen=True):
    """A new job."""

    id: int
    key: str
    submission: str
    spec_id: int
    group: str
    user: str
    cmd: str  #: as encoded by `command_to_text`
    state: int
    submitted_at: float
    ready_at: float | None
    reason_code: str | None
    reason_message: str | None
    after: str | None  #: as JSON
    input_bytes: int | None = None
    array: int | None = None
    index: int | None = None
    pipeline_element: str | None = None


class JobStateRow(Row, frozen=True):
    """A job's state at the end of a batch."""

    job: int
    state: int
    attempt: int
    tries: int
    due_at: float | None
    ready_at: float | None
    ended_at: float | None
    reason_code: str | None
    reason_message: str | None
    floor: str | None  #: as JSON


class RespecifiedRow(Row, frozen=True):
    """A job that was modified."""

    job: int
    spec_id: int
    group: str
    user: str
    input_bytes: int | None


class RekeyedRow(Row, frozen=True):
    """A job that was modified so that it is another job by now."""

    job: int
    key: str
    cmd: str  #: as encoded by `command_to_text`
    former: str  #: its key before this batch


class AfterRow(Row, frozen=True):
    """A job whose dependencies changed."""

    job: int
    after: str | None  #: as JSON


class ReplacedRow(Row, frozen=True):
    """A job that can never be re-opened."""

    job: int
    by: int  #: its successor; 0: its line was removed from the input


class EdgeRow(Row, frozen=True):
    """A job that waits for another, or for a dependency group."""

    parent: Parent  #: id of a job, or name of a group
    child: int


class AttemptRow(Row, frozen=True):
    """A lease, written before it is sent."""

    job: int
    number: int
    token: int
    runner: str
    host: str
    leased_at: float
    spec_id: int | None = None
    size: str | None = None  #: as JSON, if not the specification's
    given: str | None = None  #: the planner's grant as JSON


class StartRow(Row, frozen=True):
    """An attempt that runs."""

    job: int
    number: int
    started_at: float
    pid: int
    seat: int


class EndRow(Row, frozen=True):
    """An attempt that ended. `started_at` is None if the end does not tell: an earlier row may."""

    job: int
    number: int
    outcome: str  #: label of the outcome's state
    exit_code: int | None
    signal: int | None
    reason_code: str | None
    reason_message: str | None
    started_at: float | None
    ended_at: float | None
    cpu_s: float | None
    peak_mem: int | None
    peak_disk: int | None
    segment: str | None
    offset: int | None
    out_len: int | None
    err_len: int | None
    out_total: int | None
    err_total: int | None
    behaviours: str | None = None  #: as JSON
    kept: str | None = None  #: output report as JSON


class ReturnedRow(Row, frozen=True):
    """What the call of a function left at the end of an attempt."""

    job: int
    number: int
    returned: str  #: as JSON


class GivenRow(Row, frozen=True):
    """What an attempt has now."""

    job: int
    number: int
    given: str  #: as JSON


class VoidRow(Row, frozen=True):
    """A lease that was never executed."""

    job: int
    number: int


class EventRow(Row, frozen=True):
    """One event in the history of a job."""

    at: float
    job: int
    attempt: int
    kind: str
    text: str


class RunnerRow(Row, frozen=True):
    """The process of a runner, as it joined."""

    id: str
    host: str
    boot_id: str
    pid: int
    start_time: int
    joined_at: float


class ObservationRow(Row, frozen=True):
    """What an ended attempt showed about its learning group; see `core.learning.observation`."""

    group: str
    place: int  #: the number of earlier successes of the group
    at: float
    mem: int
    disk: int
    time_s: float
    outcome: str
    input_bytes: int | None
    given_mem: int
    given_disk: int
    given_time_s: float
    #: What was asked for, and by which job; a snapshot leaves these out.
    job: int | None = None
    asked_mem: int | None = None
    asked_disk: int | None = None
    asked_time_s: float | None = None


class MachineRow(Row, frozen=True):
    """What a machine is from some moment on, in the words of `core.machines.machine_states`."""

    host: str
    at: int  #: microseconds since 1970
    condition: str
    usage: str
    state: str  #: of its node


class IntentRow(Row, frozen=True):
    """A runner that a delegated pool was asked for, or is about to be; see `core.pools`."""

    name: str
    pool: str
    need: str  #: as JSON
    seconds: float
    ticket: str  #: hash of its secret
    key: str  #: hash of the key that the ticket is bound to, or empty
    engine_id: str
    state: int
    withdrawn: bool
    runner: str
    asked_at: float


class KnownJob(NamedTuple):
    """The newest job with some key."""

    id: int
    state: int


class GroupMember(NamedTuple):
    """A job in the dependency groups of its specification."""

    job: int
    spec_id: int
