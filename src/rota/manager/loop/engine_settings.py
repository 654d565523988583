"""Settings that the engine's shared paths use. Those of a feature are its own business (`manager.features`)."""

from __future__ import annotations

from collections.abc import Container

from rota.core.attempts.vacate_times import VacateTimes
from rota.core.engine_settings import EngineSettings
from rota.settings import Settings


def engine_settings(settings: Settings, *, own_host: str, hosts: Container[str]) -> EngineSettings:
    """The engine's settings. `hosts`: those of this deployment, perhaps with the manager's own."""
    own = own_host if own_host in hosts else ""
    return EngineSettings(
        lost_after_s=settings.lost_after,
        dead_after_s=settings.dead_after,
        orphan_after_s=settings.orphan_after,
        patience_s=settings.reservation_patience,
        gang_patience_s=settings.gang_patience,
        special_hosts={"deploy": settings.deploy_host or own, "cosystem": settings.cosystem_host or own},
        deploy_host="" if settings.deploy_host in (None, own_host) else settings.deploy_host or "",
        vacate_times=VacateTimes(
            checkpoint_s=settings.checkpoint_grace,
            grace_s=settings.grace,
            epilogue_s=settings.hook_timeout if settings.epilogue else 0.0,
        ),
        pools={name: pool.most_runners(settings.max_runners) for name, pool in settings.pools.items()},
        local=settings.local != "off",
    )
