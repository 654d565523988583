"""Channels: bytes between a client and a process inside a running job, by way of the manager.

Whoever opens a channel numbers it on its own connection, and the manager numbers it towards the runner, so
`n` is that of the connection a message travels on. Nobody sends more than it was given credit for: the
manager keeps nothing but what is on its way.
"""

from __future__ import annotations

from typing import Final

from rota.wire.greeting import Message

#: Bytes of one direction that may be on their way, end to end.
WINDOW: Final = 256 * 1024
#: Bytes of one message.
PIECE: Final = 32 * 1024

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2


class OpenChannel(Message, frozen=True, tag="open-channel"):
    """Start a process inside a running job, or take over the terminal of an interactive one.

    The first `ChannelCredit` says that it runs; a `Failure` that it was refused.
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
    attach: bool = False  #: the job's own terminal; what concerns a command is not used then
    seen: int = 0  #: when it is attached again: bytes of its output that were received
    key: str = ""  #: the secret of the job's key, instead of being its owner


class StartChannel(Message, frozen=True, tag="start-channel"):
    """Manager → runner: the same, once it has been allowed."""

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
    """A piece of a stream. An empty one is its end."""

    n: int
    stream: int
    data: bytes


class ChannelCredit(Message, frozen=True, tag="channel-credit"):
    """So many bytes were taken, and as many more may come."""

    n: int
    size: int


class ChannelResize(Message, frozen=True, tag="channel-resize"):
    n: int
    rows: int
    cols: int


class ChannelSignal(Message, frozen=True, tag="channel-signal"):
    """Send this signal to the process, or to what is in the foreground of its terminal."""

    n: int
    number: int


class ChannelEnd(Message, frozen=True, tag="channel-end"):
    """The last word about a channel. From the opener: hang up. From the other side: how it ended."""

    n: int
    exit_code: int | None = None
    signal: int | None = None
    message: str = ""
    lost: bool = False  #: nobody wanted this: a connection broke


InChannel = ChannelData | ChannelCredit | ChannelResize | ChannelSignal | ChannelEnd


class Relayed(Message, frozen=True, tag="relayed"):
    """Runner → manager: a message of a channel. Numbers below 0 are of channels that processes of its own
    jobs open through it."""

    message: OpenChannel | InChannel
