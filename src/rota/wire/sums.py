"""What people see of sums and machines: accounting, usage, history and nodes."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class AccountRow(Struct, kw_only=True, gc=False):
    """What was used in one window; what rows are not told apart by is empty."""

    at: datetime  #: when the window begins
    user: str
    project: str
    queue: str
    attempts: int  #: that ended
    jobs: int  #: that ended
    failed: int  #: of these attempts
    used_s: float  #: cores × seconds, those of running attempts up to now
    #: cores × seconds of the walltime, or else the time, that was asked for, by those who asked for any; what is
    #: left at the end counts then. Null: not known, for an earlier version did not write it down
    asked_s: float | None
    cpu_s: float
    wait_s: float  #: from ready to running
    given_s: float = 0.0  #: likewise, of the walltime, or else the expected time, with which attempts were started
    unasked: int | None = None  #: of these attempts, those for which no time was asked; null: not known
    until: datetime | None = None  #: when the window ends


class AccountingView(Struct, kw_only=True, gc=False, rename={"since": "from", "until": "to"}):
    """`rota accounting`: who used what."""

    window_s: int  #: of windows that differ the longest
    rows: list[AccountRow]  #: by time, then user, project and queue
    window: str = ""  #: as it was asked for: hour, day, week, month, all or a time
    zone: str = "UTC"  #: in which days begin
    since: datetime | None = None  #: when the first window begins
    until: datetime | None = None  #: when the last one ends


class FairShareView(Struct, kw_only=True, gc=False):
    """The weights of the parts of karma, and how fast use is forgotten."""

    project: float | None  #: null: 1 in queues where projects have shares, 0 in others
    used: float
    asked: float
    half_life_s: float
    window_s: float | None  #: what is older does not count at all; null: it only fades


class SharePartView(Struct, kw_only=True, gc=False):
    """One part of a karma: weight × (share − target)."""

    name: str  #: project, used or asked
    weight: float
    share: float
    target: float
    value: float


class StandingView(Struct, kw_only=True, gc=False):
    """A user in a project. Whoever has the lowest karma goes first."""

    user: str
    project: str
    karma: float
    used_s: float  #: cores × seconds of the user, as they count now
    asked_s: float
    target: float  #: of the user
    target_by: str  #: `share` (it was given), `projects` (their part of their projects) or `equal`
    parts: list[SharePartView]
    why: str


class ProjectShareView(Struct, kw_only=True, gc=False):
    """What a project used of all, and what it should have."""

    project: str
    used_s: float
    share: float
    target: float
    target_by: str  #: `share`, `rest` (a part of what the shares of others leave) or `equal`


class QueueSharesView(Struct, kw_only=True, gc=False):
    """How all stand in one queue; in one whose order is `fifo` it decides nothing."""

    queue: str
    order: str
    project_weight: float
    shares: dict[str, float]
    users: list[StandingView]  #: whoever goes first at the top
    projects: list[ProjectShareView]


class SharesView(Struct, kw_only=True, gc=False):
    """`rota share list`: who stands how in fair share, and why."""

    at: datetime
    version: int
    fair_share: FairShareView
    queues: list[QueueSharesView]


class HostUsage(Struct, kw_only=True, gc=False):
    """How a host spent its time; together the time for which anything is known."""

    host: str
    busy_s: float
    idle_s: float
    down_s: float  #: no runner answered, or nothing was let run there
    asleep_s: float = 0.0  #: it was put to sleep, to be woken when it is needed
    unseen_s: float = 0.0  #: no manager was running to look
    #: busy of the time in which jobs could run there: not while it was down or nobody looked. Null: there was none
    utilisation: float | None = None


class UsageView(Struct, kw_only=True, gc=False, rename={"since": "from", "until": "to"}):
    """`rota usage`: how machines spent their time."""

    since: datetime
    until: datetime
    hosts: list[HostUsage]
    utilisation: float | None = None  #: of all of them together


class MinuteView(Struct, kw_only=True, gc=False):
    """What happened in a minute. Times are sums over attempts that started, or ended, in it."""

    at: datetime
    started: int
    complete: int
    failed: int
    cancelled: int
    wait_s: float
    run_s: float


class HistoryView(Struct, gc=False):
    minutes: list[MinuteView]  #: all of them, in order, also those in which nothing happened


class NodeView(Struct, kw_only=True, gc=False):
    """A host, what it has, and what of it is in use."""

    host: str
    state: str  #: alive, absent, suspected or dead; falling asleep, asleep or waking
    connected: bool
    drain: bool
    usable: bool  #: may new jobs begin there?
    cores: int
    cores_in_use: float
    mem_bytes: int  #: 0: not known
    mem_in_use: int
    disk_bytes: int
    gpus: int
    jobs: list[int]  #: that run there
    runner: str | None
    pid: int | None
    available_until: datetime | None
    limits: dict[str, dict[str, int]]  #: units that this host has: capacity and used
    properties: dict[str, str | int | bool]  #: those that all its resources share
    hours: str = ""  #: when it may be used; empty: always
    why: str = ""  #: of its state or its drain, where somebody said: an administrator, or a hook of the site
    closed: bool = False  #: it is outside its hours, or after the time until which it is available
    capacity_cores: float = 0.0  #: of its cores, those that count: all, or, where nothing may begin, those in use


class NodeHistory(Struct, kw_only=True, gc=False):
    """What a host did for a while: busy, idle, draining, drained, suspected, closed, asleep, away,
    unseen (no manager was running), gone."""

    at: datetime
    until: datetime | None  #: null: until now
    state: str


class NodeDetailView(NodeView, kw_only=True, gc=False):
    """One host with what it did in the last week, newest first."""

    history: list[NodeHistory]
