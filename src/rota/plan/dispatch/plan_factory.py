"""Plans made from what the engine told of the site: the active one, and one for questions."""

from __future__ import annotations

from rota.plan.dispatch.asks import Asks
from rota.plan.dispatch.plan_leases import PlanLeases
from rota.plan.packing.packing import Packing
from rota.plan.placement.explanation import Outlook
from rota.plan.placement.facts import Rules
from rota.plan.placement.leases import Held
from rota.plan.planner.planner import Planner
from rota.plan.policy.limits import Limits

#: How many job classes of plain jobs a plan for questions includes.
_MOST_FIRSTS = 1000


def opened(rules: Rules, limits: Limits, wall: float) -> Planner:
    """An empty plan of the present site."""
    planner = Planner(
        rules.site, rules.policy, quotas=rules.quotas, now=wall, limits=capacities(limits), usage=rules.usage
    )
    _set_terms(planner, rules)
    return planner


def renew(planner: Planner, rules: Rules, limits: Limits, wall: float) -> None:
    """Tell the planner of a changed site or changed rules."""
    _set_terms(planner, rules)
    planner.change_rules(
        rules.site, wall, policy=rules.policy, quotas=rules.quotas, limits=capacities(limits), usage=rules.usage
    )


def _set_terms(planner: Planner, rules: Rules) -> None:
    plan = planner.plan
    plan.patience_s, plan.gang_patience_s, plan.caps = rules.patience_s, rules.gang_patience_s, rules.caps


def capacities(limits: Limits) -> dict[str, int]:
    """The limits that the planner keeps: those with a capacity."""
    return {limit.name: limit.capacity for limit in limits if limit.capacity is not None}


def outlook(rules: Rules, leases: list[Held], asks: Asks, packing: Packing, wall: float) -> Outlook:
    """A plan for questions about jobs that are packed."""
    planner = opened(rules, packing.limits, wall)
    PlanLeases(planner).adopt_all(leases, wall)
    firsts, others = packing.firsts(_MOST_FIRSTS)
    for job, need in firsts:
        ask, submitted = asks.waiting(job, need), asks.submitted(job)
        planner.submit(job, ask, wall, submitted=submitted, serial=job, session_place=asks.session_place(job))
    return Outlook(planner, others)
