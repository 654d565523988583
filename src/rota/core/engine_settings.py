"""The engine's settings, as data. `manager.loop.engine_settings` makes them from those of the deployment."""

from __future__ import annotations

from msgspec import Struct

from rota.core.attempts.vacate_times import VacateTimes
from rota.plan.policy.policy import PATIENCE_S


class EngineSettings(Struct, frozen=True, kw_only=True):
    """Settings that shared paths use. Those of a feature are in its state."""

    lost_after_s: float = 60.0  #: so long silent, and a runner's jobs are lost
    dead_after_s: float = 3600.0  #: so long silent, and its host is shown as dead
    orphan_after_s: float = 7 * 86400.0  #: so long without a manager, and a runner has ended its jobs itself
    patience_s: float = PATIENCE_S  #: how long a reservation waits for missing resources
    gang_patience_s: float = PATIENCE_S  #: how long a gang waits before it gets a reservation
    special_hosts: dict[str, str] = {}  #: job type → host on which its commands run
    deploy_host: str = ""  #: where provision commands of nodes run; empty: on the manager's host
    vacate_times: VacateTimes = VacateTimes()  #: how long jobs may take to make room for others
    pools: dict[str, int] = {}  #: delegated pool → how many runners it is asked for at most; in their order
    local: bool = True  #: do jobs run on the manager's own host?
