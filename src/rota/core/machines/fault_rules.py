"""What a run says about its machine, and when runs in a row make it broken. Pure: also for the simulator."""

from __future__ import annotations

from enum import Enum
from typing import Final

from msgspec import Struct

#: Faulty runs in a row that make a machine broken.
MOST: Final = 2
PROVISION: Final = "provision"
#: Reasons for which the site aborts a run. A run that its user or another job ended says nothing about the
#: machine.
ABORTED: Final = frozenset({"walltime", "watchdog", "memory", "lost"})
_NEUTRAL: Final = frozenset({"kill_requested", "preempted", "container", "gang"})


class Verdict(Enum):
    """What a run says about its machine."""

    GOOD = "it ended by itself, so the machine is fit"
    FAULTY = "the machine could not be provisioned, or the run was aborted"
    NOTHING = "neither"


class Faults(Struct, frozen=True, array_like=True):
    """The faulty runs in a row on one machine."""

    job: int  #: the last of them
    number: int
    why: str
    at: float  #: wall time of the last of them

    @property
    def is_broken(self) -> bool:
        return self.number >= MOST


def verdict(code: str, *, executed: bool, watched: bool) -> Verdict:
    """What a run that ended for this reason says. `watched`: the machine has an owner or a group, or was
    provisioned for the run."""
    if code in _NEUTRAL or (not executed and code != PROVISION):
        return Verdict.NOTHING
    if code != PROVISION and code not in ABORTED:
        return Verdict.GOOD
    return Verdict.FAULTY if code == PROVISION or watched else Verdict.NOTHING


def another(known: Faults | None, *, job: int, leased_at: float | None, why: str, now: float) -> Faults | None:
    """One more faulty run of this job, which got the machine then; None: it proves nothing new."""
    if known is None:
        return Faults(job, 1, why, now)
    if known.job == job or (leased_at is not None and leased_at < known.at):
        return None  # the same job again, or one that ran at the same time
    return Faults(job, known.number + 1, f"{known.why}; {why}", now)
