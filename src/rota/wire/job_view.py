"""One job as clients see it: the object behind `--json` and the Python API.

Made by `make generated` from `rota.core.fields`; change the declarations, not this module.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct, field

from rota.core.jobs.command import Command
from rota.wire.job_parts import (
    AmountsView,
    AttemptView,
    LearnedView,
    PromisedView,
    ReasonView,
    SizeView,
    StoryLine,
)


class JobView(Struct, kw_only=True, gc=False):
    """One job. In a list `attempts` is a number; in `show` it is the list of attempts."""

    id: int
    key: str
    cmd: Command
    cwd: str | None
    name: str
    group: str
    user: str
    project: str
    queue: str  #: empty in messages: the rules of the site choose
    priority: int
    state: str
    reason: ReasonView | None
    request: list[str] | None = None  #: alternatives, as written; none: `size` on one host
    where: str | None = None  #: property expression for every group of the request
    #: for example "besteffort", "inner=12"; times in them are Unix seconds
    type: list[str] = field(default_factory=list)
    at: datetime | None = None  #: start of an advance reservation
    size: SizeView
    limits: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    dep_groups: list[str] = field(default_factory=list)  #: groups that the job is a member of
    attempts: int | list[AttemptView]
    attempt: int
    exit_code: int | None
    signal: str | None
    host: str | None
    pool: str
    resources: str | None  #: allocated or, while it waits, planned: ids, like 1-8,17
    submitted_at: datetime
    ready_at: datetime | None
    scheduled_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    expected_start: datetime | None
    wall_s: float | None  #: without suspended time
    cpu_s: float | None
    peak_mem_bytes: int | None
    peak_disk_bytes: int | None
    retries: int
    retries_left: int
    walltime_s: float | None  #: from its specification or request (the longest alternative); rules may have set it
    scratch: bool
    story: list[StoryLine] | None = None  #: only in `show`
    array_id: int | None = None
    array_index: int | None = None
    #: its size by the specification, including defaults; `amounts` has only what the user asked for. Without a
    #: time, the walltime is used
    asked: SizeView | None = None
    learned: LearnedView | None = None  #: only in `show`
    learn: str = ""  #: the learning group
    override: str = ""  #: empty: higher for `given` fields, no for the others
    input_bytes: int | None = None
    live: bool = True  #: also wait for members that join a group later
    pipefail: bool = False
    on_success: list[str] = field(default_factory=list)  #: behaviours: "run: CMD", "cleanup", "remove"
    on_failure: list[str] = field(default_factory=list)
    on_exit: list[str] = field(default_factory=list)
    stdout: str | None = None  #: file name pattern; empty: Rota keeps the output
    stderr: str | None = None
    given: list[str] = field(default_factory=list)  #: fields of `asked` (mem, disk, time) that are not defaults
    backoff_s: float | None = None  #: null: from a manager of an earlier release
    no_retry_over_s: float | None = None
    expected_end: datetime | None = None
    given_walltime_s: float | None = None  #: of its attempt; null: no attempt, or no walltime
    asked_priority: int | None = None  #: if rules or the queue changed it
    pending_walltime_s: float | None = None  #: asked for with `rota walltime`, not yet granted
    suspended_s: float | None = None  #: of the newest attempt, up to now; null: never suspended
    suspended_at: datetime | None = None  #: since when it is suspended; null: it is not
    checkpoint_s: float | None = None  #: it gets `signal` this long before its walltime ends
    checkpoint_signal: str | None = None  #: asks for a checkpoint; empty: USR2
    #: all hosts of the present or last attempt; the first is `host`
    hosts: list[str] = field(default_factory=list)
    retry_on: list[str] | None = None  #: reason codes; None: all where a retry can help, except walltime
    #: the job that replaced it; 0: removed from its input; null: not replaced
    replaced_by: int | None = None
    expected_reason: ReasonView | None = None  #: why its expected start or end is unknown
    amounts: AmountsView | None = None  #: asked, learned, and the newest attempt's given and used amounts
    promised: PromisedView | None = None  #: for a reservation that began with fewer resources
    groups: list[str] = field(default_factory=list)  #: all its report groups; the first is `group`
    #: waiting, installing (its machines are provisioned), running, hold (it has ended and keeps them); null: none
    phase: str | None = None
    #: wait_s + provision_s + the execution of its newest attempt + hold_s = the time since its submission
    wait_s: float | None = None
    provision_s: float | None = None
    hold_s: float | None = None
    asked_pool: str = ""  #: where it must run; empty: in the first pool with room
    gang: str | None = None  #: jobs of one submission with the same gang begin together, or none does
    gang_same: str | None = None  #: property that must have one value on all hosts of the gang
    gang_share: bool = False  #: members may be on the same host
    on_member_failure: str = ""  #: what becomes of the other members; empty: kill
    prefer: str | None = None  #: property expression: such resources first
    force_host: str | None = None  #: the one host, whatever its condition and the request say
    provision: str | None = None  #: what its machines must be made into before it begins; empty: nothing
    reserve: str = ""  #: when it keeps its machines after the run; empty: never
    reserve_for_s: float | None = None
