"""The Gantt chart as clients get it: the plan, and what happened before now.

A module of its own: only `rota gantt` and the dashboard need it, and short commands start faster without it.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct, field


class GanttAttempt(Struct, kw_only=True, gc=False):
    """An attempt that has ended."""

    id: int  #: its job
    attempt: int
    name: str
    user: str
    project: str
    queue: str
    group: str
    state: str  #: complete, failed, cancelled or lost
    type: list[str]
    start: datetime
    end: datetime
    host: str  #: where it ran, or began
    cores: float
    resources: str | None  #: the ids that it had; null: not known, or none of its own
    #: where it is drawn: hosts, and places in the list of their resources, from 0 on
    lines: list[tuple[str, str]]
    exact: bool  #: it had just these; false: its host is known, and any that were free are drawn
    suspended_s: float = 0.0  #: of its time


class GanttMerged(Struct, kw_only=True, gc=False):
    """What ran on a host in a slice of time, where there are more attempts than can be drawn."""

    host: str
    start: datetime
    end: datetime
    cores: float  #: in use on average
    attempts: int  #: those that ended in it, or in the last slice
    failed: int


class GanttState(Struct, kw_only=True, gc=False):
    """What a host did for a while, other than being used or idle."""

    host: str
    start: datetime
    end: datetime
    state: str  #: draining, drained, suspected, closed, asleep, away, unseen (no manager was running), gone,
    #: unknown (nobody had heard of it yet)


class GanttPast(Struct, kw_only=True, gc=False):
    """What is over, of the time asked for."""

    until: datetime  #: now, or the end of the time asked for
    attempts: list[GanttAttempt]  #: by start; empty where they are merged
    merged: list[GanttMerged]
    slice_s: float | None  #: so long is each of `merged`; null: there were few enough attempts to list them all
    states: list[GanttState]
    lines: dict[str, int]  #: host that is gone → so many lines it needs
    total: int  #: attempts that ended and ran within the time asked for
    removed: int  #: attempts that ended in these hours, of jobs that were removed since


class GanttHost(Struct, kw_only=True, gc=False):
    """A host with its resources."""

    host: str
    resources: str  #: ids, like 1-8,17
    state: str  #: alive, absent, suspected, dead
    drain: bool
    connected: bool
    usable: bool
    available_until: datetime | None
    hours: str = ""  #: when it may be used; empty: always


class GanttJob(Struct, kw_only=True, gc=False):
    """A job that runs or has a planned start."""

    id: int
    name: str
    user: str
    project: str
    queue: str
    group: str
    state: str
    type: list[str]
    start: datetime
    end: datetime | None  #: expected
    resources: str | None  #: ids; null: none of its own
    host: str | None  #: where it runs, or begins
    reserved: bool = False  #: an advance reservation
    danger: str = ""  #: what of a reservation's resources may not be there at its time, in words


class GanttWaiting(Struct, kw_only=True, gc=False):
    """A job that has no planned start."""

    id: int
    name: str
    user: str
    queue: str
    state: str
    code: str
    message: str


class GanttView(Struct, kw_only=True, gc=False):
    """The plan: what there is, who has it when, and who waits without a planned start."""

    now: datetime
    plan: bool  #: false: every job asks for a size only, and starts as room comes
    hosts: list[GanttHost]
    jobs: list[GanttJob]  #: by start
    left_out: int  #: jobs that are not among these because they are too many
    waiting: list[GanttWaiting]  #: the first of them
    waiting_total: int
    later: int = 0  #: jobs that begin after the time asked for
    earlier: int = 0  #: jobs that will be over before it
    #: hours of hosts → when, within the time asked for, it is not these: from, to
    closed: dict[str, list[tuple[datetime, datetime]]] = field(default_factory=dict)
    past: GanttPast | None = None  #: null: nothing is asked for of the time before now
