"""What the state of a parent means to a job that waits for it. Pure: the engine and the simulator share it."""

from __future__ import annotations

from typing import Final

from rota.core.jobs.job import Condition
from rota.core.states import TERMINAL, State

#: (the parent satisfies the dependent, it never will as things are)
Verdict = tuple[bool, bool]

UNDECIDED: Final[Verdict] = (False, False)


def satisfied(condition: int, outcome: int) -> bool:
    """Does a parent with this outcome let its dependent run?"""
    if condition == Condition.ANY:
        return outcome in TERMINAL
    if condition == Condition.OK:
        return outcome == State.COMPLETE
    return outcome in (State.FAILED, State.CANCELLED)


def verdict_on(condition: int, state: State) -> Verdict:
    """The verdict on a parent in this state. A blocked parent blocks its dependents, whatever their condition."""
    if state in TERMINAL:
        ok = satisfied(condition, state)
        return ok, not ok
    return False, state is State.BLOCKED
