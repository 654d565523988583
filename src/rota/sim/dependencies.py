"""Who waits for whom in a simulation: which conditions hold, still may hold, or never will.

The planner knows only jobs that must complete, and only those that it has been told of. The rest is seen
to here: parents that come later, `afterany` and `afternotok`, and parents that are queued again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rota.plan.reasons import Waits
from rota.sim.jobs import Parent, TraceJob

#: What can be said of a condition.
HOLDS, OPEN, NEVER = "holds", "open", "never"


def verdict(condition: str, state: str) -> str:
    """Of a condition on a job that is in this state."""
    if state == "blocked":
        return NEVER
    if state == "complete":
        return NEVER if condition == "afternotok" else HOLDS
    if state == "failed":
        return NEVER if condition == "afterok" else HOLDS
    return OPEN


def hopeless(job: TraceJob, state: Callable[[int], str]) -> Parent | None:
    """A parent for which this job waits in vain."""
    return next((parent for parent in job.after if verdict(parent.condition, state(parent.id)) == NEVER), None)


def never(parent: Parent) -> Waits:
    """Why a job is blocked."""
    said = "complete" if parent.condition == "afterok" else "fail" if parent.condition == "afternotok" else "run"
    return Waits("dependency_never", f"job {parent.id}, which it waits for, did not {said}")


def not_yet(parent: Parent) -> Waits:
    """Why a job is not planned before its parent is there."""
    return Waits("dependency", f"job {parent.id}, which it waits for, has not been submitted yet")


def revived(blocked: Iterable[TraceJob], state: Callable[[int], str]) -> list[TraceJob]:
    """Of the blocked jobs, those that need not be, parents first."""
    able = {job.id: job for job in blocked}
    while True:
        lost = [
            id
            for id, job in able.items()
            if hopeless(job, lambda id: "ready" if id in able else state(id)) is not None
        ]
        if not lost:
            break
        for id in lost:
            del able[id]
    found: list[TraceJob] = []
    while able:
        first = [job for job in able.values() if not any(parent.id in able for parent in job.after)]
        found += first
        for job in first:
            del able[job.id]
    return found
