"""Plans made of what the engine says about the site: the one that is carried out, and one that is only asked."""

from __future__ import annotations

from rota.plan.dispatch.plan_leases import PlanLeases
from rota.plan.packing.packing import Packing
from rota.plan.placement import Outlook, Terms
from rota.plan.planner.planner import Planner
from rota.plan.policy.limits import Limits

#: Of how many kinds of waiting plain jobs the first is in a plan that is only asked.
_MOST_FIRSTS = 1000


def opened(terms: Terms, limits: Limits, wall: float) -> Planner:
    """A plan of the present site, with nobody in it."""
    site = terms.site()
    quotas = terms.quotas(site)
    planner = Planner(
        site, terms.policy(), quotas=quotas, now=wall, limits=capacities(limits), usage=terms.usage(wall)
    )
    planner.plan.patience_s = terms.patience_s()
    return planner


def renew(planner: Planner, terms: Terms, limits: Limits, wall: float) -> None:
    """The site has changed, and with it the plan."""
    site = terms.site()
    quotas = terms.quotas(site)
    planner.change_rules(
        site, wall, policy=terms.policy(), quotas=quotas, limits=capacities(limits), usage=terms.usage(wall)
    )


def capacities(limits: Limits) -> dict[str, int]:
    """The limits of the site, as far as the planner knows how to keep them."""
    return {limit.name: limit.capacity for limit in limits if limit.capacity is not None}


def outlook(terms: Terms, packing: Packing, wall: float) -> Outlook:
    """The plan that there would be, for jobs that are packed."""
    planner = opened(terms, packing.limits, wall)
    PlanLeases(planner, terms).adopt_all(wall)
    firsts, others = packing.firsts(_MOST_FIRSTS)
    for job in firsts:
        planner.submit(job, terms.ask(job), wall, submitted=terms.submitted(job), serial=job)
    return Outlook(planner, others)
