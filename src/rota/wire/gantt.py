"""The Gantt chart as clients get it: the plan, and what happened before now.

A separate module, because only `rota gantt` and the dashboard need it, and other commands start faster without it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import Struct, field

#: State of a job in the chart that has ended and keeps its machines.
KEEPS: Final = "keeps"


class GanttAttempt(Struct, kw_only=True, gc=False):
    """An ended attempt."""

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
    host: str  #: where it ran, or started
    cores: float
    resources: str | None  #: ids of its resources; null: unknown, or none of its own
    #: where to draw it: hosts, and indexes into their resources
    lines: list[tuple[str, str]]
    exact: bool  #: these exact resources; false: only the host is known, and free ones are drawn
    suspended_s: float = 0.0  #: of its time
    gang: str = ""  #: the gang that it was a member of


class GanttMerged(Struct, kw_only=True, gc=False):
    """Use of a host in one time slice, when there are too many attempts to draw."""

    host: str
    start: datetime
    end: datetime
    cores: float  #: average in use
    attempts: int  #: ended in this slice; later ends count in the last one
    failed: int


class GanttState(Struct, kw_only=True, gc=False):
    """A period of a host in a state other than busy or idle."""

    host: str
    start: datetime
    end: datetime
    state: str  #: draining, drained, suspected, closed, asleep, away, unseen (no manager was running), gone,
    #: unknown (before it was first seen); or its condition: manual, broken, removed


class GanttPast(Struct, kw_only=True, gc=False):
    """The past part of the requested window."""

    until: datetime  #: now, or the end of the window
    attempts: list[GanttAttempt]  #: by start; empty if merged
    merged: list[GanttMerged]
    slice_s: float | None  #: length of each slice in `merged`; null: all attempts are listed
    states: list[GanttState]
    lines: dict[str, int]  #: removed host → number of lines it needs
    total: int  #: ended attempts that ran within the window
    removed: int  #: attempts that ended in the hours of the window, of jobs removed since


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
    condition: str = "automated"  #: automated, manual, broken or removed


class GanttJob(Struct, kw_only=True, gc=False):
    """A running job, one with a planned start, or one that has ended and keeps its machines (`keeps`)."""

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
    host: str | None  #: where it runs, or will start
    reserved: bool = False  #: an advance reservation
    danger: str = ""  #: which of a reservation's resources may be missing at its start, in words
    gang: str = ""  #: the gang that it is a member of


class GanttWaiting(Struct, kw_only=True, gc=False):
    """A job without a planned start."""

    id: int
    name: str
    user: str
    queue: str
    state: str
    code: str
    message: str


class GanttView(Struct, kw_only=True, gc=False):
    """The plan: hosts, running and planned jobs, and waiting jobs without a planned start."""

    now: datetime
    plan: bool  #: false: all jobs ask for a size only, and start as soon as there is room
    hosts: list[GanttHost]
    jobs: list[GanttJob]  #: by start
    left_out: int  #: number of further jobs, not listed
    waiting: list[GanttWaiting]  #: the first of them
    waiting_total: int
    later: int = 0  #: jobs that start after the window
    earlier: int = 0  #: jobs that end before the window
    #: opening hours of hosts → closed periods within the window: from, to
    closed: dict[str, list[tuple[datetime, datetime]]] = field(default_factory=dict)
    past: GanttPast | None = None  #: null: the window does not include the past
