"""Binds a ticket to the first runner that joins with it, in the turn of the join."""

from __future__ import annotations

from rota.core.events import TicketClaim
from rota.core.machines.ticket_grants import TicketGrant, TicketGrants
from rota.core.turn import Turn
from rota.core.world import World
from rota.errors import Denied


def ticket_grants(world: World) -> TicketGrants | None:
    """The grants of this deployment; None: it has no delegated pool."""
    found = world.points.ticket_grants
    return found[0](world) if found else None


def bind(world: World, turn: Turn, claim: TicketClaim) -> TicketGrant:
    """Give the ticket to the runner that claims it, if it is free. Raises `Denied`."""
    grants = ticket_grants(world)
    grant = grants.by_ticket(claim.ticket) if grants is not None else None
    if grants is None or grant is None or grant.key not in ("", claim.key):
        raise Denied("the ticket of this runner is not valid", code="ticket")
    if not grant.key:
        grants.bound(turn, grant.name, claim.key)
    return grant
