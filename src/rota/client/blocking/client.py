# Derived from rota/client/aio/client.py by `make client`: change it there.
"""The client with all its operations, and how to connect it."""

from __future__ import annotations

import os
from functools import partial

from rota.client.blocking.functions import CallOperations
from rota.client.blocking.manager import ManagerOperations
from rota.client.blocking.pipelines import PipelineOperations
from rota.client.blocking.site import SiteOperations
from rota.client.blocking.transport import aside
from rota.client.endpoint import TIMEOUT, find, is_remote
from rota.errors import NoManager
from rota.home import Home


class Client(CallOperations, PipelineOperations, SiteOperations, ManagerOperations):
    """A connection to a manager, with everything that it can be asked. Not for several threads at once."""


def connect(
    home: str | os.PathLike[str] | None = None,
    *,
    address: str | None = None,
    token: str | None = None,
    timeout: float = TIMEOUT,
    start: bool = False,
) -> Client:
    """Connect to the manager of a deployment (default: `$ROTA_HOME`, as for the command line).

    With `address` ("HOST:PORT") by TLS, with a token; else over the Unix socket in the home.
    Raises `NoManager` when none answers; with `start`, one is started first if the home has none, as `rota add`
    does.

        with rota.connect() as manager:
            print(manager.status().counts)
    """
    place = Home.find(os.fspath(home) if home is not None else None)
    endpoint = partial(find, place, address=address, token=token)
    try:
        return Client._open(endpoint, timeout=timeout)
    except NoManager:
        if not start or is_remote(address):
            raise
    from rota.client.starter import ensure_manager

    aside(lambda: ensure_manager(place))
    return Client._open(endpoint, timeout=timeout)
