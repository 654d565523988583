"""The client's end of a channel into a running job, without I/O: how to open it, and how much may be sent."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from rota.errors import EnvironmentFault
from rota.wire import client_messages as m
from rota.wire import codec

#: Consumed output is acknowledged in steps of this size.
_CREDIT: Final = m.WINDOW // 4

FromChannel = m.Failure | m.ChannelData | m.ChannelCredit | m.ChannelEnd


class Opening(Struct, frozen=True, kw_only=True):
    """What to open in a running job: a command, a shell (no command), or the job's terminal (`attach`)."""

    job: int
    cmd: list[str] = []
    node: str = ""
    tty: bool = False
    rows: int = 24
    cols: int = 80
    term: str = ""
    env: list[str] = []
    cwd: str = ""
    attach: bool = False
    seen: int = 0
    key: str = ""
    meet: str = ""
    wait: str = ""

    def message(self, n: int) -> m.OpenChannel:
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        return m.OpenChannel(n=n, **fields)


class ChannelState:
    """Flow control of one open channel: builds frames and counts credit."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.room = 0  #: bytes of input that may be sent
        self.opened = False
        self.received = 0  #: bytes of output so far
        self._taken = 0

    def heard(self, message: m.ChannelCredit) -> None:
        self.opened = True
        self.room += message.size

    def data(self, data: bytes, stream: int = m.STDIN) -> bytes:
        """The frame for a piece of input, at most `room` bytes; empty: end of input."""
        self.room -= len(data)
        return codec.frame(m.ChannelData(self.n, stream, data))

    def took(self, size: int) -> bytes:
        """Count consumed output. Returns the frame that acknowledges it, or nothing yet."""
        self.received += size
        self._taken += size
        if self._taken < _CREDIT:
            return b""
        size, self._taken = self._taken, 0
        return codec.frame(m.ChannelCredit(self.n, size))

    def resize(self, rows: int, cols: int) -> bytes:
        return codec.frame(m.ChannelResize(self.n, rows, cols))

    def signal(self, number: int) -> bytes:
        return codec.frame(m.ChannelSignal(self.n, number))

    def end(self) -> bytes:
        return codec.frame(m.ChannelEnd(self.n))


def failure(end: m.ChannelEnd) -> EnvironmentFault:
    """The error for a channel that ended before its command did."""
    return EnvironmentFault(end.message or "the channel was closed", hint="see 'rota show' of the job")
