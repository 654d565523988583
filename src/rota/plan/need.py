"""What a job takes: a size on a host, and units of limits.

Jobs of equal need form a reservation group: any runner that can run one of them can run the others.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from rota.plan.size import Size
from rota.pool_names import is_delegated

#: An estimate may be wrong: an allocation lasts so many times as long.
_TIMES: Final = 1.5
#: For the end of a job at its walltime, after its grace.
_SPARE_S: Final = 60.0


class LimitUse(Struct, frozen=True, array_like=True, gc=False):
    """How much of a limit a job takes while it runs."""

    name: str
    units: int = 1
    exclusive: bool = False  #: alone: no other job may use the limit meanwhile

    def __str__(self) -> str:
        units = f":{self.units}" if self.units != 1 else ""
        return f"{self.name}{units}{'!' if self.exclusive else ''}"


class Need(Struct, frozen=True, array_like=True, gc=False):
    """Size and limits of one job, and where it may run."""

    size: Size
    limits: tuple[LimitUse, ...] = ()
    terms: int = 0  #: id of a specification with more than a size (a request, types, a queue); 0: none
    pool: str = ""  #: the pool that the job names; empty: any
    walltime_s: float = 0.0  #: hard limit on the duration; 0: none

    @property
    def group(self) -> Need:
        """Its reservation group: a runner of a delegated pool that was made for one of them can run the others."""
        if not self.terms and not self.pool:
            return self
        return Need(self.size, self.limits, 0, "", self.walltime_s)


def is_planned(need: Need) -> bool:
    """Do jobs of this need take a core of a planned pool, so that a plan must know of them?"""
    return bool(need.size.cpus) and not is_delegated(need.pool)


def allocation_s(need: Need, grace_s: float) -> float:
    """How long an allocation of a delegated pool lasts that is made for jobs of this need."""
    walltime = need.walltime_s + grace_s + _SPARE_S if need.walltime_s else 0.0
    return max(need.size.time_s * _TIMES, walltime)
