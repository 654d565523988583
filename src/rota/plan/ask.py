"""What the planner knows of a job: its alternatives, its user, its queue and its types."""

from __future__ import annotations

from msgspec import Struct

from rota.plan.language.request import Alternative
from rota.plan.language.types import Types
from rota.plan.need import LimitUse


class Ask(Struct, frozen=True, kw_only=True, gc=False):
    """One job, to the planner."""

    alternatives: tuple[Alternative, ...]
    user: str = ""
    project: str = ""
    name: str = ""
    queue: str = "default"
    priority: int = 0
    time_s: float = 3600.0  #: how long it is expected to run where there is no walltime
    mem: int = 0  #: bytes on each host
    disk: int = 0  #: bytes on each host
    gpus: int = 0  #: on each host
    share: int = 0  #: of its one core, in hundredths; 0: whole cores
    limits: tuple[LimitUse, ...] = ()
    types: Types = Types()
    at: float | None = None  #: an advance reservation for this moment
    leave_s: float = 0.0  #: after a preemption notice it has ended within this time
