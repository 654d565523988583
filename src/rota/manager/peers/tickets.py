"""Lets runners in that come with a ticket of a delegated pool: who may use which ticket, and for what.

The first runner that joins with a ticket keeps it: the ticket is bound to that runner's key in the turn in which
the runner joins, and nothing but `Welcome` is sent before that is on disk. Every refusal is the same, so that it
tells nothing about the ticket.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable
from typing import Final

from rota.core.events import TicketClaim
from rota.core.machines.provisioned_machines import ticket_host
from rota.core.machines.ticket_binding import ticket_grants
from rota.core.machines.ticket_grants import TicketGrant
from rota.core.world import World
from rota.errors import Denied
from rota.manager.peers.peer import Peer
from rota.wire import messages as m
from rota.wire import ticket_file

#: Connections with the same ticket that have not joined.
_MOST_GREETED: Final = 4
#: With more tickets than this, those whose connections are closed are forgotten.
_MANY: Final = 256
#: 256 random bits or more. A runner that sent less would make its own ticket easy to take over.
_KEY: Final = re.compile(r"[A-Za-z0-9_-]{43,200}", re.ASCII)


class Tickets:
    """Checks tickets and the keys that they belong to. Belongs to the loop's thread."""

    def __init__(self, world: World, *, now: Callable[[], float]) -> None:
        self._world = world
        self._now = now
        #: ticket → key of a join that was passed on and may not have been decided yet: of two runners that come at
        #: the same moment the first is taken.
        self._claimed: dict[str, str] = {}
        self._greeted: dict[str, list[Peer]] = {}  #: ticket → connections that have not joined

    def greet(self, peer: Peer, hello: m.Hello) -> None:
        """A runner introduces itself with a ticket. Raises `Denied`."""
        # A lookup by hash needs no comparison in constant time: its duration says nothing about the secret.
        claim = TicketClaim(ticket=ticket_file.digest(hello.token), key=ticket_file.digest(hello.key))
        grant = self.grant(claim)
        if not _KEY.fullmatch(hello.key) or hello.host != grant.name:
            raise refusal()
        peer.claim, peer.host = claim, grant.name
        peer.token = f"ticket {grant.name}"  # no token has a space in its name
        self._make_room(peer, claim.ticket)

    def grant(self, claim: TicketClaim) -> TicketGrant:
        """What this claim gives now. Raises `Denied`."""
        grants = ticket_grants(self._world)
        grant = grants.by_ticket(claim.ticket) if grants is not None else None
        if grant is None:
            raise refusal()
        owner = grant.key or self._claimed.get(claim.ticket, "")
        if owner:
            fine = hmac.compare_digest(owner, claim.key)
        else:
            fine = grant.valid and (grant.expires_at is None or self._now() < grant.expires_at)
        if not fine:
            raise refusal()
        return grant

    def claim(self, claim: TicketClaim) -> TicketGrant:
        """The same for a runner that joins now: until its join is decided, no other key is accepted."""
        grant = self.grant(claim)
        self._greeted.pop(claim.ticket, None)
        self._claimed = {ticket: key for ticket, key in self._claimed.items() if self._is_open(ticket)}
        if not grant.key:
            self._claimed[claim.ticket] = claim.key
        return grant

    def _is_open(self, ticket: str) -> bool:
        """Is there such a ticket that belongs to no runner yet?"""
        grants = ticket_grants(self._world)
        grant = grants.by_ticket(ticket) if grants is not None else None
        return grant is not None and not grant.key

    def _make_room(self, peer: Peer, ticket: str) -> None:
        """An honest runner joins at once. Copies of an unused ticket must not use up all connections."""
        if len(self._greeted) > _MANY:
            self._greeted = {t: some for t, some in self._greeted.items() if not all(each.closed for each in some)}
        waiting = [each for each in self._greeted.get(ticket, ()) if not each.closed and not each.runner]
        for oldest in waiting[: max(0, len(waiting) + 1 - _MOST_GREETED)]:
            oldest.close()
        self._greeted[ticket] = [*waiting[-(_MOST_GREETED - 1) :], peer]

    def machine(self, secret: str) -> tuple[str, str]:
        """The hash of the ticket of a machine that is being provisioned, and that machine. Raises `Denied`."""
        ticket = ticket_file.digest(secret)
        host = ticket_host(self._world, ticket)
        if not host:
            raise Denied("this ticket is not accepted", hint="it is for one use, while the machine is provisioned")
        return ticket, host

    def is_bound(self, claim: TicketClaim) -> bool:
        """Did a runner with this key join with the ticket before?"""
        grants = ticket_grants(self._world)
        grant = grants.by_ticket(claim.ticket) if grants is not None else None
        return grant is not None and hmac.compare_digest(grant.key, claim.key)

    def is_granted(self, host: str) -> bool:
        """Does this name belong to a runner with a ticket?"""
        grants = ticket_grants(self._world)
        return grants is not None and grants.by_name(host) is not None


def refusal() -> Denied:
    """The one answer to a ticket that is unknown, expired, withdrawn or used by another runner."""
    hint = "its pool sends another runner if one is needed"
    return Denied("this ticket is not accepted", hint=hint, code=m.TICKET)
