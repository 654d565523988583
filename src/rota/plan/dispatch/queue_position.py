"""Why a job in the queue of a plan waits: jobs before it, limits, and its planned start."""

from __future__ import annotations

from rota.plan.dispatch.active_plan import ActivePlan
from rota.plan.dispatch.gang_grants import uses_of
from rota.plan.dispatch.plan_queue import QueueKey
from rota.plan.explain import why_waiting
from rota.plan.need import Need
from rota.plan.packing.packing_reasons import limit_reasons
from rota.plan.planner.endangered import unanswered
from rota.plan.policy.limits import Limits
from rota.plan.reasons import Waits


def why(plan: ActivePlan, limits: Limits, need: Need, job: int) -> list[Waits]:
    """All reasons why this job of the queue does not begin."""
    planner, queue = plan.planner, plan.queue
    key = queue.where[job]
    first = queue.firsts.get(key)
    if first is None:
        kept = _kept_by_limits(plan, limits, need, key) if key in queue.parked else []
        if not kept and key in queue.parked and (waits := unanswered(planner.plan.site)) is not None:
            return [waits]
        return kept or [Waits("resources", "it is about to be planned")]
    found: list[Waits] = []
    if key in queue.gangs:
        job = first  # its members are one entry of the plan
    if first != job:
        before = queue.before(job)
        said = f"{before:,} {'jobs that ask' if before != 1 else 'job that asks'} for the same"
        found.append(Waits("resources", f"{said} {'are' if before != 1 else 'is'} before it", ahead=first))
    entry = planner.plan.entries.get(first)
    if entry is None:
        return [*found, Waits("resources", "it is about to be planned")]
    blocked = plan.due.blocked.get(job)
    if blocked is not None:
        victims = tuple(sorted(blocked[1]))
        return [Waits("resources", "besteffort jobs on its resources are being ended", blockers=victims)]
    if job in plan.unplaced:
        return [Waits("no_resources", plan.unplaced[job], hint="rota node list")]
    found += _kept_by_limits(plan, limits, need, key)
    of_first = why_waiting.why(planner.plan, entry)
    if first != job:
        of_first = [each._replace(message=f"job {first}: {each.message}") for each in of_first]
    elif entry.start is not None and not entry.fixed and (older := queue.unplanned_before(job)):
        said = f"{older:,} {'jobs' if older != 1 else 'job'} before it {'have' if older != 1 else 'has'}"
        of_first.append(Waits("resources", f"{said} no planned start yet: it may begin later than planned"))
    return [*found, *of_first]


def _kept_by_limits(plan: ActivePlan, limits: Limits, need: Need, key: QueueKey) -> list[Waits]:
    """Limits that keep this job, or the members of its gang together, from beginning now."""
    offer = plan.queue.gangs.get(key)
    uses = need.limits if offer is None else uses_of(limits, offer)
    return limit_reasons(limits, uses, plan.planner.plan.site.hosts, of_gang=offer is not None) if uses else []
