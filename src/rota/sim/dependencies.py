"""Dependencies in a simulation: which conditions hold, may still hold, or never will.

The planner supports only `afterok`, and only parents that were submitted. This module adds parents that are
submitted later, `afterany`, `afternotok`, and parents that are queued again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rota.plan.reasons import Waits
from rota.sim.jobs import Parent, TraceJob

#: Verdicts on a condition.
HOLDS, OPEN, NEVER = "holds", "open", "never"


def verdict(condition: str, state: str) -> str:
    """The verdict on a condition, given the state of the parent."""
    if state == "blocked":
        return NEVER
    if state == "complete":
        return NEVER if condition == "afternotok" else HOLDS
    if state == "failed":
        return NEVER if condition == "afterok" else HOLDS
    return OPEN


def hopeless(job: TraceJob, state: Callable[[int], str]) -> Parent | None:
    """A parent whose condition can never hold; None: there is none."""
    return next((parent for parent in job.after if verdict(parent.condition, state(parent.id)) == NEVER), None)


def never(parent: Parent) -> Waits:
    """Why a job is blocked."""
    verb = "complete" if parent.condition == "afterok" else "fail" if parent.condition == "afternotok" else "run"
    return Waits("dependency_never", f"job {parent.id}, which it waits for, did not {verb}")


def not_yet(parent: Parent) -> Waits:
    """Why a job is not planned before its parent is submitted."""
    return Waits("dependency", f"job {parent.id}, which it waits for, has not been submitted yet")


def revived(blocked: Iterable[TraceJob], state: Callable[[int], str]) -> list[TraceJob]:
    """The blocked jobs whose conditions may hold again, parents first."""
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
