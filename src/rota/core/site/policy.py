"""Read a site's queues and quotas from its records."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from rota.core.restart import Restart
from rota.core.states import TERMINAL
from rota.core.turn import Turn
from rota.core.world import World
from rota.errors import BadInput
from rota.plan.policy.policy import DEFAULT_QUEUES, Policy, Queue
from rota.plan.policy.policy_records import FAIR_SHARE, read_fair_share, read_queue
from rota.plan.policy.quota_records import quotas_from
from rota.plan.policy.quotas import Quotas, Spent
from rota.plan.site.clock import Clock
from rota.plan.site.records import Records

#: Key of `Changes.meta` for what ended jobs used of quota periods.
SPENT: Final = "spent"


def queues_of(records: Records) -> dict[str, Queue]:
    """All queues, built in or of the site, highest priority first."""
    own = {name: read_queue(name, value) for name, value in records.get("queue", {}).items()}
    found = {**DEFAULT_QUEUES, **own}
    return dict(sorted(found.items(), key=lambda each: (-each[1].priority, each[0])))


def policy_of(records: Records) -> Policy:
    """The policy by which jobs are ordered and planned, with the settings `fair_share` and `depth` if they
    exist."""
    settings = records.get("setting", {})
    more: dict[str, Any] = {}
    if FAIR_SHARE in settings:
        more["fair_share"] = read_fair_share(settings[FAIR_SHARE])
    if "depth" in settings:
        more["depth"] = settings["depth"]
    return Policy(queues=queues_of(records), **more)


def quotas_of(records: Records, total: int, clock: Clock) -> Quotas | None:
    """The quotas on `total` resources; None: there are none."""
    return quotas_from(records.get("quota", {}), records.get("calendar", {}), total=total, clock=clock)


def remember_spent(world: World, turn: Turn, spent: dict[Spent, int]) -> None:
    """Store what ended jobs used of quota periods, so that it survives a restart."""
    world.spent = spent
    turn.changes.meta[SPENT] = msgspec.json.encode(list(spent.items())).decode()


def restore_spent(world: World, restart: Restart) -> None:
    """Load what `remember_spent` stored."""
    stored = restart.snapshot.meta.get(SPENT) or "[]"
    world.spent = dict(msgspec.json.decode(stored, type=list[tuple[Spent, int]]))


# ------------------------------------------------------------------ checks


def refuse_used_queues(world: World, before: Records, after: Records) -> None:
    """Raise `BadInput` if a queue to be removed has jobs that have not ended."""
    gone = before.get("queue", {}).keys() - after.get("queue", {}).keys() - DEFAULT_QUEUES.keys()
    if not gone:
        return
    counts: dict[str, int] = {}
    for job in world.jobs.values():
        if job.spec.queue in gone and job.state not in TERMINAL:
            counts[job.spec.queue] = counts.get(job.spec.queue, 0) + 1
    for name, count in sorted(counts.items()):
        raise BadInput(
            f"queue '{name}' has {count} job{'' if count == 1 else 's'}",
            hint="let them end, or move them with 'rota modify --queue'",
        )
