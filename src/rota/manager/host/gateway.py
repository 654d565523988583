"""Starts the gateway, the process that serves HTTP, and restarts it if it ends.

The socket is bound here and stays open, so that a restarted gateway has the same address. A free port is
remembered, so that open pages find the next manager at the same address.

The gateway outlives a re-execution of the manager, whose new image adopts it: clients keep their connections, and
their requests wait meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import logging
import os
import select
import signal
import socket
import sys
from typing import Final

from msgspec import Struct

from rota.errors import BadInput, EnvironmentFault
from rota.home import Home
from rota.settings import Settings

log = logging.getLogger("rota.manager")

OFF: Final = "off"
_BACKLOG: Final = 256
_AGAIN_S: Final = 1.0
_TRIES: Final = 8  #: a free port may be taken on the other loopback address
_LONGEST_S: Final = 60.0
#: How long the process gets to leave the port to the next manager.
_END_MS: Final = 2000


class LeftGateway(Struct, frozen=True):
    """A gateway that goes on serving while its manager becomes a new image of itself."""

    pid: int
    url: str
    host: str  #: the setting `http_host` that it was started with


class GatewayProcess:
    """The gateway of a manager, which may not have been started yet."""

    def __init__(self, home: Home, settings: Settings) -> None:
        self._loop = asyncio.get_running_loop()
        self._home = home
        self._settings = settings
        self._listener: socket.socket | None = None
        self._twin: socket.socket | None = None  #: occupies the same port of the other loopback address
        self._task: asyncio.Task[None] | None = None
        self._pid: int | None = None
        self._handle: int | None = None  #: of the process
        self.url: str | None = None

    def start(self) -> str:
        """Start it, unless it runs. Returns its address. Raises `RotaError`."""
        if self.url is None:
            settings = self._settings
            if settings.http == OFF:
                hint = 'set http = "on" in rota.toml, and start the manager again'
                raise BadInput("HTTP is turned off", hint=hint)
            self._listener, self._twin = self._bind(settings.http_host, settings.http_port)
            self.url = url_of(*self._listener.getsockname()[:2])
            self._task = self._loop.create_task(self._keep(self._listener))
        return self.url

    # ------------------------------------------------------------------ re-execution of the manager

    @property
    def left(self) -> LeftGateway | None:
        """What the next image of this manager must know to adopt the gateway."""
        if self._pid is None or self.url is None:
            return None
        return LeftGateway(self._pid, self.url, self._settings.http_host)

    def adopt(self, left: LeftGateway) -> None:
        """Take over the gateway that the image before started; or end it, if the settings have changed."""
        try:
            self._handle = os.pidfd_open(left.pid)
        except OSError:
            return  # it has ended
        self._pid = left.pid
        port, settings = int(left.url.rpartition(":")[2]), self._settings
        if settings.http == OFF or settings.http_host != left.host or settings.http_port not in (0, port):
            self.stop()
            return
        self.url = left.url
        self._task = self._loop.create_task(self._keep_adopted(self._handle))

    async def _keep_adopted(self, handle: int) -> None:
        """Start another gateway when the adopted one has ended."""
        ended = asyncio.Event()
        self._loop.add_reader(handle, ended.set)
        try:
            await ended.wait()
        finally:
            self._loop.remove_reader(handle)
            self._forget()
        log.warning("the gateway ended")
        self.url = None
        while True:
            try:
                self.start()
            except EnvironmentFault as error:
                log.warning("cannot start the gateway: %s", error)
                await asyncio.sleep(_LONGEST_S)
            else:
                return

    # ------------------------------------------------------------------ a process of its own

    def _bind(self, host: str, port: int) -> tuple[socket.socket, socket.socket | None]:
        file = self._home.path / "http.port"
        if not port and (before := _remembered(file)):
            try:
                return _listen(host, before)
            except EnvironmentFault:
                log.info("port %d is taken: the dashboard gets another one", before)
        listener, twin = _listen(host, port) if port else _listen_somewhere(host)
        if not port:
            try:
                with open(file, "w", encoding="ascii", opener=_private) as out:
                    os.fchmod(out.fileno(), 0o600)  # earlier releases created it readable for others
                    out.write(f"{listener.getsockname()[1]}\n")
            except OSError as error:
                log.warning("cannot remember the port: %s", error)
        return listener, twin

    async def _keep(self, listener: socket.socket) -> None:
        pause = _AGAIN_S
        while True:
            began = self._loop.time()
            try:
                code = await self._run(listener)
            except OSError as error:
                log.warning("cannot start the gateway: %s", error)
            else:
                log.warning("the gateway exited with status %d", code)
            lived = self._loop.time() - began
            pause = _AGAIN_S if lived > _LONGEST_S else min(_LONGEST_S, pause * 2)
            await asyncio.sleep(pause)

    async def _run(self, listener: socket.socket) -> int:
        command = [sys.executable, "-P", "-m", "rota.api", "--home", str(self._home)]
        command += ["--listen-fd", str(listener.fileno()), "--manager-pid", str(os.getpid())]
        # It keeps the other address occupied while the manager is re-executed.
        held = tuple(each.fileno() for each in (listener, self._twin) if each is not None)
        with open(self._home.logs / "gateway.out", "ab", opener=_private) as out:
            process = await asyncio.create_subprocess_exec(
                *command,
                pass_fds=held,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        try:
            with contextlib.suppress(OSError):  # it has ended
                self._handle = os.pidfd_open(process.pid)
                self._pid = process.pid
            return await process.wait()
        finally:
            self._forget()

    def _forget(self) -> None:
        self._pid = None
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def stop(self) -> None:
        """End the process. Blocks for a moment, until it has released the port."""
        if self._task is not None:
            self._task.cancel()
        for held in (self._listener, self._twin):
            if held is not None:
                held.close()
        if self._handle is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGTERM)
            _wait_for(self._handle)
            if self._task is None:
                self._forget()  # otherwise the task does when it is cancelled


def url_of(host: str, port: int) -> str:
    """The address for a browser on this machine, which may speak plain HTTP wherever it can use loopback."""
    address = ipaddress.ip_address(host.partition("%")[0])
    name = f"[{host}]" if ":" in host else host
    if address.is_unspecified or host in ("127.0.0.1", "::1"):
        name = "localhost"
    return f"{'http' if address.is_loopback or address.is_unspecified else 'https'}://{name}:{port}"


def _listen(host: str, port: int) -> tuple[socket.socket, socket.socket | None]:
    try:
        family, _kind, _protocol, _name, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
            twin = _hold_twin(*listener.getsockname()[:2])
        except BaseException:
            listener.close()
            raise
    except OSError as error:
        raise EnvironmentFault(
            f"cannot listen on {host}:{port}: {error.strerror}",
            hint="set another http_host or http_port in rota.toml (port 0 takes a free one)",
            code="port",
        ) from None
    return listener, twin


def _listen_somewhere(host: str) -> tuple[socket.socket, socket.socket | None]:
    for _ in range(_TRIES):
        with contextlib.suppress(EnvironmentFault):
            return _listen(host, 0)
    return _listen(host, 0)


#: Browsers try both loopback addresses for `localhost`. `::` is both of them already.
_TWINS: Final = {"127.0.0.1": "::1", "0.0.0.0": "::1", "::1": "127.0.0.1"}


def _hold_twin(host: str, port: int) -> socket.socket | None:
    """Occupies the same port of the other loopback address. Another program there would receive the cookies of
    browsers. Raises `OSError` if the port is taken."""
    twin = _TWINS.get(host)
    if twin is None:
        return None
    held = None
    try:
        held = socket.socket(socket.AF_INET6 if ":" in twin else socket.AF_INET, socket.SOCK_STREAM)
        held.bind((twin, port))  # without SO_REUSEADDR, with which both could bind it
    except OSError as error:
        if held is not None:
            held.close()
        if error.errno == errno.EADDRINUSE:
            raise
        return None  # this machine has no such address
    return held


def _remembered(file: os.PathLike[str]) -> int:
    """The port of last time, or 0."""
    try:
        with open(file, encoding="ascii") as lines:
            text = lines.read(16).strip()
    except (OSError, UnicodeDecodeError):
        return 0
    return int(text) if text.isdigit() and 1024 <= int(text) < 65536 else 0


def _wait_for(handle: int) -> None:
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    poll.poll(_END_MS)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
