"""Channels: bytes between a client and a process inside a running job, by way of the manager.

The opener numbers a channel on its own connection, and the manager numbers it towards the runner, so `n` belongs
to the connection that carries the message. Each side sends only as much as it has credit for, so the manager
buffers no more than one window.
"""

from __future__ import annotations

from typing import Final

from rota.wire.greeting import Message

#: Bytes that may be in flight in one direction, end to end.
WINDOW: Final = 256 * 1024
#: Data bytes per message.
PIECE: Final = 32 * 1024

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2


class OpenChannel(Message, frozen=True, tag="open-channel"):
    """Start a process inside a running job, or take over the terminal of an interactive one.

    The first `ChannelCredit` means that it runs, a `Failure` that it was refused.
    """

    n: int
    job: int
    node: str = ""  #: name of a host of the job, or its place in the node file from 0; empty: the first
    cmd: list[str] = []  #: empty: the user's shell
    tty: bool = False
    rows: int = 24
    cols: int = 80
    term: str = ""
    env: list[str] = []  #: K=V, over those of the job
    cwd: str = ""  #: empty: that of the job
    attach: bool = False  #: the job's own terminal; the fields of a command are ignored
    seen: int = 0  #: when re-attaching: bytes of output already received
    key: str = ""  #: the secret of the job's key, for a client that is not its owner
    #: Start nothing: wait at this point until all members of the job's gang are there. It ends with exit code 0,
    #: or with 1 if a member has ended.
    meet: str = ""
    wait: str = ""  #: with `meet`: the same when it is asked again after a lost connection


class StartChannel(Message, frozen=True, tag="start-channel"):
    """Manager → runner: an `OpenChannel` that was authorised."""

    n: int
    job: int
    attempt: int
    token: int
    cmd: list[str] = []
    tty: bool = False
    rows: int = 24
    cols: int = 80
    term: str = ""
    env: list[str] = []
    cwd: str = ""
    attach: bool = False
    seen: int = 0


class ChannelData(Message, frozen=True, tag="channel-data"):
    """Bytes of a stream; empty: end of stream."""

    n: int
    stream: int
    data: bytes


class ChannelCredit(Message, frozen=True, tag="channel-credit"):
    """So many bytes were consumed: the sender may send as many more."""

    n: int
    size: int


class ChannelResize(Message, frozen=True, tag="channel-resize"):
    n: int
    rows: int
    cols: int


class ChannelSignal(Message, frozen=True, tag="channel-signal"):
    """Send a signal to the process, or to the foreground group of its terminal."""

    n: int
    number: int


class ChannelEnd(Message, frozen=True, tag="channel-end"):
    """The last message of a channel. From the opener: hang up. From the runner: how the process ended."""

    n: int
    exit_code: int | None = None
    signal: int | None = None
    message: str = ""
    lost: bool = False  #: a connection broke


InChannel = ChannelData | ChannelCredit | ChannelResize | ChannelSignal | ChannelEnd


class Relayed(Message, frozen=True, tag="relayed"):
    """Runner → manager: a message of a channel. Negative numbers are channels that processes of the runner's jobs
    opened."""

    message: OpenChannel | InChannel
