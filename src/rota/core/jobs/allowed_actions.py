"""Which jobs an action can change: used by the actions themselves and by dry runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeGuard

from rota.core.answers import Acted
from rota.core.jobs.job import Job
from rota.core.states import HOLDABLE, RETRYABLE, TERMINAL, State
from rota.core.world import World, acted_on


def can_kill(job: Job | None) -> TypeGuard[Job]:
    """Is the job live, and not being killed already?"""
    return job is not None and job.state not in TERMINAL and not job.kill


def can_hold(job: Job | None) -> TypeGuard[Job]:
    """Does the job wait, and is it not held?"""
    return job is not None and job.state in HOLDABLE


def can_release(job: Job | None) -> TypeGuard[Job]:
    """Is the job held?"""
    return job is not None and job.state is State.HELD


_CAN: Final[dict[str, Callable[[Job | None], bool]]] = {
    "kill": can_kill, "hold": can_hold, "release": can_release
}  # fmt: skip


def would_change(world: World, verb: str, jobs: Iterable[int]) -> Acted:
    """Split jobs by whether an action would change them now. Ended jobs need not be in memory."""
    changed: list[int] = []
    unchanged: list[int] = []
    can = _CAN.get(verb)
    for id in acted_on(world, verb, list(jobs)) if can is not None else jobs:
        if verb == "retry":
            yes = world.outcome(id) in RETRYABLE and not world.is_replaced(id)
        else:
            yes = can is None or can(world.jobs.get(id))
        (changed if yes else unchanged).append(id)
    return Acted(changed, unchanged)
