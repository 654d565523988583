"""Figures that have labels: cores and memory by use, nodes by state, jobs of queues, limits and quotas.

The loop only takes a snapshot, and returns a function that counts it on another thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from rota import __version__
from rota.core.jobs.job import Job
from rota.core.site.policy import queues_of
from rota.core.states import WAITING, State
from rota.core.world import World
from rota.manager.views import nodes, quotas
from rota.plan.policy.policy import Queue
from rota.wire.views import LimitView, QuotasView, Sample

Labelled = dict[str, list[Sample]]

#: Limits of single arrays would be a series each, for a while.
_OF_ARRAYS: Final = "array-"
_WAITING: Final = (State.READY, *(WAITING - {State.READY}))


def labelled(world: World, wall: float) -> Callable[[], Labelled]:
    """A function that counts, on any thread, the state of this moment. Belongs to the loop's thread."""
    found, jobs = nodes.snapshot(world), list(world.jobs.values())
    held, queues = quotas.view(world, wall), queues_of(world.site)

    def count() -> Labelled:
        return {
            "build_info": [Sample({"version": __version__}, 1.0)],
            **_of_nodes(found),
            **_of_queues(queues, jobs),
            **_of_limits(found.limits),
            **_of_quotas(held),
        }

    return count


def _of_nodes(found: nodes.NodeSnapshot) -> Labelled:
    states: Counter[str] = Counter(dict.fromkeys(("alive", "drained", "absent", "suspected", "dead", "asleep"), 0))
    cores, memory = (dict.fromkeys(("capacity", "usable", "used", "drained"), 0.0) for _ in range(2))
    for node in nodes.view(found):
        states["drained" if node.state == "alive" and node.drain else node.state] += 1
        for sums, all_of_it, used in (
            (cores, node.cores, node.cores_in_use),
            (memory, node.mem_bytes, node.mem_in_use),
        ):
            sums["capacity"] += all_of_it
            sums["usable"] += all_of_it if node.usable else 0
            sums["drained"] += all_of_it if node.drain else 0
            sums["used"] += used
    return {
        "nodes": [Sample({"state": state}, float(number)) for state, number in sorted(states.items())],
        **{f"{kind}_cores": [Sample({}, number)] for kind, number in cores.items()},
        **{f"{kind}_memory_bytes": [Sample({}, number)] for kind, number in memory.items()},
    }


def _of_queues(queues: dict[str, Queue], jobs: list[Job]) -> Labelled:
    running = Counter(job.spec.queue for job in jobs if job.lease is not None)
    # Of a hundred thousand jobs nearly all are ready: a tuple finds that sooner than a set of states.
    waiting = Counter(job.spec.queue for job in jobs if job.lease is None and job.state in _WAITING)
    return {
        "queue_jobs": [
            Sample({"queue": name, "state": word}, float(counts[name]))
            for name in queues
            for word, counts in (("running", running), ("waiting", waiting))
        ],
        "queue_closed": [Sample({"queue": name}, float(queue.closed)) for name, queue in queues.items()],
    }


def _of_limits(found: list[LimitView]) -> Labelled:
    # Users declare limits by their jobs, as many as they like: a series is for what is the site's, or in use.
    shown = [
        each
        for each in found
        if not each.name.startswith(_OF_ARRAYS) and (not each.by_jobs or each.used or each.waiting)
    ]
    return {
        "limit_capacity": [
            Sample({"limit": each.name}, float(each.capacity)) for each in shown if each.capacity is not None
        ],
        "limit_used": [Sample({"limit": each.name}, float(each.used)) for each in shown],
        "limit_waiting_jobs": [Sample({"limit": each.name}, float(each.waiting)) for each in shown],
    }


def _of_quotas(found: QuotasView) -> Labelled:
    """For each quota its limit, and what its largest holder uses."""
    allowed, used = [], []
    for name, use in found.use.items():
        if not use.applies:
            continue
        for word in ("resources", "jobs", "resource_hours"):
            limit = getattr(use, word)
            if limit is None:
                continue
            labels = {"quota": name, "of": word}
            allowed.append(Sample(labels, float(limit)))
            used.append(Sample(labels, float(max((getattr(each, word) or 0 for each in use.holders), default=0))))
    return {"quota_limit": allowed, "quota_used": used}
