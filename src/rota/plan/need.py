"""What a job takes: a size on a host, and units of limits.

Jobs of equal need form a reservation group: any runner that can run one of them can run the others.
"""

from __future__ import annotations

from msgspec import Struct

from rota.plan.size import Size


class LimitUse(Struct, frozen=True, array_like=True, gc=False):
    """How much of a limit a job takes while it runs."""

    name: str
    units: int = 1
    exclusive: bool = False  #: alone: no other job may use the limit meanwhile

    def __str__(self) -> str:
        units = f":{self.units}" if self.units != 1 else ""
        return f"{self.name}{units}{'!' if self.exclusive else ''}"


class Need(Struct, frozen=True, array_like=True, gc=False):
    """Size and limits of one job."""

    size: Size
    limits: tuple[LimitUse, ...] = ()
    terms: int = 0  #: id of a specification with more than a size (a request, types, a queue); 0: none
