"""A session of a pipeline as a picture, of bounded size however many elements there are."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from rota.wire.pipeline_views import QuestionView, StageSums


class StagePicture(Struct, kw_only=True):
    """A stage with its elements."""

    name: str
    sums: StageSums
    ready: int  #: of those that wait: with a job that waits for room
    imperative: bool
    needs_dependencies: bool
    takes: list[str]  #: units of limits, such as `process` or `download:2`
    #: One letter for each stretch of elements in their order: a(head) p(ending) c(hecking) w(aits for room)
    #: r(unning) o(k) s(kipped) f(ailed) b(locked) t(erminated). A failure, then what runs, hides the rest of its
    #: stretch; else it is what most are.
    stretches: str


class SessionStage(Struct, kw_only=True):
    """A stage that is for the session as a whole."""

    name: str
    state: str  #: waiting, running, ok, failed
    ran: int  #: how often
    job: int | None
    takes: list[str]


class RunningElement(Struct, kw_only=True, gc=False):
    """An element whose job has begun."""

    element: str
    stage: str
    job: int
    attempt: int
    run_s: float  #: for so long its job has run, without pauses
    state: str  #: of the job


class PipelineFailure(Struct, kw_only=True, gc=False):
    """An element that failed, and what it blocks."""

    element: str
    stage: str
    job: int | None
    outcome: str  #: failed (temporary, without a retry left), failed-permanently
    blocks: int  #: elements that are blocked because of it
    blocked: list[str]  #: the first of them


class PipelinePicture(Struct, kw_only=True):
    """A session now. All lists are cut, and say how much there is."""

    session: int
    file: str
    user: str
    state: str  #: running, paused, asking, ended
    on_error: str
    ending: str | None  #: quit, terminate: nothing new begins
    total: int
    outcomes: dict[str, int]  #: elements by waiting, running, ok, skipped, failed, blocked, terminated
    stretch: int  #: elements in a stretch
    stages: list[StagePicture]
    session_stages: list[SessionStage]
    running: list[RunningElement]  #: those that run longest
    running_total: int
    failures: list[PipelineFailure]  #: those that block most
    failures_total: int
    elapsed_s: float
    left_s: float | None  #: about; null: nothing has been measured yet, or it is over
    path_s: float | None  #: the part of this that cannot be done faster, however much runs at once
    started_at: datetime
    ended_at: datetime | None
    question: QuestionView | None


class ElementView(Struct, kw_only=True, gc=False):
    """An element of a session."""

    name: str
    place: int  #: in the order of elements
    state: str  #: waiting, running, ok, skipped, failed, blocked, terminated
    at: str | None  #: the stage where it is; null: it has left the last
    statuses: str  #: by stage, a letter as in the picture
    jobs: list[int | None]  #: by stage
    waits_for: list[str]  #: dependencies that have not passed its stage, the first few
    blocked_by: str | None
    blocked_at: str | None  #: the stage where that failed
    took_s: float  #: its jobs so far


class ElementPage(Struct, kw_only=True):
    """Some elements of a session."""

    stages: list[str]
    elements: list[ElementView]
    offset: int
    total: int  #: that match
