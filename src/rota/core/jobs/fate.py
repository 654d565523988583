"""What becomes of a job when an attempt ends. Pure: the engine and the simulator decide by the same rules."""

from __future__ import annotations

from enum import Enum
from typing import Final

#: An idempotent job is queued again if it exits with this status after running at least this long.
AGAIN: Final = 99
AGAIN_AFTER_S: Final = 60.0


class Fate(Enum):
    """What becomes of a job after an attempt."""

    COMPLETE = "it has done its work"
    AGAIN = "it is queued again, which uses no retry"
    CANCELLED = "somebody killed it"
    VACATED = "it made room for another job or ended with its container; it has failed for good"
    FAILED = "it has failed; a retry may follow"


def fate(
    *,
    code: str,
    exit_code: int | None,
    ran_s: float | None,
    idempotent: bool,
    done_at_walltime: bool,
    vacated: bool = False,
    checkpoints: bool = False,
    killed: bool = False,
) -> Fate:
    """What becomes of a job after an attempt.

    `code`: why the attempt failed (`exit`, `walltime`, …); empty: it exited with 0. `vacated`: it was told to make
    room or to end with its container. `checkpoints`: told so, it writes what it has done and exits.
    """
    if killed:
        return Fate.CANCELLED if code else Fate.COMPLETE
    if code == "walltime" and done_at_walltime:
        return Fate.COMPLETE
    # A job that wrote its checkpoint to make room has not done its work, even if it exits with 0.
    if not code and not (vacated and checkpoints and idempotent):
        return Fate.COMPLETE
    if vacated:
        return Fate.AGAIN if idempotent else Fate.VACATED
    if code == "exit" and idempotent and asks_again(exit_code, ran_s):
        return Fate.AGAIN
    return Fate.CANCELLED if code == "kill_requested" else Fate.FAILED


def asks_again(exit_code: int | None, ran_s: float | None) -> bool:
    """Does an idempotent job ask for another run by its exit status, after a minute?"""
    return exit_code == AGAIN and ran_s is not None and ran_s >= AGAIN_AFTER_S
