"""Jobs as a placement sees them, without an engine: records only."""

from __future__ import annotations

from dataclasses import dataclass, field

from rota.plan.need import LimitUse, Need
from rota.plan.placement.queue import Offer, RankKey, rank_of
from rota.plan.size import Floor, Size
from rota.pool_names import is_delegated


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
    pool: str = ""
    provision: str = ""
    reserve: str = ""
    reserve_for_s: float | None = None
    prefer: str = ""
    force_host: str = ""
    gang: str = ""

    @property
    def on_terms(self) -> bool:
        more = self.request or self.types or self.where or self.at is not None or self.queue != "default"
        more = more or self.provision or self.reserve or self.prefer or self.force_host or self.gang
        return bool(more) and not is_delegated(self.pool)


@dataclass(frozen=True)
class Job:
    """One job that was offered."""

    spec: Asked
    spec_id: int = 1
    submitted_at: float = 0.0
    learning_group: str = "prog"
    floor: Floor | None = None
    input_bytes: int | None = None
    avoid: tuple[str, ...] = ()
    within: tuple[int, int, int] = (0, 0, 0)  #: session, stage and depth, in a pipeline

    @property
    def rank_key(self) -> RankKey:
        return RankKey(-self.spec.priority, *self.within)

    @property
    def need(self) -> Need:
        spec = self.spec
        terms = self.spec_id if spec.on_terms else 0
        return Need(spec.size, spec.limits, terms, spec.pool, spec.walltime_s or 0.0)


def offer_of(asked: Asked, *jobs: int, spec_id: int = 1) -> Offer:
    """These jobs, ids ascending, of one specification."""
    return Offer(asked, Job(asked, spec_id).need, rank_of(asked.priority), list(jobs))
