"""A gateway inside the test's own process, with operations of its own and no manager."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvloop

from rota.api.feed import EventFeed
from rota.api.gateway import Gateway
from rota.api.guard import Guard
from rota.api.operations import Operation
from rota.api.pages import Pages
from rota.api.problems import Unauthorized
from rota.api.serve import Listener
from rota.api.token_verdicts import TokenVerdicts
from rota.home import Home
from tests.api.client import TIMEOUT_S, Http

USER = "rota_user_" + "U" * 43
ADMIN = "rota_admin_" + "A" * 43


class _Links:
    """Knows two tokens."""

    def __init__(self) -> None:
        self.verdicts = TokenVerdicts()

    async def known(self, token: str) -> bool:
        return token in (USER, ADMIN)

    async def role(self, token: str) -> str:
        if token not in (USER, ADMIN):
            self.verdicts.reject(token)
            raise Unauthorized("nobody knows this token")
        self.verdicts.accept(token)
        return token.split("_")[1]


class Inside:
    """What is served, and a client of it."""

    def __init__(self, gateway: Gateway, doors: Listener, http: Http) -> None:
        self.gateway = gateway
        self._doors = doors
        self.nobody = http
        self.user = http.as_(USER)
        self.admin = http.as_(ADMIN)

    def connections(self) -> int:
        """How many are open, those of which nothing was heard yet not counted."""
        return len(self._doors._state.connections)


@contextlib.contextmanager
def serving(top: Path, operations: list[Operation], links: Any = None) -> Iterator[Inside]:
    """Serve these operations while the block runs, for those whom `links` knows."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    ready = threading.Event()
    made: dict[str, Any] = {}

    async def run() -> None:
        known: Any = links or _Links()
        gateway = Gateway(
            operations, connections=known, feed=EventFeed(known, ""), guard=Guard([], port),
            pages=Pages(top / "none"), own_token="rota_gateway_x", port=port,
        )  # fmt: skip
        doors = Listener(gateway, Home(top), listener)
        made["loop"], made["over"], made["gateway"] = asyncio.get_running_loop(), asyncio.Event(), gateway
        made["doors"] = doors
        serving = asyncio.create_task(doors.run())
        ready.set()
        await made["over"].wait()
        serving.cancel()
        await asyncio.wait({serving})
        doors.close()

    thread = threading.Thread(target=lambda: uvloop.run(run()), daemon=True)
    thread.start()
    assert ready.wait(TIMEOUT_S)
    try:
        yield Inside(made["gateway"], made["doors"], Http("127.0.0.1", port))
    finally:
        made["loop"].call_soon_threadsafe(made["over"].set)
        thread.join(TIMEOUT_S)
        assert not thread.is_alive()
