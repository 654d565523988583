"""How jobs and the manager look to clients: the objects behind `--json` and the Python API.

Field names are the contract. Times are aware datetimes (ISO-8601 UTC in JSON), durations seconds,
sizes bytes.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct, field


class SizeView(Struct, gc=False):
    """What a job takes."""

    cpus: float
    mem_bytes: int
    disk_bytes: int
    time_s: float
    gpus: int


class ReasonView(Struct, gc=False):
    code: str
    message: str


class AttemptView(Struct, kw_only=True, gc=False):
    """One execution of a job."""

    attempt: int
    state: str  #: complete, failed, cancelled, lost, void, or the job's state while it is open
    reason: ReasonView | None = None
    exit_code: int | None = None
    signal: str | None = None
    host: str | None = None
    runner: str | None = None
    scheduled_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    wall_s: float | None = None
    cpu_s: float | None = None
    peak_mem_bytes: int | None = None
    peak_disk_bytes: int | None = None
    stdout_bytes: int | None = None
    stderr_bytes: int | None = None


class StoryLine(Struct, gc=False):
    """Something that happened to a job."""

    at: datetime
    attempt: int
    event: str
    text: str


class JobView(Struct, kw_only=True, gc=False):
    """One job. In a list `attempts` is a number; in `show` it is the list of attempts."""

    id: int
    key: str
    cmd: str | list[str]
    cwd: str | None
    name: str
    group: str
    user: str
    project: str
    queue: str
    priority: int
    state: str
    reason: ReasonView | None
    request: list[str] = field(default_factory=list)
    size: SizeView
    limits: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    dep_groups: list[str] = field(default_factory=list)
    attempts: int | list[AttemptView]
    attempt: int
    exit_code: int | None
    signal: str | None
    host: str | None
    pool: str
    resources: str | None
    submitted_at: datetime
    ready_at: datetime | None
    scheduled_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    expected_start: datetime | None
    wall_s: float | None
    cpu_s: float | None
    peak_mem_bytes: int | None
    peak_disk_bytes: int | None
    retries: int
    retries_left: int
    walltime_s: float | None
    scratch: bool
    story: list[StoryLine] | None = None  #: only in `show`


class JobPage(Struct, gc=False):
    jobs: list[JobView]
    next: str | None
    total: int


class StatusView(Struct, gc=False):
    counts: dict[str, int]
    groups: dict[str, dict[str, int]]
    expected_end: datetime | None = None
    rate: float | None = None  #: jobs ended a second, lately


class SettledView(Struct, gc=False):
    """The end of `run`, `wait` and `add --sync`."""

    counts: dict[str, int]
    failed: list[int]
    #: exit status of the only job, when there was one: its own code, or 128 + signal
    single: int | None = None


class ManagerView(Struct, kw_only=True, gc=False):
    """`rota manager status`."""

    pid: int
    version: str
    generation: int
    deployment: str
    home: str
    store: str
    started_at: datetime
    address: str | None  #: HOST:PORT of the TLS listener
    counts: dict[str, int]
    runners: list[RunnerView]
    live_jobs: int
    resident_bytes: int
    cpu_s: float
    commits: int
    commit_ms: float  #: mean of the last hundred
    idle_stop_s: float | None
    disk_free_bytes: int


class RunnerView(Struct, kw_only=True, gc=False):
    id: str
    host: str
    pid: int
    connected: bool
    seats: int
    running: int
    cores: int
    mem_bytes: int
    disk_bytes: int


class TokenView(Struct, gc=False):
    name: str
    role: str
    created_at: datetime
    expires_at: datetime | None = None


class NewTokenView(Struct, gc=False):
    """A token that was just made. The secret is told only here."""

    name: str
    role: str
    token: str
    expires_at: datetime | None = None
