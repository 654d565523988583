"""Jobs as a placement sees them, without an engine: records only."""

from __future__ import annotations

from dataclasses import dataclass, field

from rota.plan.need import LimitUse, Need
from rota.plan.placement.queue import Offer, rank_of
from rota.plan.size import Floor, Size


@dataclass(frozen=True)
class Asked:
    """What the jobs of one specification ask for."""

    user: str = "ann"
    project: str = ""
    name: str = ""
    queue: str = "default"
    priority: int = 0
    size: Size = field(default_factory=Size)
    given: tuple[str, ...] = ()
    override: str = ""
    walltime_s: float | None = None
    limits: tuple[LimitUse, ...] = ()
    request: tuple[str, ...] = ()
    where: str = ""
    types: tuple[str, ...] = ()
    at: float | None = None
    checkpoint_s: float | None = None
    signal: str = ""
    on_success: tuple[str, ...] = ()
    on_failure: tuple[str, ...] = ()
    on_exit: tuple[str, ...] = ()

    @property
    def on_terms(self) -> bool:
        return bool(self.request or self.types or self.where or self.at is not None or self.queue != "default")


@dataclass(frozen=True)
class Job:
    """One job that was offered."""

    spec: Asked
    spec_id: int = 1
    submitted_at: float = 0.0
    learning_group: str = "prog"
    floor: Floor | None = None
    input_bytes: int | None = None

    @property
    def need(self) -> Need:
        return Need(self.spec.size, self.spec.limits, self.spec_id if self.spec.on_terms else 0)


def offer_of(asked: Asked, *jobs: int, spec_id: int = 1) -> Offer:
    """These jobs, ids ascending, of one specification."""
    return Offer(asked, Job(asked, spec_id).need, rank_of(asked.priority), list(jobs))
