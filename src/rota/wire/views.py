"""How jobs and the manager look to clients: the objects behind `--json` and the Python API.

Field names are the contract. Times are aware datetimes (ISO-8601 UTC in JSON), durations seconds,
sizes bytes.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct, field


class SizeView(Struct, gc=False):
    """What a job takes."""

    cpus: float
    mem_bytes: int
    disk_bytes: int
    time_s: float
    gpus: int


class QuantityView(Struct, gc=False):
    """One thing that a job takes, in four values, each by itself; null where there is none."""

    asked: float | None = (
        None  #: what somebody wrote, whatever defaults, rules of the site and learning made of it
    )
    learned: float | None = None  #: what the learning group says now; only in `show`
    given: float | None = None  #: what the newest attempt was started with
    used: float | None = None  #: what it took in the end, as it was measured


class BytesView(Struct, gc=False):
    """The same in bytes; on each host, where a job has several."""

    asked: int | None = None
    learned: int | None = None
    given: int | None = None
    used: int | None = None


class AmountsView(Struct, kw_only=True, gc=False):
    """What was asked for, what was learned, what was given and what was used."""

    cores: QuantityView  #: asked: null where the request counts something else; used: the mean over its time
    mem_bytes: BytesView
    disk_bytes: BytesView  #: used: null unless it ran in a scratch directory, for nothing else is measured
    time_s: QuantityView  #: how long it takes. Given: its walltime, or else the time that it was expected to take
    walltime_s: QuantityView  #: after which it is ended; null: nothing ends it


class ReasonView(Struct, gc=False):
    code: str
    message: str


class BehavedView(Struct, gc=False):
    """What became of one behaviour."""

    behaviour: str
    ok: bool
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
    wall_s: float | None = None  #: without the time that it stood suspended
    cpu_s: float | None = None
    peak_mem_bytes: int | None = None
    peak_disk_bytes: int | None = None
    stdout_bytes: int | None = None
    stderr_bytes: int | None = None
    size: SizeView | None = None  #: what it was given
    resources: str | None = None  #: likewise, where a plan gave them: ids, like 1-8,17
    behaviours: list[BehavedView] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)  #: all of them; its command was on the first, `host`
    out_bytes: int | None = None  #: what it wrote to stdout, whatever of it is kept
    err_bytes: int | None = None
    output_missing: ReasonView | None = None  #: why some of what should be kept of its output is not there
    amounts: AmountsView | None = None  #: asked, given and used


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
    request: list[str] | None = None  #: alternatives, as they were given
    where: str | None = None
    type: list[str] = field(default_factory=list)
    at: datetime | None = None  #: an advance reservation: when it starts
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
    resources: str | None  #: given or, while it waits, planned: ids, like 1-8,17
    submitted_at: datetime
    ready_at: datetime | None
    scheduled_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    expected_start: datetime | None
    wall_s: float | None  #: without the time that it stood suspended
    cpu_s: float | None
    peak_mem_bytes: int | None
    peak_disk_bytes: int | None
    retries: int
    retries_left: int
    walltime_s: (
        float | None
    )  #: by its specification or request, of alternatives the longest; rules may have set it
    scratch: bool
    story: list[StoryLine] | None = None  #: only in `show`
    array_id: int | None = None
    array_index: int | None = None
    #: its size by the specification, with defaults for what nobody asked for; `amounts` tells what somebody did. A
    #: walltime is the time asked for if there is no other
    asked: SizeView | None = None
    learned: LearnedView | None = None  #: only in `show`
    learn: str = ""  #: the learning group
    override: str = ""
    input_bytes: int | None = None
    live: bool = True
    pipefail: bool = False
    on_success: list[str] = field(default_factory=list)
    on_failure: list[str] = field(default_factory=list)
    on_exit: list[str] = field(default_factory=list)
    stdout: str | None = None
    stderr: str | None = None
    given: list[str] = field(default_factory=list)  #: of mem, disk and time in `asked`, those that are no defaults
    backoff_s: float | None = None
    no_retry_over_s: float | None = None
    expected_end: datetime | None = None
    given_walltime_s: float | None = None  #: the one of its attempt; null: it has none, or nothing ends it
    asked_priority: int | None = None  #: where rules or the queue made another of it
    pending_walltime_s: float | None = None  #: asked for with `rota walltime`, and not granted yet
    suspended_s: float | None = None  #: of the newest attempt, up to now; null: it never was
    suspended_at: datetime | None = None  #: since when, if it is suspended now
    checkpoint_s: float | None = None
    checkpoint_signal: str | None = None  #: where it is not the default
    #: all hosts of the present or last attempt; the first is `host`
    hosts: list[str] = field(default_factory=list)
    retry_on: list[str] | None = None  #: codes of reasons; null: all but walltime, where it can help
    #: the job that took its place, or 0: its input has no such line any more; null: nobody did
    replaced_by: int | None = None
    expected_reason: ReasonView | None = None  #: why its expected start or end is not known
    amounts: AmountsView | None = None  #: asked, learned, and what the newest attempt was given and used
    promised: PromisedView | None = None  #: of a reservation that began with fewer resources
    groups: list[str] = field(default_factory=list)  #: all its report groups; the first is `group`


class PromisedView(Struct, gc=False):
    """What a reservation was promised, and that it began with fewer."""

    cores: int
    hosts: list[str]
    given_cores: int
    message: str  #: what was missing, and why


class LearnedView(Struct, gc=False):
    """What the learning group says about a job's size; null where it says nothing."""

    mem_bytes: int | None = None
    disk_bytes: int | None = None
    time_s: float | None = None


class CauseView(Struct, gc=False):
    """What would have to be taken away for a job to begin, or to begin earlier: `job`, `walltime`, `quota` …"""

    kind: str
    name: str = ""  #: of what or whom


class WhyReason(Struct, gc=False):
    """One thing that keeps a job from running."""

    code: str
    message: str
    blockers: list[int]
    hint: str = ""
    causes: list[CauseView] = []


class WhyView(Struct, gc=False):
    id: int
    state: str
    reasons: list[WhyReason]
    expected_start: datetime | None
    expected_end: datetime | None = None
    expected_reason: ReasonView | None = None  #: why its start or its end is not known


class PlanView(Struct, kw_only=True, gc=False):
    """When and where a job would run: what a submission would decide now."""

    start: datetime | None
    end: datetime | None
    resources: str | None  #: ids, like 1-8,17
    hosts: list[str]
    alternative: int | None  #: which of the requests, counted from 1
    reason: WhyReason | None  #: why not at once, or not at all
    moves: list[int]  #: waiting jobs that would start later
    request: str | None = None  #: the alternative as it was given
    behind: int = 0  #: waiting jobs that no plan has yet, because others that ask for the same go first
    notices: list[str] = field(default_factory=list)  #: what admission rules would change
    expected_reason: ReasonView | None = None  #: why its start or its end is not known


class LimitView(Struct, kw_only=True, gc=False):
    """A limit: capacity, use, and how many jobs wait that want it."""

    name: str
    capacity: int | None  #: null: any number, or per host
    used: int
    waiting: int
    exclusive: bool  #: one job has it alone now
    scope: str  #: global or host
    hosts: dict[str, dict[str, int]]
    window: str | None
    open: bool  #: is it within its hours?
    owner: str | None = None  #: whose jobs declared it; null: the site
    by_jobs: bool = False  #: jobs declared it (`--limit NAME:N`), and nobody else
    array: int | None = None  #: it holds down how many elements of this array run at once


class SiteHostView(Struct, gc=False):
    """A host with a runner. `ids`: resources that it brought itself, where no record speaks of it."""

    cores: int
    mem_bytes: int
    disk_bytes: int
    gpus: int
    connected: bool
    ids: list[int]


class SiteView(Struct, kw_only=True, gc=False):
    """Records of the site, as (kind, name, value as JSON), and the hosts that there are."""

    version: int  #: changes made from this are refused if others came first
    records: list[tuple[str, str, str]]
    hosts: dict[str, SiteHostView]  #: those that are known

    def of(self, kind: str) -> dict[str, Any]:
        """name → value of the records of one kind, by name."""
        return {name: msgspec.json.decode(text) for its, name, text in self.records if its == kind}

    def site(self) -> dict[str, dict[str, Any]]:
        """kind → name → value."""
        found: dict[str, dict[str, Any]] = {}
        for kind, name, text in self.records:
            found.setdefault(kind, {})[name] = msgspec.json.decode(text)
        return found


class QuotaHolder(Struct, kw_only=True, gc=False):
    """Those whose jobs a quota counts together, and what they hold."""

    who: dict[str, str]  #: name by field (queue, project, type, user) of what the rule counts each separately
    resources: int
    jobs: int
    #: used and held of the present period; null: not limited
    resource_hours: float | None


class QuotaUse(Struct, kw_only=True, gc=False):
    """How much of a quota is held now. Limits are numbers; null: any."""

    applies: bool  #: now
    resources: int | None
    jobs: int | None
    resource_hours: float | None
    holders: list[QuotaHolder]  #: the one nearest to a limit first
    more: int  #: holders that are not among these because they are too many


class QuotasView(Struct, kw_only=True, gc=False):
    """Records of quotas by name, and their use."""

    version: int  #: changes made from this are refused if others came first
    records: dict[str, Any]
    use: dict[str, QuotaUse]


class BucketView(Struct, array_like=True, gc=False):
    """How many values lie from `low` up to `high`."""

    low: float
    high: float
    count: int


class LearningPoint(Struct, kw_only=True, gc=False):
    """What one attempt of a learning group asked for, was given and used."""

    job: int | None  #: null: not known, in rows of earlier versions
    at: datetime
    input_bytes: int | None
    asked_mem: int | None  #: null: nothing, or not known, in rows of earlier versions
    used_mem: int  #: 0: not measured
    asked_time_s: float | None  #: its walltime, or else its time; null: likewise
    used_time_s: float
    ok: bool
    most_mem: int | None = None  #: not measured, but no more than this
    given_mem: int = 0
    given_time_s: float = 0.0  #: its walltime, or the time it was expected to take


class LearnedGroupView(Struct, kw_only=True, gc=False):
    """What is known about a learning group; recommendations are for a job without a known input."""

    name: str
    observations: int
    successes: int
    lacking: int  #: failures for lack of memory, disk or time
    mem_bytes: int | None
    disk_bytes: int | None
    time_s: float | None
    lines: dict[str, list[float]]  #: resource → slope and intercept over the input's bytes
    oldest: datetime | None
    newest: datetime | None
    mem_histogram: list[BucketView]
    time_histogram: list[BucketView]
    disk_histogram: list[BucketView]
    points: list[LearningPoint] = []  #: of one group that is asked for by name, the newest first


class JobPage(Struct, gc=False):
    jobs: list[JobView]
    next: str | None
    total: int


class FeedView(Struct, gc=False):
    """What has changed since the event before."""

    at: datetime
    counts: dict[str, int]  #: all jobs by state
    groups: dict[str, dict[str, int]]  #: groups that changed, by state; empty: it has no jobs any more
    jobs: list[tuple[int, str, int]]  #: id, state and attempt of those that changed
    many: bool  #: more jobs or groups changed than are named here
    what: list[str]  #: subjects that changed besides: runners, site, manager


class GraphNode(Struct, gc=False):
    """A job, or a dependency group, in a small graph."""

    id: int | None
    name: str
    state: str


class GraphView(Struct, gc=False):
    """What a job waits for and what waits for it, two steps each way."""

    nodes: list[GraphNode]
    edges: list[tuple[int, int, str]]  #: from, to (places in `nodes`), condition
    more: int = 0  #: neighbours that were left out


class StatusView(Struct, gc=False):
    counts: dict[str, int]
    groups: dict[str, dict[str, int]]
    expected_end: datetime | None = None  #: of what can end without anybody's doing; None: not known
    rate: float | None = None  #: jobs ended a second, lately
    group_rates: dict[str, float] = field(default_factory=dict)  #: only groups whose rate is known
    group_expected_end: dict[str, datetime] = field(default_factory=dict)  #: likewise
    cores: float = 0.0  #: of all runners that are connected
    cores_in_use: float = 0.0
    paused: bool = False  #: nothing starts until somebody resumes
    draining: bool = False  #: nothing starts, and the manager stops when nothing runs
    disk_full: str | None = None  #: where the disk of the database is mounted, if it has no room for more
    #: group → why its end is not known, or which of its jobs do not end by themselves
    group_end_reasons: dict[str, ReasonView] = field(default_factory=dict)
    end_reason: ReasonView | None = None  #: why `expected_end` is not known


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
    http: str | None = None  #: address of the dashboard and the HTTP API, once they are served
    counts: dict[str, int]
    runners: list[RunnerView]
    live_jobs: int
    resident_bytes: int
    cpu_s: float
    commits: int
    commit_ms: float  #: mean of the last hundred
    idle_stop_s: float | None
    disk_free_bytes: int
    paused: bool = False
    draining: bool = False
    clock_off_s: float | None = None  #: the wall clock was set by so much, which is not followed yet
    disk_full: str | None = None  #: as in `StatusView`
    attention: list[AttentionView] = []  #: what no amount of waiting mends, beside what the counts tell


class SettingsView(Struct, gc=False):
    """The settings that a manager began with. It reads them once: changed ones hold when it is started again."""

    pid: int
    settings: dict[str, Any]


class AttentionView(Struct, gc=False):
    """Jobs that need a person: they never fit, or are reservations that would not get what they were granted."""

    kind: str  #: never_fits or reservation
    jobs: list[int]  #: the first of them
    total: int
    message: str


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
    of: str | None = None  #: of a browser's session: the token, or the user, that made it
    host: str | None = None  #: of a runner: for the agent of this node alone
    user: str | None = None  #: whose it is; null: of whoever runs the manager


class UiLink(Struct, gc=False):
    """Where the dashboard is, and a code that lets one browser in, once and soon."""

    url: str
    code: str


class HistogramView(Struct, gc=False):
    """How often something took how long."""

    bounds: list[float]  #: upper ones, in seconds, ascending
    counts: list[int]  #: in each bucket; the last is for all that took longer
    sum: float


class Sample(Struct, gc=False):
    """One value of a figure that has several, told apart by labels."""

    labels: dict[str, str]
    value: float


class MetricsView(Struct, gc=False):
    """Figures of the manager, for monitoring."""

    counts: dict[str, int]  #: jobs by state
    totals: dict[str, float]  #: what only grows: commits, seconds of processor time, attempts by outcome
    gauges: dict[str, float]  #: what goes up and down
    quantiles: dict[str, dict[str, float]]  #: seconds, by share of what was measured lately
    histograms: dict[str, HistogramView] = field(default_factory=dict)  #: since the manager started
    labelled: dict[str, list[Sample]] = field(default_factory=dict)  #: of nodes, queues, limits and quotas


class NewTokenView(Struct, gc=False):
    """A token that was just made. The secret is told only here."""

    name: str
    role: str
    token: str
    expires_at: datetime | None = None
    authority: str = ""  #: with the token of a runner: whom to trust (PEM)
    expires_s: float | None = None  #: of a session: for how long it is good, whatever any clock says


class NewSessionView(NewTokenView, gc=False):
    """The session of a browser that was just made, and whose it is."""

    user: str = ""
    own_only: bool = False  #: it may touch, and read the output of, nobody's jobs but its own


class PauseView(Struct, gc=False):
    """The manager after pause, drain or resume."""

    paused: bool
    draining: bool
    running: int  #: jobs that run, or may for all that is known
    unreachable: int  #: jobs sent to runners that do not answer: these may still start


class BackupView(Struct, gc=False):
    """A backup that was made, by the manager and on its machine."""

    path: str
    bytes: int
    jobs: int
    generation: int
