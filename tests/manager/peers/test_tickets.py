"""Who may use a ticket, while the join of another runner is decided."""

from __future__ import annotations

import pytest

from rota.core.events import TicketClaim
from rota.core.feature import Features
from rota.core.features import BUILT_IN
from rota.core.machines.ticket_grants import TicketGrant
from rota.core.turn import Batch, Turn
from rota.core.world import World
from rota.errors import Denied
from rota.manager.peers.tickets import Tickets
from rota.plan.dispatch.planning import Planning
from rota.plan.need import Need
from rota.plan.size import Size
from rota.wire.greeting import TICKET
from tests.pools.granting import ENGINE, Granted

GRANT = TicketGrant(name="test-1", pool="test", need=Need(Size()), expires_at=100.0)
ONE, OTHER = TicketClaim(ticket="t", key="one"), TicketClaim(ticket="t", key="other")


@pytest.fixture
def world() -> World:
    found = World(Planning())
    Features((*BUILT_IN.all, ENGINE)).install(found)
    found.use(Granted).all["t"] = GRANT
    return found


def test_from_the_moment_of_a_join_no_other_key_is_accepted(world: World) -> None:
    tickets = Tickets(world, now=lambda: 0.0)
    assert tickets.grant(ONE) == tickets.grant(OTHER) == GRANT
    assert tickets.claim(ONE) == GRANT
    with pytest.raises(Denied) as refused:
        tickets.claim(OTHER)
    assert refused.value.code == TICKET
    assert not tickets.is_bound(ONE), "that is decided by the engine"
    assert tickets.claim(ONE) == GRANT


def test_what_the_engine_decided_counts(world: World) -> None:
    tickets = Tickets(world, now=lambda: 0.0)
    tickets.claim(ONE)
    world.use(Granted).bound(Turn(wall=0.0, mono=0.0, random=lambda: 0.5, batch=Batch()), "test-1", "other")
    assert tickets.claim(OTHER).key == "other"
    assert tickets.is_bound(OTHER)
    with pytest.raises(Denied):
        tickets.grant(ONE)


def test_an_unused_ticket_expires_and_a_used_one_does_not(world: World) -> None:
    now = 99.0
    tickets = Tickets(world, now=lambda: now)
    tickets.grant(ONE)
    now = 100.0
    with pytest.raises(Denied):
        tickets.grant(ONE)
    now = 99.0
    tickets.claim(ONE)
    now = 200.0
    tickets.grant(ONE)


def test_without_delegated_pools_there_are_no_tickets() -> None:
    world = World(Planning())
    BUILT_IN.install(world)
    tickets = Tickets(world, now=lambda: 0.0)
    assert not tickets.is_granted("test-1")
    with pytest.raises(Denied):
        tickets.grant(ONE)
