"""All messages of the protocol, version 1. Arrays of fields: new fields go last, with a default.

The connecting side sends `Hello`, which is answered by `Welcome` or `Failure`. After that a client sends
requests, each with its own number `n`, and gets `Reply`, `Item` or `Failure` with the same number; a runner sends
reports and gets orders.

A runner must start fast and imports only the modules that it needs; all others import from here.
"""

from rota.wire.answers import *  # noqa: F403
from rota.wire.channels import *  # noqa: F403
from rota.wire.greeting import *  # noqa: F403
from rota.wire.job_structs import *  # noqa: F403
from rota.wire.new_after import *  # noqa: F403
from rota.wire.new_use import *  # noqa: F403
from rota.wire.orders import *  # noqa: F403
from rota.wire.reports import *  # noqa: F403
from rota.wire.requests import *  # noqa: F403
