"""What the planner knows about a job: what it asks for, for how long, for whom, and on which terms."""

from __future__ import annotations

from msgspec import Struct

from rota.plan.language.holder_types import HOLDERS
from rota.plan.language.request import Alternative
from rota.plan.need import LimitUse


class Types(Struct, frozen=True, kw_only=True, gc=False):
    """The terms of a job, as `-t` gives them. Times are those of the planner's clock."""

    besteffort: bool = False
    idempotent: bool = False
    container: bool = False
    inner: str = ""  #: id or name of the container it lies in
    timesharing: tuple[str, str] | None = None  #: ("user" or "*", "name" or "*")
    placeholder: str = ""  #: blocks its resources for all but …
    allowed: str = ""  #: … those that are allowed there
    deploy: bool = False
    cosystem: bool = False
    noop: bool = False
    deadline: float | None = None  #: it must have ended by then
    postpone: float | None = None  #: it may not start before
    expire: float | None = None  #: it gives up if it has not started by then
    no_quotas: bool = False  #: no quota counts it
    free: tuple[str, ...] = ()  #: types of the site's own, such as "type:yop", in order

    @property
    def done_at_walltime(self) -> bool:
        """Is the end of its walltime its normal end?"""
        return any(getattr(self, name) for name in HOLDERS)


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
    leave_s: float = 0.0  #: once it is told to make room, it is gone after so long at the latest
