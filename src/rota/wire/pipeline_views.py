"""Sessions of pipelines as clients see them: the objects behind `rota pipeline … --json`."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class PipelineBegun(Struct, kw_only=True):
    """A session was started, or runs already."""

    session: int
    new: bool


class StageSums(Struct, kw_only=True, gc=False):
    """How many elements were processed, skipped … at a stage."""

    processed: int
    skipped: int
    failed: int
    blocked: int
    terminated: int
    waiting: int = 0
    running: int = 0


class QuestionView(Struct, kw_only=True, gc=False):
    """What a session asks: an element has failed."""

    element: str
    stage: str
    job: int | None


class ProgressView(Struct, kw_only=True, gc=False):
    """What a job last said about its progress."""

    done: float
    of: float | None = None
    text: str = ""


class RunningView(Struct, kw_only=True, gc=False):
    """An element whose job is running at a stage."""

    element: str | None
    stage: str
    job: int
    attempt: int
    run_s: float  #: for so long its job has run, without pauses
    progress: ProgressView | None = None


class PipelineView(Struct, kw_only=True):
    """A session now, or at its end."""

    session: int
    file: str
    user: str
    state: str  #: running, paused, asking, ended
    total: int
    stages: dict[str, StageSums]
    elements: dict[str, str]  #: ok, failed, terminated, blocked, skipped, waiting, running
    elapsed_s: float
    started_at: datetime
    ended_at: datetime | None = None
    failed: bool = False  #: did anything fail?
    question: QuestionView | None = None
    failures: dict[str, str] = {}  #: element that is blocked → the one that failed, the first thousand
    cwd: str = ""
    running: list[RunningView] = []  #: the first thousand


class PipelineBrief(Struct, kw_only=True):
    """One line about a session."""

    session: int
    file: str
    user: str
    state: str
    total: int
    left: int
    elapsed_s: float
    started_at: datetime | None = None
    ended_at: datetime | None = None
    sums: StageSums | None = None  #: of all stages together


class PipelineEvent(Struct, kw_only=True, gc=False):
    """Something that happened in a session."""

    event: str
    element: str | None
    stage: str | None
    job: int | None
    attempt: int | None
    outcome: str | None
    at: datetime
    by: str | None = None  #: blocked: the element that failed
    progress: ProgressView | None = None
    lacks: str | None = None  #: blocked: the stage takes failed elements, and this placeholder is not known


class PipelineItem(Struct, kw_only=True):
    """A message to a client that watches a session."""

    session: int
    events: list[PipelineEvent] = []
    stages: dict[str, StageSums] = {}  #: after these events
    view: PipelineView | None = None  #: first, and when the session stands still or goes on
