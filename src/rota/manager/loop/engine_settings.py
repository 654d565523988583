"""Settings that the engine's shared paths use. Those of a feature are its own business (`manager.features`)."""

from __future__ import annotations

from rota.core.attempts.vacate_times import VacateTimes
from rota.core.world import Timeouts, World
from rota.settings import Settings


def tell_engine(world: World, settings: Settings, *, own_host: str) -> None:
    """Put these settings into the world."""
    world.timeouts = Timeouts(
        lost_after_s=settings.lost_after,
        orphan_after_s=settings.orphan_after,
        dead_after_s=settings.dead_after,
    )
    world.patience_s = settings.reservation_patience
    world.vacate_times = VacateTimes(
        checkpoint_s=settings.checkpoint_grace,
        grace_s=settings.grace,
        epilogue_s=settings.hook_timeout if settings.epilogue else 0.0,
    )
    own = own_host if own_host in world.capacity else ""
    world.special_hosts = {
        "deploy": settings.deploy_host or own,
        "cosystem": settings.cosystem_host or own,
    }
