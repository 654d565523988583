"""The client's end of a channel into a running job, without I/O: how to open it, and how much may be sent."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from rota.errors import EnvironmentFault
from rota.wire import codec
from rota.wire import messages as m

#: Output that was taken is told when it is worth a message.
_CREDIT: Final = m.WINDOW // 4

FromChannel = m.Failure | m.ChannelData | m.ChannelCredit | m.ChannelEnd


class Opening(Struct, frozen=True, kw_only=True):
    """What to open: a command (none: the user's shell) in a running job, or its own terminal (`attach`)."""

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

    def message(self, n: int) -> m.OpenChannel:
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        return m.OpenChannel(n=n, **fields)


class ChannelState:
    """One open channel: frames to send, and room for them."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.room = 0  #: input that may be sent
        self.opened = False
        self.received = 0  #: bytes of output, in all
        self._taken = 0

    def heard(self, message: m.ChannelCredit) -> None:
        self.opened = True
        self.room += message.size

    def data(self, data: bytes, stream: int = m.STDIN) -> bytes:
        """A piece of input; no more than there is room for. Empty: its end."""
        self.room -= len(data)
        return codec.frame(m.ChannelData(self.n, stream, data))

    def took(self, size: int) -> bytes:
        """So much output was dealt with: what to send, if anything."""
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
    """What to tell about a channel that ended without the command's doing."""
    return EnvironmentFault(end.message or "the channel was closed", hint="see 'rota show' of the job")
