"""What all handlers of one gateway share: connections to the manager, the event feed, rate limits and secrets."""

from __future__ import annotations

from msgspec import Struct

from rota.api.credentials import Forgery
from rota.api.feed import Feed
from rota.api.limits import Limits
from rota.api.links import Links


class Services(Struct, kw_only=True):
    """The parts of a gateway that a request may use."""

    links: Links
    feed: Feed
    limits: Limits
    forgery: Forgery
    cookie: str  #: name of the session cookie; it contains the port
    own_token: str  #: the gateway's own, for questions that belong to no user
    document: bytes  #: the OpenAPI document, as JSON
