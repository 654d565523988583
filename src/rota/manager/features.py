"""The features of the manager. A new one is one more line here, and nothing in the shared paths."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from rota.core.effects import Effect
from rota.core.feature import Features
from rota.core.features import BUILT_IN as ENGINE
from rota.errors import Bug
from rota.manager.feature import FeatureService, ManagerFeature, Perform, Serve, Services
from rota.manager.host import energy, expiry_hook, provisioning, server_hooks
from rota.manager.peers import attempt_orders
from rota.manager.peers.peer import Peer
from rota.manager.pools import driver
from rota.manager.requests import machines, pipelines
from rota.wire.operations import Operations
from rota.wire.views import AttentionView

BUILT_IN: Final[tuple[ManagerFeature, ...]] = (
    server_hooks.FEATURE,
    provisioning.FEATURE,
    expiry_hook.FEATURE,
    attempt_orders.SUSPENSION,
    attempt_orders.WALLTIMES,
    energy.FEATURE,
    driver.FEATURE,
    machines.FEATURE,
    pipelines.FEATURE,
)


def engine_features(features: Iterable[ManagerFeature]) -> Features:
    """What these add to the engine, after the features that it has always."""
    added = [each.engine for each in features if each.engine is not None]
    return Features((*ENGINE.all, *added)) if added else ENGINE


class ManagerFeatures:
    """The features that one manager uses, in their order."""

    def __init__(self, features: Iterable[ManagerFeature], services: Services) -> None:
        """Raises `Bug` if two of them perform the same effect or serve the same request."""
        features = tuple(features)
        self.operations = Operations(operation for each in features for operation in each.operations)
        self.performers: dict[type[Effect], Perform] = {}
        self.requests: dict[type[Any], Serve] = {}
        made = [each.make(services) for each in features if each.make is not None]
        self._made: list[FeatureService] = [each for each in made if each is not None]
        for each in self._made:
            for effect, perform in each.performers().items():
                if self.performers.setdefault(effect, perform) is not perform:
                    raise Bug(f"two features perform {effect.__name__}")
            for message, serve in each.requests().items():
                if self.requests.setdefault(message, serve) is not serve:
                    raise Bug(f"two features serve {message.__name__}")

    def start(self) -> None:
        for each in self._made:
            each.start()

    def tick(self, now: float) -> None:
        for each in self._made:
            each.tick(now)

    def gone(self, peer: Peer, n: int | None = None) -> None:
        for each in self._made:
            each.gone(peer, n)

    def close(self) -> None:
        for each in self._made:
            each.close()

    def subjects(self) -> dict[str, object]:
        return {name: value for each in self._made for name, value in each.subjects().items()}

    def attention(self) -> list[AttentionView]:
        return [view for each in self._made for view in each.attention()]
