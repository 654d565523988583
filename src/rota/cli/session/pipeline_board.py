"""What is known of a session of a pipeline while it is watched: its sums, its running jobs and its time.

No I/O: the clock is an argument. A session's time stands still while the session does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from rota.wire.pipeline_views import (
        PipelineEvent,
        PipelineItem,
        PipelineView,
        ProgressView,
        QuestionView,
        StageSums,
    )

#: (element, stage); a stage for the session as a whole has no element.
Place = tuple[str, str]


class RunningJob(Struct):
    """A job that runs for an element at a stage."""

    element: str
    stage: str
    job: int
    attempt: int
    began_s: float  #: in the time of the session
    progress: ProgressView | None = None


class Board:
    """The present state of one session."""

    def __init__(self) -> None:
        self.session = 0
        self.file = ""
        self.cwd = ""
        self.state = "running"
        self.total = 0
        self.started = False  #: was its state seen?
        self.stages: dict[str, StageSums] = {}
        self.running: dict[Place, RunningJob] = {}
        self.failed: dict[Place, int | None] = {}  #: what has failed, with its job, as far as it was seen
        self.question: QuestionView | None = None
        self._zero = 0.0  #: when the clock was at 0
        self._still_at: float | None = None

    def elapsed_s(self, now: float) -> float:
        """The time of the session."""
        return max(0.0, (now if self._still_at is None else self._still_at) - self._zero)

    def take(self, item: PipelineItem, now: float) -> None:
        """Take what the manager said."""
        self.session = item.session
        for event in item.events:
            self._happened(event, now)
        if item.stages:
            self.stages = item.stages
        if item.view is not None:
            self.show(item.view, now)

    def show(self, view: PipelineView, now: float) -> None:
        """Take the whole state."""
        self.started = True
        self.session, self.file, self.cwd = view.session, view.file, view.cwd
        self.state, self.total, self.stages = view.state, view.total, view.stages
        self.question = view.question
        self._zero = now - view.elapsed_s
        self._still_at = None if view.state == "running" else now
        known, self.running = self.running, {}
        for each in view.running:
            place = (each.element or "", each.stage)
            before = known.get(place)
            progress = before.progress if before is not None and before.job == each.job else None
            self.running[place] = RunningJob(
                *place, each.job, each.attempt, view.elapsed_s - each.run_s, each.progress or progress
            )

    def _happened(self, event: PipelineEvent, now: float) -> None:
        place = (event.element or "", event.stage or "")
        match event.event:
            case "started":
                self.failed.pop(place, None)
                self.running[place] = RunningJob(
                    *place, event.job or 0, event.attempt or 0, self.elapsed_s(now), event.progress
                )
            case "progress":
                if (job := self.running.get(place)) is not None:
                    job.progress = event.progress
            case "ended" | "retried":
                self.running.pop(place, None)
                self.failed.pop(place, None)
                if event.event == "ended" and (event.outcome or "").startswith("failed"):
                    self.failed[place] = event.job
            case "suspended" | "asked" if not event.element or event.event == "asked":
                self._stand_still(now, "paused" if event.event == "suspended" else "asking")
            case "resumed" if not event.element:
                self._go_on(now)

    def _stand_still(self, now: float, state: str) -> None:
        self.state = state
        if self._still_at is None:
            self._still_at = now

    def _go_on(self, now: float) -> None:
        self.state, self.question = "running", None
        if self._still_at is not None:
            self._zero += now - self._still_at
            self._still_at = None
