"""Frames to and from the manager over any non-blocking stream, and the back-off between connections.

It knows nothing about jobs.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Protocol

from rota.errors import WireError
from rota.unix import short
from rota.wire import codec
from rota.wire.orders import ToRunner

FIRST_DELAY_S = 0.05
MAX_DELAY_S = 5.0
#: Trying where no manager listens costs little, and ends should be reported soon after one is back.
MAX_KNOCK_S = 0.5
#: Below the size from which malloc maps and unmaps memory for every call.
_READ = 64 * 1024


class ByteStream(Protocol):
    """The transport: a non-blocking `socket.socket` or a `TlsStream`. The latter also says when it waits to write:
    a TLS handshake writes although no frame is waiting."""

    def fileno(self) -> int: ...
    def recv(self, size: int, /) -> bytes: ...
    def send(self, data: bytes | bytearray | memoryview, /) -> int: ...
    def close(self) -> None: ...


Dial = Callable[[], ByteStream]


def unix_dial(path: str) -> Dial:
    """Connections to a Unix socket."""

    def dial() -> ByteStream:
        stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            stream.setblocking(False)
            with short(path) as place:
                stream.connect(place)  # at once, or refused: a Unix socket does not wait
        except OSError:
            stream.close()
            raise
        return stream

    return dial


class Lost(Exception):
    """The connection is gone or useless."""


class Link:
    """At most one connection, and when to try for the next."""

    def __init__(self, dial: Dial, *, patience_s: float = 0.0, knock_s: float = MAX_KNOCK_S) -> None:
        self._dial = dial
        self._patience_s = patience_s  #: how long to wait for being accepted; 0: for ever
        self._knock_s = knock_s  #: the longest wait between tries where no manager listens
        self._give_up_at = 0.0
        self._stream: ByteStream | None = None
        self._reader: codec.Reader[ToRunner] = codec.Reader(ToRunner)
        self._out = bytearray()
        self._delay_s = FIRST_DELAY_S
        self.retry_at = 0.0

    @property
    def up(self) -> bool:
        return self._stream is not None

    @property
    def wants_write(self) -> bool:
        """Does it wait until the stream can be written to?"""
        stream = self._stream
        if stream is None:
            return False
        waits: bool | None = getattr(stream, "wants_write", None)
        return bool(self._out) if waits is None else waits or (bool(self._out) and getattr(stream, "ready", True))

    def overdue(self, now: float) -> bool:
        """Has the manager not answered for too long?"""
        return bool(self._give_up_at) and now >= self._give_up_at

    @property
    def unsent(self) -> int:
        """Bytes that the manager has not taken yet."""
        return len(self._out)

    def connect(self, now: float) -> int:
        """Open a connection and return its descriptor, or raise `Lost` and set `retry_at`."""
        try:
            stream = self._dial()
        except OSError as error:
            self._back_off(now, self._knock_s)
            raise Lost(str(error)) from None
        self._stream = stream
        self._give_up_at = now + self._patience_s if self._patience_s else 0.0
        self._reader = codec.Reader(ToRunner)
        self._out.clear()
        return stream.fileno()

    def accepted(self) -> None:
        """The manager has accepted us: the next failure is a first one again."""
        self._delay_s = FIRST_DELAY_S
        self._give_up_at = 0.0

    def close(self, now: float) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None
            self._out.clear()
            self._back_off(now, MAX_DELAY_S)

    def _back_off(self, now: float, most: float) -> None:
        # Half of the delay is jitter, so that many runners do not come back at the same instant.
        jitter = int.from_bytes(os.urandom(2), "big") / 65536
        self.retry_at = now + self._delay_s * (0.5 + jitter / 2)
        self._delay_s = min(most, self._delay_s * 2)

    def receive(self) -> list[ToRunner]:
        """All whole messages that have arrived. Raises `Lost`."""
        if self._stream is None:
            return []
        try:
            data = self._stream.recv(_READ)
        except (BlockingIOError, InterruptedError):
            return []
        except OSError as error:
            raise Lost(str(error)) from None
        if not data:
            raise Lost("the manager closed the connection")
        try:
            return self._reader.feed(data)
        except WireError as error:
            raise Lost(str(error)) from None

    def send(self, frame: bytes) -> None:
        """Send a frame, or keep what does not go out now. Raises `Lost`."""
        if self._stream is None:
            raise Lost("not connected")
        if self._out:
            self._out += frame
            return
        sent = self._push(frame)
        if sent < len(frame):
            self._out += memoryview(frame)[sent:]

    def flush(self) -> None:
        """Send what was kept. Raises `Lost`."""
        if self._out:
            sent = self._push(self._out)
            del self._out[:sent]

    def _push(self, data: bytes | bytearray) -> int:
        assert self._stream is not None
        try:
            return self._stream.send(data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            raise Lost(str(error)) from None
