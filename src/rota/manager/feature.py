"""The registration of a feature in the manager: what it does outside the engine, in one record.

`manager.features` lists them. The performer, the dispatcher of requests, the check of roles and the manager's life
know these records and no feature by name.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rota.core.effects import Effect
from rota.core.feature import Feature
from rota.core.world import World
from rota.home import Home
from rota.manager.loop.readers import Readers
from rota.manager.loop.turns import TurnLoop
from rota.manager.peers.peer import Peer
from rota.settings import Settings
from rota.store.base import Store
from rota.wire.operations import Operation
from rota.wire.views import AttentionView

Perform = Callable[[Any], None]
Serve = Callable[[Peer, Any], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class Services:
    """What a feature may use of the manager. Everything belongs to the loop's thread."""

    world: World
    store: Store
    home: Home
    settings: Settings
    own_host: str
    turns: TurnLoop
    readers: Readers
    peer_of: Callable[[str], Peer | None]  #: the connection of a runner


class FeatureService:
    """A feature at work in one manager. A subclass states what differs."""

    def performers(self) -> Mapping[type[Effect], Perform]:
        """Its effects, and what carries them out. Must not block."""
        return {}

    def requests(self) -> Mapping[type[Any], Serve]:
        """Its operations on the wire: a handler raises `RotaError` to refuse, or answers through `turns`."""
        return {}

    def attention(self) -> list[AttentionView]:
        """Problems that do not go away by waiting, for `rota manager status`, `doctor` and the dashboard."""
        return []

    def start(self) -> None:
        """The manager begins to decide."""

    def tick(self, now: float) -> None:
        """A second has passed; `now` is monotonic."""

    def close(self) -> None:
        """The manager has stopped."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ManagerFeature:
    """What one feature adds to the manager."""

    name: str  #: that of its part in the engine
    engine: Feature | None = None  #: what it adds to the engine, unless `core.features` lists it already
    operations: tuple[Operation, ...] = ()  #: its messages, with the roles that may send them
    #: Makes it for one manager, with its settings in the world. None: this deployment does not use it.
    make: Callable[[Services], FeatureService | None] | None = None
