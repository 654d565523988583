"""Look at the first byte of a connection before anything is begun for it."""

from __future__ import annotations

import asyncio
import socket


async def first_byte(connection: socket.socket) -> bytes:
    """The first byte that comes, which is left there; nothing if the other side has closed. Raises `OSError`."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(connection, wake)
    try:
        await ready
    finally:
        loop.remove_reader(connection)
    return connection.recv(1, socket.MSG_PEEK)
