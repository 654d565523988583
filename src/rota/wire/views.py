"""Jobs and the manager as clients see them: the objects behind `--json` and the Python API.

Field names are the contract. Times are aware datetimes (ISO-8601 UTC in JSON), durations seconds, sizes bytes.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct, field

# Parts of views are views, too: all are to be had from here.
from rota.wire.job_parts import AmountsView as AmountsView
from rota.wire.job_parts import AttemptView as AttemptView
from rota.wire.job_parts import BehavedView as BehavedView
from rota.wire.job_parts import BytesView as BytesView
from rota.wire.job_parts import LearnedView as LearnedView
from rota.wire.job_parts import PromisedView as PromisedView
from rota.wire.job_parts import QuantityView as QuantityView
from rota.wire.job_parts import ReasonView as ReasonView
from rota.wire.job_parts import SizeView as SizeView
from rota.wire.job_parts import StoryLine as StoryLine
from rota.wire.job_parts import size_view as size_view
from rota.wire.job_view import JobView as JobView


class CauseView(Struct, gc=False):
    """What blocks a job from starting, or from starting earlier: `job`, `walltime`, `quota` …"""

    kind: str
    name: str = ""  #: of the blocking job, quota …


class WhyReason(Struct, gc=False):
    """One reason why a job is not running."""

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
    expected_reason: ReasonView | None = None  #: why its start or end is unknown


class PlanView(Struct, kw_only=True, gc=False):
    """When and where a job would run if it were submitted now."""

    start: datetime | None
    end: datetime | None
    resources: str | None  #: ids, like 1-8,17
    hosts: list[str]
    alternative: int | None  #: number of the chosen alternative, from 1
    reason: WhyReason | None  #: why not at once, or not at all
    moves: list[int]  #: waiting jobs that would start later
    request: str | None = None  #: the alternative, as given
    behind: int = 0  #: waiting jobs not planned yet, because jobs with the same request go first
    notices: list[str] = field(default_factory=list)  #: changes that admission rules would make
    expected_reason: ReasonView | None = None  #: why its start or end is unknown


class LimitView(Struct, kw_only=True, gc=False):
    """A limit: its capacity, its use, and the number of jobs waiting for it."""

    name: str
    capacity: int | None  #: null: unlimited, or per host
    used: int
    waiting: int
    exclusive: bool  #: one job is using it exclusively
    scope: str  #: global or host
    hosts: dict[str, dict[str, int]]
    window: str | None
    open: bool  #: is it within its hours?
    owner: str | None = None  #: the user whose jobs declared it; null: the site
    by_jobs: bool = False  #: only jobs declared it (`--limit NAME:N`)
    array: int | None = None  #: the array whose concurrency it limits


class SiteHostView(Struct, gc=False):
    """A host with a runner. `ids`: resources that the runner reported, if no site record describes the host."""

    cores: int
    mem_bytes: int
    disk_bytes: int
    gpus: int
    connected: bool
    ids: list[int]


class SiteView(Struct, kw_only=True, gc=False):
    """Records of the site as (kind, name, value as JSON), and the known hosts."""

    version: int  #: a change based on an older version is refused
    records: list[tuple[str, str, str]]
    hosts: dict[str, SiteHostView]  #: known hosts

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
    """One holder of a quota: the jobs that its rule counts together, and their use."""

    who: dict[str, str]  #: field (queue, project, type, user) → name, where the rule counts each separately
    resources: int
    jobs: int
    #: used and reserved in the present period; null: unlimited
    resource_hours: float | None


class QuotaUse(Struct, kw_only=True, gc=False):
    """The present use of a quota. Limits are numbers; null: unlimited."""

    applies: bool  #: now
    resources: int | None
    jobs: int | None
    resource_hours: float | None
    holders: list[QuotaHolder]  #: the holder nearest to a limit first
    more: int  #: number of further holders, not listed


class QuotasView(Struct, kw_only=True, gc=False):
    """Records of quotas by name, and their use."""

    version: int  #: a change based on an older version is refused
    records: dict[str, Any]
    use: dict[str, QuotaUse]


class BucketView(Struct, array_like=True, gc=False):
    """The number of values between `low` and `high`."""

    low: float
    high: float
    count: int


class LearningPoint(Struct, kw_only=True, gc=False):
    """Requested, allocated and used amounts of one attempt of a learning group."""

    job: int | None  #: null: unknown, in rows of earlier versions
    at: datetime
    input_bytes: int | None
    asked_mem: int | None  #: null: none, or unknown in rows of earlier versions
    used_mem: int  #: 0: not measured
    asked_time_s: float | None  #: its walltime, or else its time; null as above
    used_time_s: float
    ok: bool
    most_mem: int | None = None  #: upper bound; the value itself was not measured
    given_mem: int = 0
    given_time_s: float = 0.0  #: its walltime, or else its expected run time


class LearnedGroupView(Struct, kw_only=True, gc=False):
    """What is known about a learning group. Recommendations are for a job with unknown input."""

    name: str
    observations: int
    successes: int
    lacking: int  #: failures for lack of memory, disk or time
    mem_bytes: int | None
    disk_bytes: int | None
    time_s: float | None
    lines: dict[str, list[float]]  #: resource → slope and intercept per byte of input
    oldest: datetime | None
    newest: datetime | None
    mem_histogram: list[BucketView]
    time_histogram: list[BucketView]
    disk_histogram: list[BucketView]
    points: list[LearningPoint] = []  #: newest first; only if one group is requested by name


class JobPage(Struct, gc=False):
    jobs: list[JobView]
    next: str | None
    total: int


class FeedView(Struct, gc=False):
    """Changes since the previous event."""

    at: datetime
    counts: dict[str, int]  #: all jobs by state
    groups: dict[str, dict[str, int]]  #: changed groups, by state; empty: the group has no more jobs
    jobs: list[tuple[int, str, int]]  #: id, state and attempt of changed jobs
    many: bool  #: more jobs or groups changed than are listed
    what: list[str]  #: other subjects that changed: runners, site, manager, limits, pipelines


class GraphNode(Struct, gc=False):
    """A job, or a dependency group, in a small graph."""

    id: int | None
    name: str
    state: str


class GraphView(Struct, gc=False):
    """The dependencies and dependents of a job, two steps in each direction."""

    nodes: list[GraphNode]
    edges: list[tuple[int, int, str]]  #: from, to (indexes into `nodes`), condition
    more: int = 0  #: number of neighbours left out


class StatusView(Struct, gc=False):
    counts: dict[str, int]
    groups: dict[str, dict[str, int]]
    expected_end: datetime | None = None  #: for jobs that can end without intervention; null: unknown
    rate: float | None = None  #: jobs ended per second, recently
    group_rates: dict[str, float] = field(default_factory=dict)  #: only groups with a known rate
    group_expected_end: dict[str, datetime] = field(default_factory=dict)  #: likewise
    cores: float = 0.0  #: of all connected runners
    cores_in_use: float = 0.0
    paused: bool = False  #: nothing starts until the manager is resumed
    draining: bool = False  #: nothing starts, and the manager stops when nothing runs
    disk_full: str | None = None  #: mount point of the database's disk, if it is full
    #: group → why its end is unknown, or which of its jobs do not end by themselves
    group_end_reasons: dict[str, ReasonView] = field(default_factory=dict)
    end_reason: ReasonView | None = None  #: why `expected_end` is unknown
    safe_mode: str | None = None  #: the bug because of which nothing starts until the manager is resumed


class SettledView(Struct, gc=False):
    """The result of `run`, `wait` and `add --sync`."""

    counts: dict[str, int]
    failed: list[int]
    #: exit status if there was only one job: its own code, or 128 + signal
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
    http: str | None = None  #: address of the dashboard and the HTTP API, while they are served
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
    clock_off_s: float | None = None  #: step of the wall clock that the manager has not followed yet
    disk_full: str | None = None  #: as in `StatusView`
    attention: list[AttentionView] = []  #: problems that do not go away by waiting, besides those in the counts
    safe_mode: str | None = None  #: as in `StatusView`
    bugs: BugsView | None = None  #: bugs that the manager met


class BugView(Struct, kw_only=True, gc=False):
    """A bug that the manager met."""

    at: datetime
    place: str  #: kind of event, or part of a turn
    error: str
    times: int = 1
    effect: bool = False  #: met when something decided was carried out, not when it was decided


class BugsView(Struct, kw_only=True, gc=False):
    """Bugs that the manager met, and what it leaves out because of them until it is resumed."""

    total: int
    left_out: list[str] = []  #: kinds of events, and parts of a turn, that are not decided any more
    quarantined: int = 0  #: single requests and entries of reports that are not decided any more
    frozen: list[int] = []  #: jobs that are left out of all decisions
    recent: list[BugView] = []  #: the newest, newest first


class SettingsView(Struct, gc=False):
    """The settings the manager started with. It reads them once: changes take effect at its next start."""

    pid: int
    settings: dict[str, Any]


class AttentionView(Struct, gc=False):
    """Jobs that need attention: they never fit, or are reservations that would not get what was granted."""

    kind: str  #: never_fits, reservation, pool or broken
    jobs: list[int]  #: the first of these jobs
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
    of: str | None = None  #: for a browser session: the token or user that created it
    host: str | None = None  #: for a runner: valid only for the agent of this node
    user: str | None = None  #: its owner; null: the user running the manager


class UiLink(Struct, gc=False):
    """The address of the dashboard, and a one-time code for one browser, which expires soon."""

    url: str
    code: str


class HistogramView(Struct, gc=False):
    """A histogram of durations."""

    bounds: list[float]  #: upper bounds in seconds, ascending
    counts: list[int]  #: per bucket; the last one is for all longer durations
    sum: float


class Sample(Struct, gc=False):
    """One value of a metric, identified by its labels."""

    labels: dict[str, str]
    value: float


class MetricsView(Struct, gc=False):
    """Metrics of the manager, for monitoring."""

    counts: dict[str, int]  #: jobs by state
    totals: dict[str, float]  #: counters: commits, seconds of processor time, attempts by outcome
    gauges: dict[str, float]  #: gauges
    quantiles: dict[str, dict[str, float]]  #: seconds, by quantile of recent measurements
    histograms: dict[str, HistogramView] = field(default_factory=dict)  #: since the manager started
    labelled: dict[str, list[Sample]] = field(default_factory=dict)  #: of nodes, queues, limits and quotas


class NewTokenView(Struct, gc=False):
    """A new token. Its secret is shown only here."""

    name: str
    role: str
    token: str
    expires_at: datetime | None = None
    authority: str = ""  #: with a runner's token: the certificate authority to trust (PEM)
    expires_s: float | None = None  #: for a session: its lifetime, independent of clocks


class NewSessionView(NewTokenView, gc=False):
    """A new browser session, and its owner."""

    user: str = ""
    own_only: bool = False  #: may change, and read the output of, only its own jobs


class PauseView(Struct, gc=False):
    """The state of the manager after pause, drain or resume."""

    paused: bool
    draining: bool
    running: int  #: jobs that run, or may be running
    unreachable: int  #: jobs sent to runners that do not answer; they may still start


class BackupView(Struct, gc=False):
    """A backup made by the manager on its own machine."""

    path: str
    bytes: int
    jobs: int
    generation: int
