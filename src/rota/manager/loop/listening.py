"""Where the manager listens: its Unix socket, and the TLS port, which waits for certificates and renews them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import ssl
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from rota.errors import EnvironmentFault, RotaError
from rota.home import Home, check_private
from rota.manager.loop.service import Manager
from rota.manager.peers.tls_listener import TlsListener
from rota.settings import Settings
from rota.unix import short
from rota.wire import tls

log = logging.getLogger("rota.manager")

_RENEW_CHECK_S = 6 * 3600.0
_TRY_AGAIN_S = 30.0
_BACKLOG = 1024
_PATIENCE_S = 30


def bind_again(home: Home, settings: Settings) -> socket.socket:
    """Without a configured port, take that of the last start if it is free: agents look for the manager there."""
    file = home.path / "tls.port"
    with contextlib.suppress(OSError):
        file.chmod(0o600)  # earlier releases created it readable for others
    if settings.port == 0:
        try:
            known = int(file.read_text())
            return _bind(msgspec.structs.replace(settings, port=known if 0 < known < 65_536 else 0))
        except (OSError, ValueError, EnvironmentFault):
            pass
    listener = _bind(settings)
    with contextlib.suppress(OSError):
        file.touch(mode=0o600)
        file.write_text(f"{listener.getsockname()[1]}\n")
    return listener


def _bind(settings: Settings) -> socket.socket:
    """Bind the TLS port early, to fail before anything starts if it is taken."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
        listener.listen(_BACKLOG)  # connections wait until there are certificates
    except OSError as error:
        listener.close()
        raise EnvironmentFault(
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror}",
            hint="set another host or port in rota.toml (port = 0 takes a free one)",
            code="port",
        ) from None
    return listener


async def listen_locally(home: Home, manager: Manager) -> asyncio.AbstractServer:
    path = home.socket
    path.unlink(missing_ok=True)  # this process holds the lock: nothing listens there
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        with short(str(path)) as name:
            listener.bind(name)
    finally:
        os.umask(before)
    _point_to(path, home.former_socket)
    return await asyncio.get_running_loop().create_unix_server(
        lambda: manager.connections.new_peer(local=True), sock=listener, backlog=_BACKLOG
    )


def _point_to(path: Path, former: Path | None) -> None:
    """Leave a link at the former socket path for runners and clients that still look there."""
    if former is None or not former.parent.is_dir():
        return
    try:
        check_private(former.parent)
        former.unlink(missing_ok=True)
        former.symlink_to(path)
    except (OSError, EnvironmentFault) as error:
        log.warning("the manager cannot be found at its former socket %s: %s", former, error)


async def listen_remotely(home: Home, manager: Manager, listener: socket.socket) -> None:
    """Serve TLS once there are certificates, and renew them in time."""
    loop, settings = asyncio.get_running_loop(), manager.deployment.settings
    hosts = [settings.host, settings.http_host, *settings.names]
    context: ssl.SSLContext | None = None
    if tls.expires_at(home.tls) is None:
        await _quiet_moment(manager)
    accepting: asyncio.Task[None] | None = None
    while True:
        try:
            renewed = await loop.run_in_executor(
                None, lambda: tls.ensure_certificates(home.tls, hosts=hosts, now=datetime.now(UTC))
            )
            if context is None:
                context = tls.server_context(home.tls)
                accepting = loop.create_task(TlsListener(manager.connections, listener, context).run())
                manager.authority.ready.set()
            elif renewed:
                tls.use_certificate(context, home.tls)
        except (RotaError, OSError) as error:
            log.error("no TLS listener, or an old certificate: %s", error)  # noqa: TRY400
            pause_s = _TRY_AGAIN_S  # a full disk, most likely
        else:
            pause_s = _RENEW_CHECK_S
        try:
            await asyncio.sleep(pause_s)
        except asyncio.CancelledError:
            if accepting is not None:
                accepting.cancel()
            raise


async def _quiet_moment(manager: Manager) -> None:
    """Wait for idle time: making the first certificates takes as much CPU time as a thousand jobs."""
    quiet = 0
    for _ in range(_PATIENCE_S * 2):
        await asyncio.sleep(0.5)
        quiet = 0 if manager.busy() else quiet + 1
        if quiet == 2 or manager.authority.wanted.is_set():
            return
