"""TLS for the runner's loop: a stream that never blocks, also while it connects or looks up a name."""

from __future__ import annotations

import errno
import os
import socket
import ssl
import threading

#: The peer is gone if it has not acknowledged sent data for this long.
_UNHEARD_S = 30.0
_READ = 64 * 1024
#: Encrypted bytes that the kernel has not taken; more is not encrypted ahead.
_MOST_AHEAD = 256 * 1024
_NAME = "rota"  #: on the certificate of every manager, wherever it runs


class Resolver:
    """The addresses of a name, looked up in a thread off the event loop."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._found: list[tuple[int, tuple[object, ...]]] = []
        self._turn = 0
        self._thread: threading.Thread | None = None

    def next(self) -> tuple[int, tuple[object, ...]]:
        """One (family, address) after the other. Raises `OSError` while none is known."""
        if self._turn >= len(self._found):
            self._turn = 0
            self._look_up()
        if not self._found:
            raise OSError(errno.EHOSTUNREACH, f"{self._host} is not known yet")
        self._turn += 1
        return self._found[min(self._turn, len(self._found)) - 1]

    def _look_up(self) -> None:
        """A numeric address is used at once; a name is looked up in a thread, for the next attempt."""
        try:
            self._ask(socket.AI_NUMERICHOST)
        except socket.gaierror:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._ask_quietly, name="resolver", daemon=True)
                self._thread.start()

    def _ask(self, flags: int) -> None:
        rows = socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM, flags=flags)
        self._found = [(family, address) for family, _, _, _, address in rows]

    def _ask_quietly(self) -> None:
        try:
            self._ask(0)
        except OSError:
            return  # asked again at the next attempt


class TlsStream:
    """One connection. Raises `BlockingIOError` where a socket would, and `OSError` when it is over."""

    def __init__(self, family: int, address: tuple[object, ...], context: ssl.SSLContext) -> None:
        self._socket = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            self._socket.setblocking(False)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(_UNHEARD_S * 1000))
            code = self._socket.connect_ex(address)
            if code not in (0, errno.EINPROGRESS):
                raise OSError(code, os.strerror(code))  # noqa: TRY301
        except OSError:
            self._socket.close()
            raise
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=_NAME)
        self._connected = False
        self._ready = False  #: the handshake is done
        self._unsent = bytearray()

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def ready(self) -> bool:
        """Is the handshake done, so that data can be sent?"""
        return self._ready

    @property
    def wants_write(self) -> bool:
        """Does it wait until the kernel takes more?"""
        return not self._connected or bool(self._unsent)

    def recv(self, size: int, /) -> bytes:
        self._advance()
        found = bytearray()
        over = False
        while True:
            try:
                data = self._socket.recv(_READ)
            except (BlockingIOError, InterruptedError):
                break
            if not data:
                over = True
                break
            self._incoming.write(data)
            if self._incoming.pending >= size:
                break
        if not self._ready:
            self._shake()
        while self._ready:
            try:
                piece = self._tls.read(_READ)
            except ssl.SSLWantReadError:
                break
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                over = True
                break
            if not piece:
                over = True
                break
            found += piece
        self._push()
        if found:
            return bytes(found)
        if over:
            return b""
        raise BlockingIOError

    def send(self, data: bytes | bytearray | memoryview, /) -> int:
        self._advance()
        if not self._ready:
            self._shake()
        if not self._ready or len(self._unsent) >= _MOST_AHEAD:
            self._push()
            raise BlockingIOError
        sent = 0
        view = memoryview(data)
        try:
            while sent < len(view) and len(self._unsent) < _MOST_AHEAD:
                sent += self._tls.write(view[sent : sent + _READ])
                self._push()
        finally:
            view.release()
        return sent

    def close(self) -> None:
        self._socket.close()

    def _advance(self) -> None:
        """Start the handshake once the socket is connected. Raises `OSError` if connecting failed."""
        if self._connected:
            return
        code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))
        try:
            self._socket.getpeername()
        except OSError:
            raise BlockingIOError from None
        self._connected = True
        self._shake()

    def _shake(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            pass
        else:
            self._ready = True
        finally:
            self._push()

    def _push(self) -> None:
        """Write encrypted bytes to the socket."""
        if self._outgoing.pending:
            self._unsent += self._outgoing.read()
        while self._unsent:
            try:
                sent = self._socket.send(self._unsent)
            except (BlockingIOError, InterruptedError):
                return
            del self._unsent[:sent]


def context_for(authority: str) -> ssl.SSLContext:
    """Trusts only this authority (PEM). Raises `OSError` if it cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    context.load_verify_locations(cadata=authority)
    return context
