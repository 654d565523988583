"""Dependencies in a simulation: which parents a job still waits for, and which can never satisfy it.

The planner supports only `afterok`, and only parents that were submitted. This module adds parents that are
submitted later, `afterany`, `afternotok`, and parents that are queued again. What the state of a parent means is
decided by `rota.core.jobs.dependency_rules`, as in the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rota.core.jobs.dependency_rules import UNDECIDED, verdict_on
from rota.core.jobs.job import Condition
from rota.core.states import State
from rota.plan.reasons import Waits
from rota.sim.jobs import Parent, TraceJob


def is_open(parent: Parent, state: State) -> bool:
    """Does a job wait for this parent?"""
    return verdict_on(parent.condition, state) == UNDECIDED


def hopeless(job: TraceJob, state: Callable[[int], State]) -> Parent | None:
    """A parent whose condition can never hold; None: there is none."""
    return next((parent for parent in job.after if verdict_on(parent.condition, state(parent.id))[1]), None)


def never(parent: Parent) -> Waits:
    """Why a job is blocked."""
    verb = {Condition.OK: "complete", Condition.NOT_OK: "fail", Condition.ANY: "run"}[parent.condition]
    return Waits("dependency_never", f"job {parent.id}, which it waits for, did not {verb}")


def not_yet(parent: Parent, *, submitted: bool) -> Waits:
    """Why a job is not planned before its parent is submitted, or has ended."""
    missing = "has not ended yet" if submitted else "has not been submitted yet"
    return Waits("dependency", f"job {parent.id}, which it waits for, {missing}")


def revived(blocked: Iterable[TraceJob], state: Callable[[int], State]) -> list[TraceJob]:
    """The blocked jobs whose conditions may hold again, parents first."""
    able = {job.id: job for job in blocked}
    while True:
        lost = [
            id
            for id, job in able.items()
            if hopeless(job, lambda id: State.READY if id in able else state(id)) is not None
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
