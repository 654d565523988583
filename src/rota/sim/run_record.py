"""The record of one job during a simulation."""

from __future__ import annotations

from math import inf
from typing import Final

from msgspec import Struct, structs

from rota.core.states import State
from rota.plan.ask import Ask
from rota.plan.placement.given import Provision
from rota.plan.reasons import Waits
from rota.sim.jobs import TraceJob
from rota.sim.metrics import plain

_EXPIRED: Final = Waits("expired", "it had not started when it expired")
_MISSED: Final = Waits("expired", "it could not end before its deadline")
_TOO_LATE: Final = Waits("reservation", "its time had passed before its resources were there")


def gave_up(job: TraceJob) -> Waits:
    """Why a job that has not started is over."""
    types = job.ask.types
    if job.ask.at is not None:
        return _TOO_LATE
    return _MISSED if types.deadline is not None and types.deadline <= (types.expire or inf) else _EXPIRED


def postponed(ask: Ask, until: float | None) -> Ask:
    """The same request, not before this moment."""
    if until is None or until <= (ask.types.postpone or 0.0):
        return ask
    return structs.replace(ask, types=structs.replace(ask.types, postpone=until))


class RunRecord(Struct):
    """The state of a job during the run."""

    job: TraceJob
    state: State = State.READY
    submitted: bool = False
    serial: int = 0  #: its position among jobs submitted at the same moment
    start: float | None = None  #: since when it has had machines without a break
    end: float | None = None
    resources: str | None = None
    hosts: tuple[str, ...] = ()
    width: int = 0  #: how many resources
    reason: Waits | None = None
    attempts: int = 0
    exits: tuple[int, ...] = (0,)  #: exit codes of the coming attempts that end by themselves
    failures: int = 0
    not_before: float | None = None  #: it waits so long for its next attempt
    cut: bool = False  #: the running attempt will reach its walltime
    taken: float = 0.0  #: when the present attempt got its machines
    executing: float | None = None  #: since when it executes; None: it is being provisioned
    alternative: int = 0  #: which of its requests was chosen
    provisions: tuple[Provision, ...] = ()  #: of the machines of the present attempt
    #: since when it had machines that could not be provisioned, and when it lost them
    lost: tuple[float, float] | None = None
    provision_s: float = 0.0  #: including provisionings that failed
    hold_s: float = 0.0
    holding: bool = False  #: it is over, and keeps its machines
    avoid: tuple[str, ...] = ()  #: hosts on which provisioning failed

    @property
    def wait_s(self) -> float | None:
        """Its time outside provisioning, execution and hold; None: it has not ended."""
        if self.end is None or self.start is None:
            return None
        return (self.end if self.executing is None else self.executing) - self.job.submit - self.provision_s

    def forget_attempt(self, *, provisioned: bool) -> None:
        """It is queued again. `provisioned`: the time in which its machines were provisioned still counts."""
        self.start = self.resources = self.executing = None
        self.hosts, self.width, self.provisions = (), 0, ()
        if not provisioned:
            self.provision_s = 0.0

    def as_json(self) -> dict[str, object]:
        """As the contract of `rota simulate` has it."""
        return {
            "id": self.job.id,
            "submit": plain(self.job.submit),
            "start": None if self.start is None else plain(self.start),
            "end": None if self.end is None else plain(self.end),
            "resources": self.resources,
            "host": ",".join(self.hosts) if self.resources is not None else None,
            "state": self.state.label,
            "reason": None if self.reason is None else {"code": self.reason.code, "message": self.reason.message},
            "wait_s": None if (wait_s := self.wait_s) is None else plain(wait_s),
            "provision_s": plain(self.provision_s),
            "hold_s": plain(self.hold_s),
        }
