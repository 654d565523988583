"""The client's side of channels into running jobs, without I/O of its own: what to say, and when there is room.

`execute` is a flow like those of `Session`; `Talk` keeps count for whoever moves bytes himself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from rota.client.calls import job_id
from rota.errors import BadInput, EnvironmentFault, from_code
from rota.wire import codec
from rota.wire import messages as m

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rota.client.session import Flow, Session

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


class Executed(Struct, frozen=True):
    """What became of a command that was run inside a job."""

    exit_code: int | None
    signal: int | None
    stdout: bytes
    stderr: bytes
    message: str = ""  #: why it could not be run, if it could not


def opening(
    job: int,
    command: Sequence[str],
    *,
    node: str = "",
    env: Mapping[str, str] | None = None,
    cwd: str = "",
    key: str = "",
) -> Opening:
    """A command to run inside a job. Raises `BadInput`."""
    if isinstance(command, str) or not command or not all(isinstance(word, str) for word in command):
        raise BadInput("the command must be a list of words", hint='for a shell: ["sh", "-c", "…"]')
    variables = [f"{name}={value}" for name, value in (env or {}).items()]
    return Opening(job=job_id(job), cmd=list(command), node=node, env=variables, cwd=cwd, key=key)


class Talk:
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


def execute(session: Session, what: Opening, data: bytes) -> Flow[Executed]:
    """Run a command inside a job with this input; what it wrote and how it ended."""
    n = yield from session.open_channel(what)
    talk = Talk(n)
    out: dict[int, list[bytes]] = {m.STDOUT: [], m.STDERR: []}
    rest = memoryview(data)
    ended = False
    while True:
        message = yield from session.next_in_channel(n)
        match message:
            case m.ChannelCredit():
                talk.heard(message)
            case m.ChannelData(_, stream, piece):
                out[m.STDERR if stream == m.STDERR else m.STDOUT].append(piece)
                if credit := talk.took(len(piece)):
                    yield credit
            case m.ChannelEnd(_, exit_code, number, text, lost):
                session.close_channel(n)
                if lost or (exit_code is None and number is None):
                    raise failure(message)
                stdout, stderr = (b"".join(out[stream]) for stream in (m.STDOUT, m.STDERR))
                return Executed(exit_code, number, stdout, stderr, text)
            case m.Failure(_, code, text, hint):
                session.close_channel(n)
                raise from_code(code, text, hint=hint)
        while talk.opened and rest and talk.room > 0:
            size = min(len(rest), talk.room, m.PIECE)
            yield talk.data(bytes(rest[:size]))
            rest = rest[size:]
        if talk.opened and not rest and not ended:
            ended = True
            yield talk.data(b"")


def failure(end: m.ChannelEnd) -> EnvironmentFault:
    """What to tell about a channel that ended without the command's doing."""
    return EnvironmentFault(end.message or "the channel was closed", hint="see 'rota show' of the job")
