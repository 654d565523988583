"""A feature that no deployment needs: bells that ring at a given time. It plugs in by registration only.

``python -m tests.features.bells --home …`` runs a manager that has it; its bells ring in the file `bells` of the
home. Nothing in `rota` knows of it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from rota.core.effects import Effect, SendReply
from rota.core.events import Asker, Event
from rota.core.feature import Feature
from rota.core.jobs.job import Job
from rota.core.restart import Restart
from rota.core.turn import Turn
from rota.core.world import World
from rota.errors import BadInput
from rota.manager import features
from rota.manager.feature import FeatureService, ManagerFeature, Perform, Serve, Services
from rota.manager.loop import startup
from rota.manager.peers.peer import Peer
from rota.wire import messages as m
from rota.wire.operations import Operation
from rota.wire.permissions import ADMIN, USER
from rota.wire.views import AttentionView

ROW = "bells"


class BellSet(Event, frozen=True):
    """A user set a bell."""

    by: Asker
    name: str
    at: float


class RingBell(Effect, frozen=True):
    """Ring a bell."""

    name: str


class Bells:
    """State of the feature `bells`."""

    def __init__(self) -> None:
        self.due: dict[str, float] = {}  #: bell → wall time
        self.ends_heard = 0  #: leases that were dropped while a bell was set


def on_bell_set(world: World, turn: Turn, event: BellSet) -> None:
    if not event.name:
        raise BadInput("a bell needs a name")
    world.use(Bells).due[event.name] = event.at
    _store(world, turn)
    turn.effects.append(SendReply(event.by, event.name))


def _ring(world: World, turn: Turn) -> None:
    bells = world.use(Bells)
    for name in [name for name, at in bells.due.items() if at <= turn.wall]:
        del bells.due[name]
        turn.effects.append(RingBell(name))
        _store(world, turn)


def _store(world: World, turn: Turn) -> None:
    turn.changes.meta[ROW] = msgspec.json.encode(world.use(Bells).due).decode()


def _restore(world: World, restart: Restart) -> None:
    due = msgspec.json.decode(restart.snapshot.meta.get(ROW) or "{}", type=dict[str, float])
    if due:
        world.use(Bells).due = due


def _hear(world: World, _turn: Turn, _job: Job) -> None:
    world.use(Bells).ends_heard += 1


def _have_names(world: World) -> list[str]:
    return ["bells: one has no name"] if "" in world.use(Bells).due else []


ENGINE = Feature(
    name="bells",
    state=Bells,
    handlers={BellSet: on_bell_set},
    restore=_restore,
    invariant=_have_names,
    on_timer=_ring,
    next_due=lambda world: min(world.use(Bells).due.values(), default=None),
    lease_dropped=_hear,
)


# ------------------------------------------------------------------ in the manager


class SetBell(m.Message, frozen=True, tag="set-bell"):
    n: int
    name: str
    at: float


class ListBells(m.Message, frozen=True, tag="list-bells"):
    n: int


class BellTower(FeatureService):
    """Rings bells into a file."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._file = services.home.path / "bells"

    def performers(self) -> Mapping[type[Effect], Perform]:
        return {RingBell: self._ring}

    def requests(self) -> Mapping[type[Any], Serve]:
        return {SetBell: self._set, ListBells: self._list}

    def attention(self) -> list[AttentionView]:
        bells = self._services.world.find(Bells)
        return [AttentionView("bells", [], len(bells.due), "set")] if bells is not None and bells.due else []

    def _ring(self, effect: RingBell) -> None:
        with open(self._file, "a") as file:
            file.write(f"{effect.name}\n")

    async def _set(self, peer: Peer, ask: SetBell) -> None:
        self._services.turns.happened(BellSet(by=peer.asker(ask.n), name=ask.name, at=ask.at))

    async def _list(self, peer: Peer, ask: ListBells) -> None:
        bells = self._services.world.find(Bells)
        self._services.turns.answer(peer.asker(ask.n), sorted(bells.due) if bells is not None else [])


FEATURE = ManagerFeature(
    name="bells",
    engine=ENGINE,
    operations=(
        Operation(SetBell, frozenset({ADMIN})),
        Operation(ListBells, frozenset({ADMIN, USER})),
    ),
    make=BellTower,
)


if __name__ == "__main__":
    sys.exit(startup.main(features=(*features.BUILT_IN, FEATURE)))
