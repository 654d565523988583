"""The states of a job and the one table of legal transitions.

`docs/states.md` is generated from this table (`python -m rota.core.states`).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, Self

from rota.errors import IllegalTransition


class State(IntEnum):
    """The state of a job. The numbers are stored and users know the labels: never change either."""

    DEPENDENT = 1, "dependent"
    BLOCKED = 2, "blocked"
    HELD = 3, "held"
    READY = 4, "ready"
    SCHEDULED = 5, "scheduled"
    STARTING = 6, "starting"
    RUNNING = 7, "running"
    SUSPENDED = 8, "suspended"
    FINISHING = 9, "finishing"
    LOST = 10, "lost"
    DELAYED = 11, "delayed"
    COMPLETE = 12, "complete"
    FAILED = 13, "failed"
    CANCELLED = 14, "cancelled"

    label: str  #: shown to people and in JSON

    def __new__(cls, number: int, label: str = "") -> Self:  # so that `State(3)` works without a label
        made = int.__new__(cls, number)
        made._value_ = number
        made.label = label
        return made


_S = State

TERMINAL: Final = frozenset({_S.COMPLETE, _S.FAILED, _S.CANCELLED})
LIVE: Final = frozenset(State) - TERMINAL
#: An attempt exists and may be executing, so its resources count as taken.
LEASED: Final = frozenset({_S.SCHEDULED, _S.STARTING, _S.RUNNING, _S.SUSPENDED, _S.FINISHING, _S.LOST})
#: Nothing executes: the job waits.
WAITING: Final = frozenset({_S.DEPENDENT, _S.BLOCKED, _S.HELD, _S.READY, _S.DELAYED})
HOLDABLE: Final = frozenset({_S.DEPENDENT, _S.BLOCKED, _S.READY, _S.DELAYED})
RETRYABLE: Final = frozenset({_S.FAILED, _S.CANCELLED})
#: Nothing happens to the job until a person acts.
SETTLED: Final = TERMINAL | {_S.BLOCKED}

BY_LABEL: Final = {state.label: state for state in State}

_ENDS: Final = {_S.COMPLETE, _S.FAILED, _S.CANCELLED, _S.DELAYED}
#: A lease that ends without an outcome sends its job back to waiting.
_BACK: Final = {_S.READY, _S.DEPENDENT, _S.BLOCKED, _S.HELD}

TRANSITIONS: Final[dict[State, frozenset[State]]] = {
    # A member of a gang that waits fails if another one fails for good.
    _S.DEPENDENT: frozenset({_S.READY, _S.BLOCKED, _S.HELD, _S.CANCELLED, _S.FAILED}),
    _S.BLOCKED: frozenset({_S.DEPENDENT, _S.READY, _S.HELD, _S.CANCELLED, _S.FAILED}),
    _S.HELD: frozenset({_S.DEPENDENT, _S.BLOCKED, _S.READY, _S.DELAYED, _S.CANCELLED, _S.FAILED}),
    # A ready job fails without an attempt if its reservation is rejected or it missed its deadline.
    _S.READY: frozenset({_S.SCHEDULED, _S.DEPENDENT, _S.BLOCKED, _S.HELD, _S.CANCELLED, _S.FAILED}),
    _S.SCHEDULED: frozenset({_S.STARTING, _S.RUNNING, _S.FINISHING, _S.LOST, *_BACK, *_ENDS}),
    _S.STARTING: frozenset({_S.RUNNING, _S.FINISHING, _S.LOST, *_BACK, *_ENDS}),
    _S.RUNNING: frozenset({_S.FINISHING, _S.SUSPENDED, _S.LOST, *_BACK, *_ENDS}),
    _S.SUSPENDED: frozenset({_S.RUNNING, _S.FINISHING, _S.LOST, *_BACK, *_ENDS}),
    _S.FINISHING: frozenset({_S.LOST, *_BACK, *_ENDS}),
    _S.LOST: frozenset({_S.SCHEDULED, _S.STARTING, _S.RUNNING, _S.SUSPENDED, _S.FINISHING, *_BACK, *_ENDS}),
    _S.DELAYED: frozenset({_S.READY, _S.DEPENDENT, _S.BLOCKED, _S.HELD, _S.CANCELLED, _S.FAILED}),
    # A terminal state is left only when the job is re-opened: by a retry, or because a live group grew.
    _S.COMPLETE: frozenset({_S.DEPENDENT, _S.BLOCKED, _S.READY}),
    _S.FAILED: frozenset({_S.DEPENDENT, _S.BLOCKED, _S.READY}),
    _S.CANCELLED: frozenset({_S.DEPENDENT, _S.BLOCKED, _S.READY}),
}

#: The states in which a job may begin.
INITIAL: Final = frozenset({_S.DEPENDENT, _S.BLOCKED, _S.READY, _S.HELD})


def check_transition(old: State, new: State, *, story: str = "", job: int = 0) -> None:
    """Raise `IllegalTransition`, which names the job and says how it is, unless the table allows old → new."""
    if new not in TRANSITIONS[old]:
        error = IllegalTransition(f"{old.label} → {new.label} is not allowed; story: {story or 'none'}")
        error.job = job
        raise error


def as_mermaid() -> str:
    """Return the table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2"]
    lines += [f"    [*] --> {state.label}" for state in sorted(INITIAL)]
    for old, targets in TRANSITIONS.items():
        lines += [f"    {old.label} --> {new.label}" for new in sorted(targets)]
    lines += [f"    {state.label} --> [*]" for state in sorted(TERMINAL)]
    return "\n".join(lines)


if __name__ == "__main__":
    print(as_mermaid())
