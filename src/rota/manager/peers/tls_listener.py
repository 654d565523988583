"""The TLS port. Connections that have not logged in stay few, cheap and short.

A connection that has sent nothing costs a socket and nothing else. The TLS handshake takes memory, so only a
limited number run at once, in the order of the first bytes. A connection that does not log in then makes room for
the next.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from typing import Final

from rota.manager.peers.connections import Connections
from rota.manager.peers.pending_connections import PendingConnection, PendingConnections, network_of
from rota.wire.first_byte import first_byte

log = logging.getLogger("rota.manager")

#: Connections without TLS yet. Nodes of a large site may all come back at the same moment.
_WAITING: Final = 2048
_WAITING_EACH: Final = 512
#: Connections with TLS that have not logged in.
_GREETING: Final = 256
#: So long a connection may take to log in before another one can evict it.
_PATIENCE_S: Final = 1.0
_FIRST_BYTE_S: Final = 10.0
_HANDSHAKE_S: Final = 10.0
#: After a crowd of this size memory is given back to the system.
_CROWD: Final = 128
_CALM_S: Final = 1.0


class TlsListener:
    """Accepts TLS connections and holds them until they have logged in."""

    def __init__(self, connections: Connections, listener: socket.socket, context: ssl.SSLContext) -> None:
        self._loop = asyncio.get_running_loop()
        self._connections = connections
        self._listener = listener
        self._context = context
        self._waiting = PendingConnections(most=_WAITING, most_each=_WAITING_EACH)
        self._greeting = PendingConnections(most=_WAITING, most_each=_WAITING)  #: `_turn` keeps them fewer
        self._turns = asyncio.Lock()  #: first come, first served
        self._freed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._crowd = 0  #: how many there were at most since memory was last given back

    async def run(self) -> None:
        """Accept connections until this is cancelled."""
        self._listener.setblocking(False)
        try:
            while True:
                try:
                    connection, address = await self._loop.sock_accept(self._listener)
                except OSError as error:
                    log.warning("cannot accept a connection: %s", error)
                    self._make_room()
                    await asyncio.sleep(0.1)
                    continue
                self._connections.allow_files(len(self._waiting) + len(self._greeting))
                task = self._loop.create_task(self._serve(connection, network_of(address[0])))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        finally:
            for task in self._tasks:
                task.cancel()
            self._listener.close()

    def _make_room(self) -> None:
        """No file descriptors are left."""
        if (oldest := self._waiting.oldest_of_largest()) is not None:
            self._waiting.evict(oldest)

    async def _serve(self, connection: socket.socket, network: str) -> None:
        task = asyncio.current_task()
        assert task is not None
        pending = PendingConnection(network, lambda: _cancel(task), since=self._loop.time())
        try:
            self._waiting.add(pending)
            self._crowd = max(self._crowd, len(self._waiting) + len(self._greeting))
            async with asyncio.timeout(_FIRST_BYTE_S):
                if not await first_byte(connection):
                    raise ConnectionResetError("it was closed")
            pending.silent = False
            async with self._turns:
                await self._turn()
                self._waiting.discard(pending)
                pending.since = self._loop.time()
                self._greeting.add(pending)
            await self._shake_hands(connection, pending)
        except (OSError, TimeoutError) as error:  # TLS errors are OSErrors
            log.debug("connection from %s failed: %s", network, error)
            self._left(pending)
            connection.close()
        except asyncio.CancelledError:
            self._left(pending)
            connection.close()
            raise

    async def _turn(self) -> None:
        """Wait for room. The oldest connection is evicted if it takes too long to log in."""
        while len(self._greeting) >= _GREETING:
            oldest = self._greeting.oldest_of_largest()
            assert oldest is not None
            left = oldest.since + _PATIENCE_S - self._loop.time()
            if left <= 0:
                self._greeting.evict(oldest)
                return
            self._freed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._freed.wait()

    async def _shake_hands(self, connection: socket.socket, pending: PendingConnection) -> None:
        peer = self._connections.new_peer(local=False)
        peer.on_identified = lambda: self._left(pending)
        # What it returns is not always the protocol that it was given.
        await self._loop.connect_accepted_socket(
            lambda: peer, connection, ssl=self._context, ssl_handshake_timeout=_HANDSHAKE_S
        )
        pending.close = peer.abort

    def _left(self, pending: PendingConnection) -> None:
        """It was closed, or has logged in."""
        self._waiting.discard(pending)
        self._greeting.discard(pending)
        self._freed.set()
        if self._crowd >= _CROWD and len(self._waiting) + len(self._greeting) < _CROWD // 8:
            self._crowd = 0
            self._loop.call_later(_CALM_S, self._give_back)

    def _give_back(self) -> None:
        self._loop.run_in_executor(None, _trim)


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()


def _trim() -> None:
    """Give memory that a crowd has used back to the system; the C library would keep it."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):  # another C library has no need of it, or no way
        ctypes.CDLL(None).malloc_trim(0)
