"""The socket at which agents attach, and what each must prove: same user, same boot, the secret, and a higher
epoch than the last agent."""

from __future__ import annotations

import contextlib
import hmac
import os
import socket
import struct
from collections.abc import Iterator

from rota.launcher import messages as m
from rota.launcher.descriptors import raise_limit

SOCKET = "socket"
SECRET = "secret"
_SECRET_BYTES = 32
_BACKLOG = 8
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid
_LONGEST_PATH = 107  # of a Unix socket's address


class Door:
    """Accepts one agent at a time, of the same user only."""

    def __init__(self, directory: str, boot_id: str) -> None:
        """Listens in this directory, which must be private. Raises `OSError`."""
        self._directory = directory
        self._boot_id = boot_id
        self._uid = os.getuid()
        self._secret = os.urandom(_SECRET_BYTES)
        self.epoch = 0
        self.version = m.VERSION  #: that the agent speaks
        fd = os.open(f"{directory}/{SECRET}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            if os.write(fd, self._secret) != _SECRET_BYTES:
                raise OSError("no room for the secret")
        finally:
            os.close(fd)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        path = f"{directory}/{SOCKET}"
        with reachable(path) as short:
            self.listener.bind(short)
        os.chmod(path, 0o600)
        self.listener.listen(_BACKLOG)

    def accept(self) -> socket.socket | None:
        """A connection of the same user, or None."""
        try:
            sock, _ = self.listener.accept()
        except OSError:
            raise_limit()  # it may be reached; the connection waits
            return None
        try:
            data = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        except OSError:
            data = b""
        if len(data) != _CREDENTIALS.size or _CREDENTIALS.unpack(data)[1] != self._uid:
            sock.close()
            return None
        sock.setblocking(False)
        return sock

    def objection(self, attach: m.Attach, *, inherited: bool) -> str:
        """Why this agent may not attach; empty: it may. `inherited`: it started this launcher."""
        if attach.version not in m.SPOKEN:
            return f"version {attach.version} is not spoken here, only {', '.join(map(str, m.SPOKEN))}"
        if not inherited and not hmac.compare_digest(attach.secret, self._secret):
            return "wrong secret"
        if attach.boot_id != self._boot_id:
            return "another boot"
        if os.path.realpath(attach.directory) != os.path.realpath(self._directory):
            return "another directory"
        if attach.epoch <= self.epoch:
            return f"epoch {attach.epoch} is over, {self.epoch} was let in"
        self.epoch, self.version = attach.epoch, attach.version
        return ""


@contextlib.contextmanager
def reachable(path: str) -> Iterator[str]:
    """Context manager for an equivalent of `path` that is short enough for a socket address. Raises `OSError`. A
    copy of `rota.unix.short`: the launcher imports nothing else of Rota."""
    if len(os.fsencode(path)) <= _LONGEST_PATH:
        yield path
        return
    place = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{place}/{os.path.basename(path)}"
    finally:
        os.close(place)


def secret_of(directory: str) -> bytes:
    """The secret by which an agent attaches to the launcher of this directory. Raises `OSError`."""
    with open(f"{directory}/{SECRET}", "rb") as file:
        return file.read(_SECRET_BYTES)
