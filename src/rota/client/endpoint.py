"""Finds the endpoint of a deployment's manager and the credential for it. Does not connect."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from rota.errors import BadInput, NoManager, RotaError
from rota.home import Home, Mark

#: How long an answer may take, in seconds; adding a million jobs gets ten times as much.
TIMEOUT: Final = 60.0
HOW_TO_START: Final = "start one with 'rota manager start'"


class NoTrace(NoManager):
    """There is no trace of a manager in a home on this machine: none starts anew there."""


class Endpoint(Struct, frozen=True, kw_only=True):
    """How to reach a manager: over its Unix socket, or else by TLS."""

    socket: str = ""
    host: str = ""
    port: int = 0
    ca: Path | None = None
    role: str = "admin"
    token: str = ""
    home: Mark | None = None  #: the directory that the manager must belong to
    path: str = ""  #: of that directory; empty: it is not on this machine, or unknown

    def __str__(self) -> str:
        return self.socket or f"{self.host}:{self.port}"

    @property
    def comes_back(self) -> bool:
        """Does its manager start anew at this moment? Then it listens again soon."""
        return bool(self.path) and Home(self.path).being_reexecuted() != 0


def is_remote(address: str | None) -> bool:
    """Is the manager at an address, which may be anywhere? Then no client starts it."""
    return bool(address or os.environ.get("ROTA_MANAGER"))


def find(
    home: Home,
    *,
    address: str | None = None,
    token: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Endpoint:
    """The endpoint of the manager. Whether it answers is not checked.

    Raises `NoManager` when the deployment has no trace of one.
    """
    environ = os.environ if environ is None else environ
    remote = address or environ.get("ROTA_MANAGER")
    if remote:
        return _tls(home, remote, token=token, environ=environ)
    if socket := home.find_socket():
        return Endpoint(socket=str(socket), home=home.mark(), path=str(home))
    written = home.read_manager_file()
    if written and written.address and (token or "ROTA_TOKEN_FILE" in environ):
        found = _tls(home, written.address, token=token, environ=environ)
        return msgspec.structs.replace(found, home=home.mark())
    if home.being_reexecuted():
        return Endpoint(socket=str(home.socket), home=home.mark(), path=str(home))  # it makes its socket anew
    raise no_manager() if written else NoTrace("no manager is running", hint=HOW_TO_START)


def no_manager() -> NoManager:
    return NoManager("no manager is running", hint=HOW_TO_START)


def parse_address(text: str) -> tuple[str, int]:
    """HOST:PORT or [IPv6]:PORT. Raises `BadInput`."""
    host, _, port = text.strip().rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port[:6]) < 65536:
        raise BadInput(f"{text!r} is not HOST:PORT", hint="write it like 127.0.0.1:7000")
    return host, int(port)


def _tls(home: Home, address: str, *, token: str | None, environ: Mapping[str, str]) -> Endpoint:
    host, port = parse_address(address)
    if token is None:
        token = _token(home, environ)
    return Endpoint(
        host=host, port=port, ca=Path(environ.get("ROTA_CA") or home.ca), role=role_of(token), token=token
    )


def _token(home: Home, environ: Mapping[str, str]) -> str:
    from rota.wire.tokens import read_token

    return read_token(Path(environ.get("ROTA_TOKEN_FILE") or home.tokens / "admin.token"))


def role_of(token: str) -> str:
    """The role in a token: rota_ROLE_…"""
    parts = token.split("_")
    return parts[1] if len(parts) > 2 else "user"


def unreachable(endpoint: Endpoint, error: Exception) -> RotaError:
    """The error for a connection that could not be made."""
    if endpoint.socket and isinstance(error, ConnectionRefusedError | FileNotFoundError):
        return no_manager()
    if endpoint.socket and isinstance(error, PermissionError):
        return NoManager(f"the manager's socket {endpoint} may not be used by this user", hint="use a token")
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return NoManager(f"the manager at {endpoint} cannot be reached: {reason}", hint="is it running?")


def slow_manager(timeout: float) -> NoManager:
    return NoManager(f"the manager did not answer within {timeout:g} s", hint="see 'rota manager logs'")
