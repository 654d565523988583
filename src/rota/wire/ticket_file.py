"""A ticket: the file with which a runner of a delegated pool finds its manager, verifies it and is let in once.

It holds a secret, so it is private to its owner and never travels in arguments or in the environment. The manager
keeps the hash of the secret only.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from pathlib import Path
from typing import Any, Final

import msgspec

from rota.errors import BadInput, EnvironmentFault
from rota.wire import private_files

#: What the secret of every ticket begins with. No token of another kind does.
PREFIX: Final = "rota_ticket_"
#: Runners with tickets are known by such names: whatever engine they are submitted to accepts them.
NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_VERSION: Final = 1
_BEGIN: Final = "-----BEGIN CERTIFICATE-----"
_HINT: Final = "give the file that the pool has written"


class Ticket(msgspec.Struct, frozen=True, kw_only=True):
    """What a runner must know before it starts."""

    name: str  #: unique in the deployment; the manager calls the runner's host so
    secret: str
    manager: str  #: HOST:PORT, as seen from where the runner will be
    authority: str  #: certificate (PEM) of the authority of the deployment; the runner trusts no other
    version: int = _VERSION  #: of the format


def new_secret() -> str:
    """A secret for one ticket. It has 256 random bits, so a plain hash of it is safe to keep."""
    return PREFIX + secrets.token_urlsafe(32)


def digest(secret: str) -> str:
    """What the manager keeps of the secret of a ticket, or of a runner's key: SHA-256, in hex."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def write(path: Path, ticket: Ticket) -> None:
    """Write the file, with mode 0600. Raises `EnvironmentFault` if that fails, `BadInput` for a bad ticket."""
    private_files.write(path, content(ticket, path))


def content(ticket: Ticket, path: Path = Path("the new file")) -> bytes:
    """What the file of this ticket holds. Raises `BadInput` for a bad ticket, for which `path` is named."""
    _check(ticket, path)
    return msgspec.json.format(msgspec.json.encode(ticket), indent=1) + b"\n"


def read(path: Path) -> Ticket:
    """The ticket in this file.

    Raises `Denied` if others may read or change it, `EnvironmentFault` if it cannot be read or is of a later
    version, and `BadInput` if it is no ticket.
    """
    try:
        data = private_files.read(path)
    except FileNotFoundError:
        raise EnvironmentFault(
            f"there is no ticket {path}", hint="it is removed when it was used or is not needed any more"
        ) from None
    try:
        found = msgspec.json.decode(data, type=dict[str, Any])
        if (version := found.get("version")) not in (None, _VERSION):
            raise EnvironmentFault(
                f"{path} is a ticket of version {version}, this is for {_VERSION}",
                hint="use the version of Rota that the manager has",
            )
        ticket = msgspec.convert(found, Ticket)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} is not a ticket: {error}", hint=_HINT) from None
    _check(ticket, path)
    return ticket


def address(text: str) -> tuple[str, int]:
    """Host and port of ``HOST:PORT`` or ``[IPV6]:PORT``. Raises `BadInput`."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not (port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65_536):
        raise BadInput(f"{text!r} is not an address", hint="write HOST:PORT")
    return host, int(port)


def _check(ticket: Ticket, path: Path) -> None:
    problem = ""
    if not NAME.fullmatch(ticket.name):
        problem = f"its name is {ticket.name[:100]!r}"
    elif not ticket.secret.startswith(PREFIX):
        problem = "it has no secret"
    elif _BEGIN not in ticket.authority:
        problem = "the certificate of the authority is missing"
    if problem:
        raise BadInput(f"{path} is not a ticket: {problem}", hint=_HINT)
    address(ticket.manager)
