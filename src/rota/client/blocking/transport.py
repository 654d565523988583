"""Moves the bytes of the blocking client over one socket. What both clients do with the bytes is written once, in
`rota.client.aio`."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Self, TypeVar

from rota.client.endpoint import TIMEOUT, Endpoint
from rota.client.session import Conversation, Disconnected
from rota.unix import short
from rota.wire import client_messages as m

T = TypeVar("T")


class Transport:
    """A socket that can be made anew. Connects when it is made."""

    def __init__(self, endpoint: Callable[[], Endpoint], *, timeout: float = TIMEOUT) -> None:
        self._endpoint = endpoint
        self._timeout = timeout
        self._socket: socket.socket | None = None
        self._conversation = Conversation("", "")
        #: called before a lost connection is made again; may start a manager
        self.before_redial: Callable[[], None] | None = None
        self.connect()

    @classmethod
    def _open(cls, endpoint: Callable[[], Endpoint], *, timeout: float = TIMEOUT) -> Self:
        """A connected client. Raises `NoManager`."""
        return cls(endpoint, timeout=timeout)

    def connect(self) -> m.Welcome:
        raise NotImplementedError

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    @property
    def connected(self) -> bool:
        """Is there a connection, as far as is known?"""
        return self._socket is not None and not self._conversation.session.refused

    def _dial(self, endpoint: Endpoint, timeout: float) -> None:
        """Make the connection; nothing is said yet. Raises `OSError`."""
        self._socket = _dial(endpoint, timeout)

    def _pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def _redial(self, after_s: float) -> None:
        time.sleep(after_s)
        if self.before_redial:
            self.before_redial()
        self.connect()

    def _send(self, data: bytes, timeout: float | None) -> None:
        """Raises `TimeoutError`, `Disconnected`."""
        if self._socket is None:
            raise Disconnected
        try:
            self._socket.settimeout(timeout)
            self._socket.sendall(data)
        except TimeoutError:
            raise
        except OSError:
            if not self._has_unread():
                self.close()
                raise Disconnected from None
            # The manager has closed the connection. What it said before that is read next: perhaps that it starts
            # anew and has done nothing, so that this request is sent again.

    def _has_unread(self) -> bool:
        """Is there something to read from a connection that was closed? Never blocks."""
        assert self._socket is not None
        try:
            self._socket.settimeout(0)
            return bool(self._socket.recv(1, socket.MSG_PEEK))
        except (OSError, ValueError):  # nothing; or it is TLS, of which nothing can be read without taking it
            return False

    def _receive(self, timeout: float | None) -> bytes:
        """What has arrived, at least one byte. Raises `TimeoutError`, `Disconnected`."""
        if self._socket is None:
            raise Disconnected
        try:
            self._socket.settimeout(timeout)
            data = self._socket.recv(1 << 18)
        except TimeoutError:
            raise
        except OSError:
            data = b""
        if not data:
            self.close()
            raise Disconnected
        return data


def aside(function: Callable[[], T]) -> T:
    """Call a function that blocks."""
    return function()


def _dial(endpoint: Endpoint, timeout: float) -> socket.socket:
    if endpoint.socket:
        plain = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            plain.settimeout(timeout)
            with short(endpoint.socket) as path:
                plain.connect(path)
        except BaseException:
            plain.close()
            raise
        return plain
    from rota.wire.tls import SERVER_NAME, client_context

    assert endpoint.ca is not None
    context = client_context(endpoint.ca)
    plain = socket.create_connection((endpoint.host, endpoint.port), timeout=timeout)
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return context.wrap_socket(plain, server_hostname=SERVER_NAME)
    except BaseException:
        plain.close()
        raise
