"""What all handlers of one gateway share: connections to the manager, the event feed, rate limits and secrets."""

from __future__ import annotations

from msgspec import Struct

from rota.api.credentials import Forgery
from rota.api.feed import EventFeed
from rota.api.manager_connections import ManagerConnections
from rota.api.rate_limits import RateLimits


class Services(Struct, kw_only=True):
    """The parts of a gateway that a request may use."""

    connections: ManagerConnections
    feed: EventFeed
    limits: RateLimits
    forgery: Forgery
    cookie: str  #: name of the session cookie; it contains the port
    own_token: str  #: the gateway's own, for questions that belong to no user
    document: bytes  #: the OpenAPI document, as JSON
