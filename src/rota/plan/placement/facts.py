"""What the engine hands over before a decision: the site and its rules, and the leases that are out."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntFlag
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from rota.plan.ask import Request
    from rota.plan.policy.decay import Usage
    from rota.plan.policy.policy import Policy
    from rota.plan.policy.priority_caps import Cap
    from rota.plan.policy.quotas import Quotas
    from rota.plan.site.resources import Site


class Lacks(IntFlag):
    """What a placement must be told before it can decide."""

    NOTHING = 0
    VERDICT = 1  #: has the site rules that only a plan can keep?
    RULES = 2
    LEASES = 4


class Vacating(Protocol):
    """How long jobs may take to make room for others: a record that never changes."""

    def leave_s(self, spec: Request) -> float:
        """Seconds after which a job with this request is gone at the latest."""


class Rules(NamedTuple):
    """The site as it is now, and what it lets jobs do."""

    site: Site
    policy: Policy  #: in which order jobs are planned
    usage: Usage  #: what users and projects have used, but for what runs
    quotas: Quotas | None  #: who may hold how much
    patience_s: float  #: how long a reservation waits for resources that are missing at its start
    special_hosts: Mapping[str, str]  #: job type → host on which its commands run
    vacating: Vacating
    gang_patience_s: float = 300.0  #: a gang that waited so long gets a reservation, whatever the policy
    caps: tuple[Cap, ...] = ()  #: of machine groups
