"""Orders to runners about running attempts: those of the features `suspension` and `walltimes`.

An order for a runner that is not connected is dropped: the engine repeats it when the runner joins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rota.core.attempts.leases import LeaseRef
from rota.core.effects import ChangeWalltime, Effect, SuspendAttempts
from rota.manager.feature import FeatureService, ManagerFeature, Perform, Services
from rota.wire import messages as m


class SuspensionOrders(FeatureService):
    """Has runners freeze and thaw attempts."""

    def __init__(self, services: Services) -> None:
        self._peer_of = services.peer_of

    def performers(self) -> Mapping[type[Effect], Perform]:
        return {SuspendAttempts: self._suspend}

    def _suspend(self, effect: SuspendAttempts) -> None:
        if peer := self._peer_of(effect.runner):
            peer.send(m.Suspend([LeaseRef(*lease) for lease in effect.leases], effect.on))


class WalltimeOrders(FeatureService):
    """Tells runners that an attempt has another walltime."""

    def __init__(self, services: Services) -> None:
        self._peer_of = services.peer_of

    def performers(self) -> Mapping[type[Effect], Perform]:
        return {ChangeWalltime: self._change}

    def _change(self, effect: ChangeWalltime) -> None:
        if peer := self._peer_of(effect.runner):
            peer.send(m.SetWalltime(LeaseRef(*effect.lease), effect.walltime_s))


SUSPENSION: Final = ManagerFeature(name="suspension", make=SuspensionOrders)
WALLTIMES: Final = ManagerFeature(name="walltimes", make=WalltimeOrders)
