"""What a planner must ask the engine about jobs and the site."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from rota.plan.placement.leases import Away, Held, Reserved

if TYPE_CHECKING:
    from rota.plan.ask import Ask
    from rota.plan.policy.decay import Usage
    from rota.plan.policy.policy import Policy
    from rota.plan.policy.quotas import Quotas
    from rota.plan.site.resources import Site


class Terms(Protocol):
    """What a planner must ask the engine about jobs and the site."""

    def ask(self, job: int) -> Ask:
        """What this waiting or leased job asks of the planner."""

    def submitted(self, job: int) -> float:
        """When it was submitted."""

    def group(self, job: int) -> int:
        """Waiting jobs of one group and need ask for the same."""

    def held(self) -> list[Held]:
        """All leases that are out."""

    def away(self, job: int) -> Away | None:
        """How long this lease will run when it goes on, if it is suspended and has given up its cores."""

    def reserved(self, job: int) -> Reserved | None:
        """What this reservation was granted before; None: it was not."""

    def runs_at(self, job: int) -> str | None:
        """The host that its command runs on though its resources are elsewhere; empty: it has none to run. None:
        it runs on its resources. Raises `NotFound` if nobody said which host that is."""

    def patience_s(self) -> float:
        """How long a reservation waits for resources that are missing at its start."""

    def wanted(self) -> bool:
        """Has the site rules that only the planner knows how to keep?"""

    def site(self) -> Site:
        """The resources as they are now."""

    def policy(self) -> Policy:
        """In which order jobs are planned."""

    def usage(self, wall: float) -> Usage:
        """What users and projects have used, but for what runs."""

    def quotas(self, site: Site) -> Quotas | None:
        """Who may hold how much."""
