"""Past use by user and project for fair share: restored from the accounts, extended as attempts end.

Running jobs are not included: a plan adds them up to any moment. Asked is the time for which a plan keeps the
cores: the walltime, else the estimate, from the user or not.
"""

from __future__ import annotations

from typing import Final

from rota.core.accounts.accounting import CORE_HOUR_US, HOUR_S
from rota.core.accounts.amounts import cores_of
from rota.core.attempts.parts import all_leased
from rota.core.attempts.suspension import is_suspending
from rota.core.restart import Restart
from rota.core.world import World
from rota.plan.policy.decay import Usage
from rota.plan.policy.policy import FairShare, Policy
from rota.plan.policy.usage_history import KEPT_S, UserProject
from rota.plan.size import CORE

_KEPT_HOURS: Final = int(KEPT_S // HOUR_S)


def kept_hours(wall: float) -> tuple[int, int]:
    """The hours whose accounts fair share needs: the first, and the one after the last."""
    end = int(wall // HOUR_S) + 1
    return end - _KEPT_HOURS, end


def restore_usage(world: World, restart: Restart) -> None:
    """Restore the history from the accounts."""
    _first, end = kept_hours(restart.wall)
    steps: dict[UserProject, list[tuple[int, int, int]]] = {}
    add = world.usage_history.add
    for row in restart.usage:
        owner, sums = (row.user, row.project), row.sums
        if sums.used or sums.given:
            add(owner, sums.used / 1e6, sums.given / 1e6, row.hour * HOUR_S)
        if sums.used_step or sums.given_step:
            steps.setdefault(owner, []).append((row.hour, sums.used_step, sums.given_step))
    for owner, changes in steps.items():
        changes.sort()
        used = asked = 0
        for (hour, more_used, more_asked), (until, _, _) in zip(changes, [*changes[1:], (end, 0, 0)], strict=True):
            used += more_used
            asked += more_asked
            if used or asked:
                for each in range(hour, until):
                    add(owner, used * CORE_HOUR_US / 1e6, asked * CORE_HOUR_US / 1e6, each * HOUR_S)
    world.usage_history.compact(end * float(HOUR_S))


def usage_of(world: World, policy: Policy, wall: float) -> Usage:
    """Use of ended attempts as it counts now; empty if no queue is ordered by fair share."""
    fair_share = policy.fair_share
    if all(queue.order == "fifo" for queue in policy.queues.values()):
        return Usage(fair_share.half_life_s)
    return Usage.of(world.usage_history, wall, half_life_s=fair_share.half_life_s, window_s=fair_share.window_s)


def usage_now(world: World, fair_share: FairShare, wall: float) -> Usage:
    """Use of ended and running attempts as it counts now, for any order of queues."""
    found = Usage.of(world.usage_history, wall, half_life_s=fair_share.half_life_s, window_s=fair_share.window_s)
    for job in {job.id: job for job, _host in all_leased(world)}.values():
        lease = job.lease
        if lease is not None and lease.started_at is not None and not is_suspending(world, job.id):
            spec = job.spec
            cores = cores_of(job.size, lease.given) / CORE
            found.charge((spec.user, spec.project), cores, min(wall, lease.started_at), wall)
    return found
