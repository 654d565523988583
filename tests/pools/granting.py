"""A feature that grants tickets on request, and a manager that has it (``python -m tests.pools.granting …``).

It stands for a delegated pool of which only the tickets matter: tests start the runners themselves. A file
`die-before` in the home kills the manager when a ticket is bound and not on disk yet, `die-after` when it is on
disk and not answered yet.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from rota.core.effects import SendReply
from rota.core.events import Asker, Event
from rota.core.feature import Feature
from rota.core.machines.ticket_grants import TicketGrant
from rota.core.restart import Restart
from rota.core.turn import Turn
from rota.core.world import World
from rota.manager import features
from rota.manager.feature import FeatureService, ManagerFeature, Serve, Services
from rota.manager.loop import startup
from rota.manager.peers.peer import Peer
from rota.manager.peers.runners import Runners
from rota.wire import messages as m
from rota.wire.operations import Operation
from rota.wire.permissions import ADMIN

ROW = "granted"


class GrantMade(Event, frozen=True):
    """A ticket was granted, or changed."""

    by: Asker
    ticket: str
    grant: TicketGrant


class Granted:
    """State of the feature: all grants, by the hashes of their tickets."""

    def __init__(self) -> None:
        self.all: dict[str, TicketGrant] = {}

    def by_ticket(self, sha256: str) -> TicketGrant | None:
        return self.all.get(sha256)

    def by_name(self, name: str) -> TicketGrant | None:
        return next((each for each in self.all.values() if each.name == name), None)

    def bound(self, turn: Turn, name: str, key: str) -> None:
        _die("before")
        self.all = {
            ticket: replace(grant, key=key) if grant.name == name else grant for ticket, grant in self.all.items()
        }
        self.store(turn)

    def left(self, turn: Turn, name: str) -> None:
        self.all = {ticket: grant for ticket, grant in self.all.items() if grant.name != name}
        self.store(turn)

    def store(self, turn: Turn) -> None:
        turn.changes.meta[ROW] = msgspec.json.encode(self.all).decode()


def on_grant_made(world: World, turn: Turn, event: GrantMade) -> None:
    granted = world.use(Granted)
    granted.all[event.ticket] = event.grant
    granted.store(turn)
    turn.effects.append(SendReply(event.by, True))


def _restore(world: World, restart: Restart) -> None:
    world.use(Granted).all = msgspec.json.decode(
        restart.snapshot.meta.get(ROW) or "{}", type=dict[str, TicketGrant]
    )


ENGINE = Feature(
    name="granted",
    state=Granted,
    handlers={GrantMade: on_grant_made},
    restore=_restore,
    ticket_grants=lambda world: world.use(Granted),
)


class Grant(m.Message, frozen=True, tag="grant-ticket"):
    """Grant a ticket, or change what it grants."""

    n: int
    ticket: str
    grant: TicketGrant


class ListGrants(m.Message, frozen=True, tag="list-grants"):
    n: int


class Granting(FeatureService):
    def __init__(self, services: Services) -> None:
        self._services = services

    def requests(self) -> Mapping[type[Any], Serve]:
        return {Grant: self._grant, ListGrants: self._list}

    async def _grant(self, peer: Peer, ask: Grant) -> None:
        self._services.turns.happened(GrantMade(by=peer.asker(ask.n), ticket=ask.ticket, grant=ask.grant))

    async def _list(self, peer: Peer, ask: ListGrants) -> None:
        granted = list(self._services.world.use(Granted).all.values())
        self._services.turns.answer(peer.asker(ask.n), granted)


FEATURE = ManagerFeature(
    name="granted",
    engine=ENGINE,
    operations=(Operation(Grant, frozenset({ADMIN})), Operation(ListGrants, frozenset({ADMIN}))),
    make=Granting,
)


def _die(when: str) -> None:
    file = Path(os.environ.get("ROTA_HOME", "/nonexistent")) / f"die-{when}"
    if file.exists():
        file.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


class _DyingRunners:
    """Answers a join as ever, unless the manager is to die first."""

    admit = Runners.admit

    def __call__(self, runners: Runners, runner: str) -> Peer | None:
        _die("after")
        return _DyingRunners.admit(runners, runner)


if __name__ == "__main__":
    dying = _DyingRunners()
    Runners.admit = lambda self, runner: dying(self, runner)  # type: ignore[method-assign]
    sys.exit(startup.main(features=(*features.BUILT_IN, FEATURE)))
