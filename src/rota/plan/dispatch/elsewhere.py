"""Jobs of the plan's queue that begin on machines of other engines, which no plan knows of.

Such a machine was made for one reservation group. It takes the first job of the group that asks for nothing that
needs a plan.
"""

from __future__ import annotations

from rota.plan.ask import unplanned
from rota.plan.dispatch.active_plan import ActivePlan
from rota.plan.dispatch.asks import Asks
from rota.plan.dispatch.plan_queue import PlanQueue, QueueKey
from rota.plan.packing.packing import Packing
from rota.plan.placement.decisions import Placed
from rota.plan.placement.queue import rank_at


def place_elsewhere(
    plan: ActivePlan, queue: PlanQueue, packing: Packing, asks: Asks, now: float
) -> list[tuple[Placed, QueueKey]]:
    """Jobs that leave the queue and begin elsewhere, and the job classes that they were in."""

    def may_go(key: QueueKey, job: int) -> bool:
        return (
            key not in queue.gangs
            and not key.need.pool
            and (not key.need.terms or unplanned(asks.entrants[job].spec))
        )

    limits = packing.limits
    found: list[tuple[Placed, QueueKey]] = []
    for host in packing.made.idle():
        assert host.only is not None
        key = queue.first_of(host.only, may_go)
        if key is None:
            continue
        uses = key.need.limits
        if uses and (limits.stopped(uses) is not None or limits.missing(uses, host.name)):
            continue
        job = queue.classes[key].heap[0]
        others = packing.made.first_for(host)
        if others is not None and others < rank_at(key.rank, job):
            continue  # that one named the pool, and goes first
        if queue.leave(job):
            plan.withdrawn(job)
        found.append((Placed(job, host.name, packing.grant(host.name, key.need, now)), key))
    return found
