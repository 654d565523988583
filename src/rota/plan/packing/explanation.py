"""Why a job that waits in the packing has not been chosen: every reason that applies now."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rota.plan.need import Need
from rota.plan.packing.hosts import Host, fits
from rota.plan.packing.job_classes import JobClass
from rota.plan.packing.limit_queues import LimitQueues
from rota.plan.packing.packing_reasons import jobs_before, kept_whole, limit_reasons, no_room
from rota.plan.placement.queue import RankKey
from rota.plan.policy.limits import Limits
from rota.plan.reasons import Waits


def why_waiting(
    need: Need,
    rank: RankKey,
    job: int,
    job_classes: Mapping[tuple[RankKey, Need], JobClass],
    limits: Limits,
    limit_queues: LimitQueues,
    hosts: Collection[Host],
) -> list[Waits]:
    """The reasons of a job that would fit on a host of these if it were empty."""
    found = limit_reasons(limits, need.limits, [host.name for host in hosts]) if need.limits else []
    job_class = job_classes.get((rank, need))
    ahead = limit_queues.ahead_of(job_class) if not found and job_class is not None else None
    if ahead is not None:
        name, first = ahead
        if first.head() is not None:
            message = f"job {first.heap[0]} is before it in the line for limit '{name}'"
            found.append(Waits("limit", message, name, first.heap[0]))
    if not any(host.usable for host in hosts):
        return [*found, Waits("no_resources", "no runner is connected yet")]
    usable = [host.free for host in hosts if host.usable]
    roomy = [host for host in hosts if host.usable and fits(need.size, host.free)]
    if roomy and not any(host.admits(need.size) for host in roomy):
        return [*found, Waits("resources", kept_whole([host.name for host in roomy]))]
    if not found or not any(fits(need.size, free) for free in usable):
        before = jobs_before(job_classes.values(), rank, job)
        found.append(Waits("resources", no_room(need.size, usable, before)))
    return found
