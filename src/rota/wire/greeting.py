"""The base of all messages, the handshake (`Hello`, answered by `Welcome` or `Failure`), and messages that clients
and runners share."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from rota.errors import EnvironmentFault

PROTOCOL: Final = 1


class Message(Struct, frozen=True, array_like=True, gc=False):
    """Base class of all messages."""


class Hello(Message, frozen=True, tag="hello"):
    """The first message. A token is needed except on the Unix socket, where the peer's uid counts."""

    protocol: int
    role: str  #: the role that the peer asks for; a browser session gets the role of its user
    token: str = ""
    software: str = ""
    host: str = ""  #: the node, if the peer is its agent
    home: tuple[int, int] | None = None  #: device and inode of the home whose manager is wanted
    key: str = ""  #: of a runner with a ticket: what it proves with, later, that it is the same runner


class Welcome(Message, frozen=True, tag="welcome"):
    protocol: int
    role: str
    user: str
    generation: int  #: grows with every start of the manager
    deployment: str
    until: float | None = None  #: when the token expires, in seconds since the epoch
    home: tuple[int, int] | None = None  #: device and inode of the manager's home, if `Hello` had one
    paced: bool = False  #: it understands `Taken`, and an `Act` that only asks (`check`)
    own_only: bool = False  #: it may act on, and read the output of, its own jobs only


#: Failure code: this is not the manager of the client's home.
OTHER_HOME = "other_home"
#: Failure code: the agent's node was removed.
REMOVED = "removed"
#: Failure code: the manager does not accept this ticket (any more).
TICKET = "ticket"


def other_home() -> EnvironmentFault:
    """The error for a client whose home is not the manager's."""
    return EnvironmentFault(
        "the manager that answers is that of another home, from which this one may have been copied",
        hint="set ROTA_HOME (or --home) to the one you mean; a copy gets a manager by 'rota manager adopt'",
        code=OTHER_HOME,
    )


class Failure(Message, frozen=True, tag="failure"):
    """Request `n` was refused; n = 0 concerns the connection, which is then closed."""

    n: int
    code: str
    message: str
    hint: str = ""
    field: str = ""  #: the field of a job that it is about
    line: int = 0  #: of the input; 0: none
    text: str = ""  #: the message without line and field; empty: it has neither
    labelled: bool = False  #: the message names the field before the text


class Chunk(Message, frozen=True):
    """A piece of live output."""

    job: int
    attempt: int
    stream: int
    offset: int
    data: bytes
