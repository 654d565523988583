"""What a session of a pipeline is like at one moment, so that a worker thread can look at it."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from rota.core.attempts.suspension_phases import suspended_s
from rota.core.pipelines.definition import Definition
from rota.core.pipelines.progress import FAILURES, SETTLED, Status
from rota.core.pipelines.session import Session
from rota.core.world import World

#: Words of a status for those who only want to know how far an element is, or what became of it.
WORDS: Final = {
    Status.AHEAD: "waiting",
    Status.PENDING: "waiting",
    Status.CHECKING: "waiting",
    Status.READY: "waiting",
    Status.RUNNING: "running",
    Status.OK: "ok",
    Status.SKIPPED: "skipped",
    Status.FAILED: "failed",
    Status.FAILED_PERMANENTLY: "failed",
    Status.BLOCKED: "blocked",
    Status.TERMINATED: "terminated",
}
STATES: Final = ("waiting", "running", "ok", "skipped", "failed", "blocked", "terminated")
#: What became of an element that has left the last stage is the first of these that it had.
_ENDS: Final = (
    (Status.TERMINATED, "terminated"),
    (Status.BLOCKED, "blocked"),
    (Status.OK, "ok"),
    (Status.SKIPPED, "skipped"),
)
#: Statuses of a stage at which a job of the element has worked, or works.
_WORKED: Final = frozenset((Status.RUNNING, Status.OK, *FAILURES))
#: Instead of an element: none.
NOBODY: Final = -1


class RunningCell(NamedTuple):
    """An element at a stage whose job has begun."""

    element: int
    stage: int
    job: int
    attempt: int
    run_s: float  #: for so long, without pauses
    state: str


class ElementNow(NamedTuple):
    """What follows from the statuses of an element."""

    state: str  #: failed, also while it goes on; waiting or running; or what became of it
    at: int | None  #: the stage where it is; None: it has left the last
    first_bad: int | None  #: the first stage at which it failed, was blocked or terminated
    worked: bool  #: a job of it has begun to work


@dataclass(frozen=True, kw_only=True)
class SessionSnapshot:
    """A copy of what changes, and the definition, which does not."""

    definition: Definition
    stages: list[int]  #: that every element takes
    needs: list[bool]  #: stage → does it wait for dependencies?
    width: int
    statuses: bytes
    jobs: array[int]
    durations: array[float]
    measured_s: array[float]  #: by element, in earlier sessions; 0: not known
    running: list[RunningCell]
    elapsed_s: float

    def row(self, element: int) -> bytes:
        """The statuses of an element, by stage."""
        return self.statuses[element * self.width : (element + 1) * self.width]

    @cached_property
    def elements(self) -> list[ElementNow]:
        """What each element is now. Thousands of them have only a few different rows of statuses."""
        known: dict[bytes, ElementNow] = {}
        found = []
        for element in range(len(self.definition.elements)):
            row = self.row(element)
            now = known.get(row)
            if now is None:
                now = known[row] = self._now(row)
            found.append(now)
        return found

    def _now(self, row: bytes) -> ElementNow:
        at = next((stage for stage in self.stages if row[stage] < SETTLED), None)
        if not FAILURES.isdisjoint(row):
            state = "failed"
        elif at is not None:
            state = "running" if Status.RUNNING in row else "waiting"
        else:
            state = next((word for status, word in _ENDS if status in row), "waiting")
        bad = next((stage for stage, status in enumerate(row) if status > Status.SKIPPED), None)
        return ElementNow(state, at, bad, not _WORKED.isdisjoint(row))

    def job(self, element: int, stage: int) -> int | None:
        return self.jobs[element * self.width + stage] or None

    @cached_property
    def culprits(self) -> list[int]:
        """By element: the one whose failure blocks it, itself if it failed, `NOBODY` if nothing did."""
        found = [NOBODY] * len(self.elements)
        for element, now in enumerate(self.elements):  # all that it depends on comes before it
            stage = now.first_bad
            if stage is None:
                continue
            if self.row(element)[stage] != Status.BLOCKED:
                found[element] = element
                continue
            depends = self.definition.elements[element].depends
            found[element] = next(
                (found[parent] for parent in depends if self.row(parent)[stage] > Status.SKIPPED), NOBODY
            )
        return found


def take(session: Session, world: World, now: float) -> SessionSnapshot:
    """Belongs to the loop's thread."""
    progress, route = session.progress, session.route
    running = []
    for id, cell in session.live.items():
        job = world.jobs.get(id)
        if job is not None and progress.statuses[cell] == Status.RUNNING:
            element, stage = session.place_of(cell)
            run_s = 0.0
            if (lease := job.lease) is not None and lease.started_at is not None:
                run_s = max(0.0, now - lease.started_at - suspended_s(lease, now))
            running.append(RunningCell(element, stage, id, job.attempt, run_s, job.state.label))
    return SessionSnapshot(
        definition=session.definition,
        stages=[stage for stage, counts in enumerate(route.counted) if counts],
        needs=route.needs,
        width=progress.width,
        statuses=bytes(progress.statuses),
        jobs=progress.jobs[:],
        durations=session.durations[:],
        measured_s=session.measured_s[:],
        running=running,
        elapsed_s=session.elapsed_s(now),
    )
