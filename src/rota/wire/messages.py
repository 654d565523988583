"""All messages of the protocol, version 1. Arrays of fields: new fields go last, with a default.

The connecting side sends `Hello`, which is answered by `Welcome` or `Failure`. After that a client sends
requests, each with its own number `n`, and gets `Reply`, `Item` or `Failure` with the same number; a runner sends
reports and gets orders.

Clients and runners must start fast: clients import from `client_messages`, runners from the modules that they
need, and all others from here.
"""

from rota.wire.client_messages import *  # noqa: F403
from rota.wire.orders import *  # noqa: F403
from rota.wire.reports import *  # noqa: F403
