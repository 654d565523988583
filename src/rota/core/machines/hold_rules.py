"""When a job keeps its machines after the run, and for how long. Pure: the simulator decides by the same rule."""

from __future__ import annotations

from typing import Final

ALWAYS: Final = "always"
ON_FAIL: Final = "onfail"
ON_ABORT: Final = "onabort"

#: Reason codes of runs that were aborted from outside.
ABORTED: Final = frozenset({"walltime", "memory", "lost", "gang"})
#: Reason codes without a hold: the user ended the job, it never ran, or others need its resources.
_NEVER: Final = frozenset({"kill_requested", "provision", "preempted", "container"})


def hold_s(reserve: str, reserve_for_s: float | None, *, code: str, cancelled: bool = False) -> float:
    """Seconds for which a job keeps its machines. `code`: why its last run failed; empty: it succeeded."""
    if not reserve or not reserve_for_s or cancelled or code in _NEVER:
        return 0.0
    wanted = reserve == ALWAYS or (reserve == ON_FAIL and bool(code)) or (reserve == ON_ABORT and code in ABORTED)
    return reserve_for_s if wanted else 0.0
