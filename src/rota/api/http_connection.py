"""One HTTP connection: uvicorn's protocol with timeouts for slow clients, and our own answer to invalid HTTP."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import h11
import msgspec
from uvicorn.protocols.http.h11_impl import H11Protocol

from rota.api.guard import HEADERS
from rota.api.problems import error_body
from rota.errors import BadInput

#: The head of a request must be complete in this time.
_HEAD_S: Final = 20.0
#: A client that reads nothing of a response for so long is disconnected: unread data stays in memory.
_UNREAD_S: Final = 120.0
#: The same when the connection limit is reached.
_UNREAD_FULL_S: Final = 2.0


class HttpConnection(H11Protocol):
    """Disconnects clients that never finish a request or never read the response: they would block others."""

    _patience: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    heard = 0.0  #: when the client last sent part of a request, or connected
    _stuck = 0.0  #: since when writing is paused because the client reads too slowly; 0: it is not
    _read = 0.0  #: when the client was last seen to read
    _left = 0  #: bytes that were unread then

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.heard = self.loop.time()
        self._be_patient()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.asked:
            self.heard = self.loop.time()
            self._forget()
        elif self._patience is None:
            self._be_patient()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stuck = self._read = self.loop.time()
        self._left = self.transport.get_write_buffer_size()
        self._watch_reading()

    def resume_writing(self) -> None:
        self._stuck = 0.0
        self._stop_watching()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        self._stop_watching()
        super().connection_lost(exc)

    @property
    def asked(self) -> bool:
        """Is a request being answered?"""
        return self.cycle is not None and not self.cycle.response_complete

    def waited_for(self) -> float | None:
        """Since when the client has been expected to send or read; None: it is the server's turn."""
        if self._stuck:
            now, left = self.loop.time(), self.transport.get_write_buffer_size()
            if left < self._left:
                self._read, self._left = now, left
            return self._read if now - self._stuck >= _UNREAD_FULL_S else None
        return self.heard if not self.asked or self.cycle.more_body else None

    def _be_patient(self) -> None:
        self._patience = self.loop.call_later(_HEAD_S, self._too_slow)

    def _forget(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _too_slow(self) -> None:
        self._patience = None
        if not self.asked:
            self._hang_up()

    def timeout_keep_alive_handler(self) -> None:
        self._hang_up()

    def _hang_up(self) -> None:
        """Close the connection. With unread data an orderly close would wait for the client, so it is aborted."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    def _watch_reading(self) -> None:
        self._stop_watching()
        self._unread = self.loop.call_later(_UNREAD_S, self._look, self.transport.get_write_buffer_size())

    def _stop_watching(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _look(self, before: int) -> None:
        """Abort if the client has read nothing since the last look."""
        if self.transport.get_write_buffer_size() < before:
            self._watch_reading()
        else:
            self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Answer invalid HTTP with our JSON error and headers."""
        body = msgspec.json.encode(error_body(BadInput("this is not a valid HTTP request", hint="see RFC 9112")))
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
            (b"cache-control", b"no-store"),
            *HEADERS,
        ]
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(self.conn.send(h11.Response(status_code=400, headers=headers)) or b"")
            self.transport.write(self.conn.send(h11.Data(data=body)) or b"")
            self.transport.write(self.conn.send(h11.EndOfMessage()) or b"")
        self.transport.close()
