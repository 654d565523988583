"""The registration of a feature in the manager: what it does outside the engine, in one record.

`manager.features` lists them. The performer, the dispatcher of requests, the check of roles and the manager's life
know these records and no feature by name.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec import Struct

from rota.core.admission.admission import Admission
from rota.core.effects import Effect
from rota.core.feature import Feature
from rota.core.submit.spec_library import Library
from rota.core.world import World
from rota.home import Home
from rota.manager.loop.deployment import Deployment
from rota.manager.loop.readers import Readers
from rota.manager.loop.turns import TurnLoop
from rota.manager.peers.certificate import DeploymentCertificate
from rota.manager.peers.peer import Peer
from rota.settings import Settings
from rota.store.base import Store
from rota.wire.operations import Operation
from rota.wire.views import AttentionView

Perform = Callable[[Any], None]
Serve = Callable[[Peer, Any], Awaitable[None]]


class Services(Struct, frozen=True, kw_only=True, eq=False):
    """What a feature may use of the manager. Everything belongs to the loop's thread."""

    deployment: Deployment
    world: World
    store: Store
    home: Home
    settings: Settings
    own_host: str
    authority: DeploymentCertificate
    library: Library
    admission: Admission
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

    def subjects(self) -> Mapping[str, object]:
        """What pages show of it, by the name under which the feed tells of a change: a value that is another one
        whenever there is something new to be shown. Called several times a second."""
        return {}

    def start(self) -> None:
        """The manager begins to decide."""

    def tick(self, now: float) -> None:
        """A second has passed; `now` is monotonic."""

    def gone(self, peer: Peer, n: int | None = None) -> None:
        """A peer was disconnected or, with `n`, closes the stream that this request opened."""

    def close(self) -> None:
        """The manager has stopped."""


class ManagerFeature(Struct, frozen=True, kw_only=True, eq=False):
    """What one feature adds to the manager."""

    name: str  #: that of its part in the engine
    engine: Feature | None = None  #: what it adds to the engine, unless `core.features` lists it already
    operations: tuple[Operation, ...] = ()  #: its messages, with the roles that may send them
    #: Makes it for one manager, with its settings in the world. None: this deployment does not use it.
    make: Callable[[Services], FeatureService | None] | None = None
