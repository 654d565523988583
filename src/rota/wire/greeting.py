"""What every message is, and how a connection begins: `Hello` from the one who connects, answered by `Welcome`
or `Failure`. And what both clients and runners have a use for."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from rota.errors import EnvironmentFault

PROTOCOL: Final = 1


class Message(Struct, frozen=True, array_like=True, gc=False):
    """Base of everything on the wire."""


class Hello(Message, frozen=True, tag="hello"):
    """The first message. A token is needed except on the Unix socket, where the peer's uid counts."""

    protocol: int
    role: str  #: what the peer wants to be; who comes with a browser's session is told what it is
    token: str = ""
    software: str = ""
    host: str = ""  #: of which node it is the agent
    home: tuple[int, int] | None = None  #: device and inode of the home whose manager is meant


class Welcome(Message, frozen=True, tag="welcome"):
    protocol: int
    role: str
    user: str
    generation: int  #: grows with every start of the manager
    deployment: str
    until: float | None = None  #: when the token expires, in seconds since the epoch
    home: tuple[int, int] | None = None  #: device and inode of the manager's own, for who said which one is meant
    paced: bool = False  #: it understands `Taken`, and an `Act` that only asks (`check`)
    own_only: bool = False  #: it may touch, and read the output of, nobody's jobs but its own


#: The code of a failure by which a client learns that this is not the manager of its home.
OTHER_HOME = "other_home"
#: The code of a failure by which the agent of a node learns that its node was removed.
REMOVED = "removed"


def other_home() -> EnvironmentFault:
    """What both sides say when a client means another home than the manager's."""
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


class Chunk(Message, frozen=True):
    """A piece of live output."""

    job: int
    attempt: int
    stream: int
    offset: int
    data: bytes
