"""Plans made from what the engine knows of the site: the active one, and one for questions."""

from __future__ import annotations

from rota.plan.dispatch.plan_leases import PlanLeases
from rota.plan.packing.packing import Packing
from rota.plan.placement.explanation import Outlook
from rota.plan.placement.terms import Terms
from rota.plan.planner.planner import Planner
from rota.plan.policy.limits import Limits

#: How many job classes of plain jobs a plan for questions includes.
_MOST_FIRSTS = 1000


def opened(terms: Terms, limits: Limits, wall: float) -> Planner:
    """An empty plan of the present site."""
    site = terms.site()
    quotas = terms.quotas(site)
    planner = Planner(
        site, terms.policy(), quotas=quotas, now=wall, limits=capacities(limits), usage=terms.usage(wall)
    )
    planner.plan.patience_s = terms.patience_s()
    return planner


def renew(planner: Planner, terms: Terms, limits: Limits, wall: float) -> None:
    """Tell the planner of a changed site or changed rules."""
    site = terms.site()
    quotas = terms.quotas(site)
    planner.change_rules(
        site, wall, policy=terms.policy(), quotas=quotas, limits=capacities(limits), usage=terms.usage(wall)
    )


def capacities(limits: Limits) -> dict[str, int]:
    """The limits that the planner keeps: those with a capacity."""
    return {limit.name: limit.capacity for limit in limits if limit.capacity is not None}


def outlook(terms: Terms, packing: Packing, wall: float) -> Outlook:
    """A plan for questions about jobs that are packed."""
    planner = opened(terms, packing.limits, wall)
    PlanLeases(planner, terms).adopt_all(wall)
    firsts, others = packing.firsts(_MOST_FIRSTS)
    for job in firsts:
        planner.submit(job, terms.ask(job), wall, submitted=terms.submitted(job), serial=job)
    return Outlook(planner, others)
