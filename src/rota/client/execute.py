"""Runs one command inside a running job and collects its output: a flow over a session, without I/O of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from rota.client.calls import job_id
from rota.client.channels import ChannelState, Opening, failure
from rota.client.session import Flow, Session
from rota.errors import BadInput
from rota.wire import client_messages as m
from rota.wire.failures import error_of


class Executed(Struct, frozen=True):
    """The result of a command that was run inside a job."""

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


def execute(session: Session, what: Opening, data: bytes) -> Flow[Executed]:
    """Run a command inside a job with this input. Returns its output and how it ended."""
    n = yield from session.open_channel(what)
    talk = ChannelState(n)
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
            case m.Failure():
                session.close_channel(n)
                raise error_of(message)
        while talk.opened and rest and talk.room > 0:
            size = min(len(rest), talk.room, m.PIECE)
            yield talk.data(bytes(rest[:size]))
            rest = rest[size:]
        if talk.opened and not rest and not ended:
            ended = True
            yield talk.data(b"")
