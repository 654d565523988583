"""Accounting, usage, history and nodes, as clients see them."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct, field


class AccountRow(Struct, kw_only=True, gc=False):
    """The use in one window. Fields by which rows are not grouped are empty."""

    at: datetime  #: start of the window
    user: str
    project: str
    queue: str
    attempts: int  #: that ended
    jobs: int  #: that ended
    failed: int  #: failed attempts
    used_s: float  #: core seconds, including running attempts up to now
    #: core seconds requested: the walltime, or else the time, of attempts with such a request. An unused rest
    #: counts when the attempt ends. Null: unknown, because an earlier version did not record it
    asked_s: float | None
    cpu_s: float
    wait_s: float  #: from ready to running
    given_s: float = 0.0  #: core seconds allocated: the walltime at the start, or else the expected time
    unasked: int | None = None  #: attempts without a requested time; null: unknown
    until: datetime | None = None  #: end of the window


class AccountingView(Struct, kw_only=True, gc=False, rename={"since": "from", "until": "to"}):
    """`rota accounting`: use by user, project and queue."""

    window_s: int  #: the longest, if windows differ
    rows: list[AccountRow]  #: by time, then user, project and queue
    window: str = ""  #: as requested: hour, day, week, month, all or a time
    zone: str = "UTC"  #: time zone in which days begin
    since: datetime | None = None  #: start of the first window
    until: datetime | None = None  #: end of the last window


class FairShareView(Struct, kw_only=True, gc=False):
    """The weights of the parts of karma, and how fast past use decays."""

    project: float | None  #: null: 1 in queues where projects have shares, 0 in others
    used: float
    asked: float
    half_life_s: float
    window_s: float | None  #: older use does not count at all; null: it only decays


class SharePartView(Struct, kw_only=True, gc=False):
    """One part of a karma: weight × (share − target)."""

    name: str  #: project, used or asked
    weight: float
    share: float
    target: float
    value: float


class StandingView(Struct, kw_only=True, gc=False):
    """A user in a project. The lowest karma goes first."""

    user: str
    project: str
    karma: float
    used_s: float  #: decayed core seconds of the user
    asked_s: float
    target: float  #: of the user
    target_by: str  #: `share` (configured), `projects` (derived from their projects) or `equal`
    parts: list[SharePartView]
    why: str


class ProjectShareView(Struct, kw_only=True, gc=False):
    """The share of a project in all use, and its target."""

    project: str
    used_s: float
    share: float
    target: float
    target_by: str  #: `share`, `rest` (part of what configured shares leave) or `equal`


class QueueSharesView(Struct, kw_only=True, gc=False):
    """The fair-share standings in one queue; without effect if its order is `fifo`."""

    queue: str
    order: str
    project_weight: float
    shares: dict[str, float]
    users: list[StandingView]  #: in scheduling order
    projects: list[ProjectShareView]


class SharesView(Struct, kw_only=True, gc=False):
    """`rota share list`: fair-share standings, and how they came about."""

    at: datetime
    version: int
    fair_share: FairShareView
    queues: list[QueueSharesView]


class HostUsage(Struct, kw_only=True, gc=False):
    """How a host spent its time. The sum is the time for which anything is known."""

    host: str
    busy_s: float
    idle_s: float
    down_s: float  #: no runner answered, or nothing was allowed to run there
    asleep_s: float = 0.0  #: put to sleep until needed
    unseen_s: float = 0.0  #: no manager was running to observe it
    #: busy share of the time in which jobs could run, without down and unseen time. Null: there was no such time
    utilisation: float | None = None


class UsageView(Struct, kw_only=True, gc=False, rename={"since": "from", "until": "to"}):
    """`rota usage`: how machines spent their time."""

    since: datetime
    until: datetime
    hosts: list[HostUsage]
    utilisation: float | None = None  #: over all hosts


class MinuteView(Struct, kw_only=True, gc=False):
    """The events of one minute. Times are sums over attempts that started, or ended, in it."""

    at: datetime
    started: int
    complete: int
    failed: int
    cancelled: int
    wait_s: float
    run_s: float


class HistoryView(Struct, gc=False):
    minutes: list[MinuteView]  #: in order, including minutes without events


class NodeView(Struct, kw_only=True, gc=False):
    """A host, its resources, and their use."""

    host: str
    state: str  #: alive, absent, suspected or dead; falling asleep, asleep or waking
    connected: bool
    drain: bool
    usable: bool  #: may new jobs start there?
    cores: int
    cores_in_use: float
    mem_bytes: int  #: 0: unknown
    mem_in_use: int
    disk_bytes: int
    gpus: int
    jobs: list[int]  #: running there, or it is provisioned for them
    runner: str | None
    pid: int | None
    available_until: datetime | None
    limits: dict[str, dict[str, int]]  #: units on this host: capacity and used
    properties: dict[str, str | int | bool]  #: properties shared by all its resources
    hours: str = ""  #: when it may be used; empty: always
    why: str = ""  #: reason for its state or drain, as given by an administrator or a hook of the site
    closed: bool = False  #: outside its hours, or past the end of its availability
    capacity_cores: float = 0.0  #: cores that count as capacity: all, or only those in use if nothing may start
    condition: str = "automated"  #: automated, manual, broken or removed
    usage: str = "idle"  #: idle, pending, scheduled, waiting, installing or running
    since: datetime | None = None  #: of its condition, usage and state; null: not known
    owner: str = ""
    groups: list[str] = field(default_factory=list)  #: machine groups
    manual_user: str = ""  #: who has reserved it for use by hand
    manual_until: datetime | None = None
    kept_by: int | None = None  #: the ended job that keeps it
    kept_until: datetime | None = None


class NodeHistory(Struct, kw_only=True, gc=False):
    """A period in the history of a host: busy, idle, draining, drained, suspected, closed, asleep, away, unseen
    (no manager was running), gone."""

    at: datetime
    until: datetime | None  #: null: until now
    state: str
    condition: str = ""
    usage: str = ""
    node_state: str = ""  #: alive, drained, suspected, closed, asleep, away or unknown


class NodeDetailView(NodeView, kw_only=True, gc=False):
    """One host with its history of the last week, newest first."""

    history: list[NodeHistory]
