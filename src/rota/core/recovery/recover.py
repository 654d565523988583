"""Rebuild the world from what is stored. Recovering twice equals recovering once."""

from __future__ import annotations

from typing import Final

from rota.core.accounts.fair_share_usage import restore_usage
from rota.core.bugs.doubtful_leases import doubt_frozen
from rota.core.bugs.quarantine import restore_bugs
from rota.core.feature import Features
from rota.core.features import BUILT_IN
from rota.core.learning.estimate import restore_models
from rota.core.machines.hosts import restore_hosts, restore_site
from rota.core.machines.nodes import restore_nodes
from rota.core.recovery.dependency_groups import restore_groups
from rota.core.recovery.jobs import restore_jobs, restore_leases_and_queue, restore_runners
from rota.core.recovery.restored_leases import doubt_restored
from rota.core.restart import Restart, Restore
from rota.core.site.limits import restore_limits
from rota.core.site.manager_pause import restore_pause
from rota.core.site.policy import restore_spent
from rota.core.world import World
from rota.plan.placement.placement import Placement

#: In this order, with the features before and after the leases. A step may rely on those before it.
#: `restore_leases_and_queue` hands jobs to the placement: what decides about their place comes before it, what
#: refers to leases after it.
_BEFORE_FEATURES: Final[tuple[Restore, ...]] = (
    restore_bugs,
    restore_hosts,
    restore_jobs,
    restore_limits,
    restore_site,
    restore_nodes,
    restore_models,
    restore_groups,
)
_LEASES: Final[tuple[Restore, ...]] = (restore_leases_and_queue, restore_runners)
_AFTER_FEATURES: Final[tuple[Restore, ...]] = (
    restore_pause,
    restore_spent,
    restore_usage,
    doubt_restored,
    doubt_frozen,
)


def recover(placement: Placement, restart: Restart, *, features: Features = BUILT_IN) -> World:
    """The world as it was when the last batch was committed. `placement` is new and empty.

    Leased jobs keep their lease, with a fresh heartbeat timeout: a runner that lives will join and report what it
    holds.
    """
    world = World(placement)
    world.zone = restart.zone
    world.site_version = restart.generation << 32  # never equal to a version from before the restart
    features.install(world)
    for restore in (*_BEFORE_FEATURES, features.restore, *_LEASES, features.restore_leases, *_AFTER_FEATURES):
        restore(world, restart)
    return world
