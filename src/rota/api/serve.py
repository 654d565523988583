"""The gateway process: it serves one port and ends with the manager that started it, not with an image of it.

Plain HTTP is served on the loopback interface only, where browsers trust it; TLS is served on every interface,
with the deployment's certificate. The first byte of a connection shows which of the two it is.
"""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import logging
import os
import signal
import socket
import ssl
import sys
from pathlib import Path
from typing import Final

import uvloop
from uvicorn import Config
from uvicorn.server import ServerState

from rota import config
from rota.api import routes
from rota.api.feed import EventFeed
from rota.api.gateway import Gateway
from rota.api.guard import Guard
from rota.api.http_connection import HttpConnection
from rota.api.manager_connections import ManagerConnections
from rota.api.pages import STATIC, Pages
from rota.errors import RotaError
from rota.home import Home
from rota.logs import log_to
from rota.wire import tls
from rota.wire.first_byte import first_byte
from rota.wire.tokens import read_token

log = logging.getLogger("rota.api")

_CONNECTIONS: Final = 512
_TIDY_S: Final = 20.0
_FIRST_BYTE_S: Final = 10.0
_LINGER_S: Final = 2.0
_TLS_BYTE: Final = b"\x16"
_PLAIN_REFUSED: Final = (
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n"
    b"rota: this address is served by TLS only; use https://\n"
)


def main(argv: list[str] | None = None) -> int:
    """Serve until the manager that started this process has ended. It may be re-executed meanwhile."""
    parser = argparse.ArgumentParser(prog="python -m rota.api", description=__doc__)
    parser.add_argument("--home", required=True)
    parser.add_argument("--listen-fd", type=int, required=True, help="a socket that listens already")
    parser.add_argument("--manager-pid", type=int, required=True, help="serve until this parent has ended")
    options = parser.parse_args(argv)
    os.umask(0o077)
    home = Home(options.home)
    log_to(home.logs / "gateway.log", "info")
    logging.getLogger("uvicorn").setLevel("ERROR")  # invalid HTTP from a client is not worth a log line
    listener = socket.socket(fileno=options.listen_fd)
    try:
        manager = os.pidfd_open(options.manager_pid)
    except ProcessLookupError:
        return 0
    if os.getppid() != options.manager_pid:
        return 0  # it had ended, and another process may have its number
    return uvloop.run(_run(home, listener, manager))


async def _run(home: Home, listener: socket.socket, manager: int) -> int:
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    loop.add_reader(manager, over.set)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, over.set)
    settings = config.load(home).settings
    host, port = listener.getsockname()[:2]
    names = [host, settings.http_host, *settings.names]
    if not _is_loopback(host):
        names.append(socket.gethostname())
    own = read_token(home.tokens / "gateway.token")
    connections = ManagerConnections(home, own)
    feed = EventFeed(connections, own)
    gateway = Gateway(
        routes.OPERATIONS,
        connections=connections,
        feed=feed,
        guard=Guard(names, port),
        pages=Pages(Path(os.environ.get("ROTA_STATIC") or STATIC)),
        own_token=own,
        port=port,
    )
    listening = Listener(gateway, home, listener)
    tasks = [loop.create_task(each) for each in (feed.run(), listening.run(), _tidy(connections))]
    await over.wait()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    listening.close()
    await connections.close()
    return 0


async def _tidy(connections: ManagerConnections) -> None:
    while True:
        await asyncio.sleep(_TIDY_S)
        await connections.tidy()


class Listener:
    """Accepts connections and detects TLS or plain HTTP on each."""

    def __init__(self, gateway: Gateway, home: Home, listener: socket.socket) -> None:
        self._home = home
        self._listener = listener
        self._config = Config(
            gateway, log_config=None, access_log=False, server_header=False, lifespan="off", ws="none",
            h11_max_incomplete_event_size=64 << 10, timeout_keep_alive=60,
        )  # fmt: skip
        self._config.load()
        self._state = ServerState()
        self._context: ssl.SSLContext | None = None
        self._certificate = 0  #: when it was written
        self._opening: dict[asyncio.Task[None], float] = {}  #: task → when it was accepted, oldest first

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        self._listener.setblocking(False)
        while True:
            try:
                connection, address = await loop.sock_accept(self._listener)
            except OSError as error:
                log.warning("a connection could not be accepted: %s", error)
                await asyncio.sleep(0.1)
                continue
            if len(self._state.connections) + len(self._opening) >= _CONNECTIONS and not self._made_room():
                connection.close()
                continue
            task = loop.create_task(self._open(connection, address[0]))
            self._opening[task] = loop.time()
            task.add_done_callback(lambda task: self._opening.pop(task, None))

    def _made_room(self) -> bool:
        """Disconnect the client that has been idle for longest. A client that is reading a response is spared."""
        doors = [each for each in self._state.connections if isinstance(each, HttpConnection)]
        waiting = [(since, door) for door in doors if (since := door.waited_for()) is not None]
        since, door = min(waiting, key=lambda each: each[0], default=(0.0, None))
        task, came = next(iter(self._opening.items()), (None, 0.0))
        if door is not None and (task is None or since <= came):
            self._state.connections.discard(door)
            door.transport.abort()
            return True
        if task is not None:
            del self._opening[task]
            task.cancel()
        return task is not None

    async def _open(self, connection: socket.socket, address: str) -> None:
        try:
            async with asyncio.timeout(_FIRST_BYTE_S):
                first = await first_byte(connection)
        except (TimeoutError, OSError):
            connection.close()
            return
        except asyncio.CancelledError:
            connection.close()
            raise
        if not first:
            connection.close()
            return
        secure = first == _TLS_BYTE
        if not secure and not _is_loopback(address):
            await _refuse_plain(connection)
            return
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(
                lambda: HttpConnection(self._config, self._state, {}),
                connection,
                ssl=self._tls() if secure else None,
                ssl_handshake_timeout=_FIRST_BYTE_S if secure else None,
            )
        except (OSError, RotaError) as error:  # an SSLError is an OSError
            log.debug("a connection from %s was not made: %s", address, error)
            connection.close()

    def _tls(self) -> ssl.SSLContext:
        """The TLS context; reloaded when the manager has renewed the certificate."""
        written = os.stat(self._home.tls / "certificates.json").st_mtime_ns
        if self._context is None or written != self._certificate:
            self._context, self._certificate = tls.server_context(self._home.tls), written
        return self._context

    def close(self) -> None:
        self._listener.close()
        for connection in list(self._state.connections):
            connection.shutdown()


async def _refuse_plain(connection: socket.socket) -> None:
    """Answer with an error, then read to the end: closing with unread input would reset the connection."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_LINGER_S):
            await loop.sock_sendall(connection, _PLAIN_REFUSED)
            connection.shutdown(socket.SHUT_WR)
            while await loop.sock_recv(connection, 1 << 16):
                pass
    except (OSError, TimeoutError):
        pass
    finally:
        connection.close()


def _is_loopback(address: str) -> bool:
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return (mapped or found).is_loopback


if __name__ == "__main__":
    sys.exit(main())
