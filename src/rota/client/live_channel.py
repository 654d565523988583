"""An open channel over a blocking client, for terminals and pipes: the caller moves the bytes."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from rota.client.channels import ChannelState, FromChannel, Opening
from rota.client.session import Disconnected
from rota.wire import client_messages as m

if TYPE_CHECKING:
    from rota.client.blocking import Client


class LiveChannel:
    """One open channel. The client must not be used for anything else meanwhile."""

    def __init__(self, client: Client, what: Opening) -> None:
        self._client = client
        self._session = client._conversation.session
        self._talk = ChannelState(client._perform(self._session.open_channel(what), client._timeout))

    @property
    def room(self) -> int:
        """Bytes that may be sent now."""
        return self._talk.room

    @property
    def received(self) -> int:
        """Bytes of output so far."""
        return self._talk.received

    def fileno(self) -> int:
        """The descriptor to poll; check `pending` first. Raises `Disconnected`."""
        if self._client._socket is None:
            raise Disconnected
        return self._client._socket.fileno()

    @property
    def pending(self) -> bool:
        """Is there buffered input that polling the descriptor would miss?"""
        stream = self._client._socket
        if self._session.has_in_channel(self._talk.n):
            return True
        return isinstance(stream, ssl.SSLSocket) and stream.pending() > 0

    def poll(self, timeout: float) -> FromChannel | None:
        """The next message; None after `timeout` seconds. Raises `Disconnected`."""
        try:
            message = self._client._run(self._session.next_in_channel(self._talk.n), timeout)
        except TimeoutError:
            return None
        if isinstance(message, m.ChannelCredit):
            self._talk.heard(message)
        elif isinstance(message, m.ChannelEnd | m.Failure):
            self._session.close_channel(self._talk.n)
        return message

    def send(self, data: bytes) -> None:
        """Send input, at most `room` bytes; empty: end of input."""
        self._say(self._talk.data(data))

    def took(self, size: int) -> None:
        """Acknowledge so many bytes of output."""
        if frame := self._talk.took(size):
            self._say(frame)

    def resize(self, rows: int, cols: int) -> None:
        self._say(self._talk.resize(rows, cols))

    def signal(self, number: int) -> None:
        self._say(self._talk.signal(number))

    def end(self) -> None:
        """Hang up."""
        self._say(self._talk.end())

    def _say(self, frame: bytes) -> None:
        try:
            self._client._run(self._session.say(frame), self._client._timeout)
        except TimeoutError:
            raise Disconnected from None
