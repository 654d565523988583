"""What the Gantt chart tells of the past: attempts that have ended, and what hosts did."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


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
