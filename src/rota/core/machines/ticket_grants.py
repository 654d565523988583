"""Tickets of runners in delegated pools: what each grants, and which runner owns it.

The feature that asks other engines for runners keeps the grants (`Points.ticket_grants`); the rest of the engine
uses this interface. It has hashes of tickets and keys only, never the secrets.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from rota.core.turn import Turn
from rota.plan.need import Need


class TicketGrant(Struct, frozen=True, kw_only=True):
    """What the holder of one ticket may do: run jobs of one need, as one runner of one pool."""

    name: str  #: unique in the deployment, and never used again; the runner's host is known by it
    pool: str
    need: Need
    key: str = ""  #: hash of the key of the runner that used the ticket first; empty: none did
    #: Is the runner still wanted? If not, a ticket that was never used is refused, and a runner that joined before
    #: finishes what it has.
    valid: bool = True
    expires_at: float | None = None  #: wall time from which an unused ticket is refused


class TicketGrants(Protocol):
    """All grants of a deployment. A change is stored with the turn that makes it."""

    def by_ticket(self, sha256: str) -> TicketGrant | None:
        """The grant of the ticket with this hash; None: there is none, or it is used up."""

    def by_name(self, name: str) -> TicketGrant | None:
        """The grant with this name. It must be there as long as its runner holds a lease."""

    def bound(self, turn: Turn, name: str, key: str) -> None:
        """The ticket belongs to the runner with this key from now on."""

    def left(self, turn: Turn, name: str) -> None:
        """The runner has reported everything and left: the ticket is used up."""
