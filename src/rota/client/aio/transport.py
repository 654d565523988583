"""Moves the bytes of the asynchronous client over one stream. What both clients do with the bytes is written once,
in the rest of this package.

Several tasks may use the connection at once. One of them reads for all: the session puts what it receives into the
inbox of each request, then the others look into theirs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Self, TypeVar

from rota.client.calls import Call
from rota.client.endpoint import TIMEOUT, Endpoint
from rota.client.session import Conversation, Disconnected
from rota.unix import short
from rota.wire import client_messages as m

T = TypeVar("T")


class AsyncTransport:
    """A stream that can be made anew. `connect` it before use."""

    def __init__(self, endpoint: Callable[[], Endpoint], *, timeout: float = TIMEOUT) -> None:
        self._endpoint = endpoint
        self._timeout = timeout
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._conversation = Conversation("", "")
        self._redialling = asyncio.Lock()
        #: done as soon as the task that reads for all has read something, or has given up
        self._reading: asyncio.Future[None] | None = None

    @classmethod
    async def _open(cls, endpoint: Callable[[], Endpoint], *, timeout: float = TIMEOUT) -> Self:
        """A connected client. Raises `NoManager`."""
        client = cls(endpoint, timeout=timeout)
        await client.connect()
        return client

    async def connect(self) -> m.Welcome:
        raise NotImplementedError

    async def ask(self, call: Call[T]) -> T:
        raise NotImplementedError

    async def close(self) -> None:
        """Close the connection. Safe to call twice."""
        if self._streams is not None:
            writer = self._streams[1]
            self._streams = None
            writer.close()
            try:
                await writer.wait_closed()
            except OSError:
                pass

    @property
    def connected(self) -> bool:
        """Is there a connection, as far as is known?"""
        return (
            self._streams is not None and not self._streams[0].at_eof() and not self._conversation.session.refused
        )

    async def alive(self) -> bool:
        """Is the connection still there? Takes in what has come meanwhile; while nothing is asked."""
        while self._streams is not None and self.connected:
            reading = asyncio.ensure_future(self._streams[0].read(1 << 16))
            await asyncio.sleep(0)
            if not reading.done():
                reading.cancel()
                await asyncio.wait({reading})
                return True
            try:
                data = reading.result()
            except OSError:
                return False
            if data:
                self._conversation.session.take(data)
        return False

    async def ended(self) -> None:
        """Wait until the manager hangs up; while nothing is asked."""
        try:
            while self._streams is not None and await self._streams[0].read(1 << 16):
                pass
        except OSError:
            pass

    async def _dial(self, endpoint: Endpoint, timeout: float) -> None:
        """Make the connection; nothing is said yet. Raises `OSError`."""
        self._streams = await asyncio.wait_for(_dial(endpoint), timeout)

    async def _pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _redial(self, after_s: float) -> None:
        await asyncio.sleep(after_s)
        async with self._redialling:
            if not self.connected:  # another task may have made it again meanwhile
                await self.connect()

    async def _send(self, data: bytes, timeout: float | None) -> None:
        """Raises `TimeoutError`, `Disconnected`."""
        if self._streams is None:
            raise Disconnected
        writer = self._streams[1]
        try:
            writer.write(data)
            async with asyncio.timeout(timeout):
                await writer.drain()
        except TimeoutError:
            raise
        except OSError:
            await self._lost(writer)

    async def _receive(self, timeout: float | None) -> bytes:
        """What has arrived; nothing if another task took it in. Raises `TimeoutError`, `Disconnected`."""
        if self._streams is None:
            raise Disconnected
        if self._reading is not None:
            if not (await asyncio.wait({self._reading}, timeout=timeout))[0]:
                raise TimeoutError
            return b""
        reader, writer = self._streams
        reading = self._reading = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(timeout):
                data = await reader.read(1 << 18)
        except TimeoutError:
            raise
        except OSError:
            data = b""
        finally:
            self._reading = None
            reading.set_result(None)
        if not data:
            await self._lost(writer)
        return data

    async def _lost(self, writer: asyncio.StreamWriter) -> None:
        """Close this connection, unless another has taken its place. Raises `Disconnected`."""
        if self._streams is not None and self._streams[1] is writer:
            await self.close()
        raise Disconnected


async def aside(function: Callable[[], T]) -> T:
    """Call a function that blocks."""
    return await asyncio.to_thread(function)


async def _dial(endpoint: Endpoint) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if endpoint.socket:
        with short(endpoint.socket) as path:
            return await asyncio.open_unix_connection(path)
    from rota.wire.tls import SERVER_NAME, client_context

    assert endpoint.ca is not None
    context = client_context(endpoint.ca)
    return await asyncio.open_connection(endpoint.host, endpoint.port, ssl=context, server_hostname=SERVER_NAME)
