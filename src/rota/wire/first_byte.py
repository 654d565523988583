"""Peeks at the first byte of a connection, which shows its protocol."""

from __future__ import annotations

import asyncio
import socket


async def first_byte(connection: socket.socket) -> bytes:
    """Wait for the first byte without consuming it; empty if the peer has closed. Raises `OSError`."""
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
