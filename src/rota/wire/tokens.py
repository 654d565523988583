"""Tokens: each has a role and perhaps a user; the token book knows their hashes.

A token is shown once, when it is made; only its SHA-256 is kept. It has 256 random bits, so a plain
hash is enough. Nothing here reads a clock: `now` is seconds since the epoch. What a role may do is in
`wire.permissions`.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from pathlib import Path
from typing import Final

import msgspec

from rota.errors import BadInput, Denied, EnvironmentFault, NotFound
from rota.wire import private_files
from rota.wire.permissions import ADMIN, GATEWAY, ROLES, RUNNER

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_VERSION: Final = 1


class TokenRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a token; the token itself is not."""

    name: str
    role: str
    sha256: str
    created_at: float
    expires_at: float | None = None
    host: str | None = None  #: it is good for the agent of this node alone
    user: str | None = None  #: its user; None: the user that runs the manager


_Records = list[TokenRecord]  # inside the book `list` is a method


class _File(msgspec.Struct, frozen=True):
    version: int
    tokens: _Records


class TokenBook:
    """The tokens of one deployment. Every change is on disk before it returns."""

    def __init__(self, path: Path, records: _Records) -> None:
        self._path = path
        self._records = records

    @classmethod
    def open(cls, path: Path) -> TokenBook:
        """The book in this file; an empty one if there is no file yet."""
        private_files.make_directory(path.parent)
        try:
            file = msgspec.json.decode(private_files.read(path), type=_File)
        except FileNotFoundError:
            return cls(path, [])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise EnvironmentFault(
                f"{path} is damaged: {error}", hint="restore it, or remove it to begin with new tokens"
            ) from None
        if file.version != _VERSION:
            raise EnvironmentFault(
                f"{path} has version {file.version}, this is for {_VERSION}", hint="use the newer rota"
            )
        if any(record.role not in ROLES for record in file.tokens):
            raise EnvironmentFault(f"{path} names an unknown role", hint="use the newer rota, or restore it")
        return cls(path, file.tokens)

    def create(
        self,
        name: str,
        role: str,
        expires_at: float | None = None,
        *,
        now: float,
        host: str | None = None,
        user: str | None = None,
    ) -> str:
        """Create a token. Its secret is returned only here. Names are unique."""
        if role not in ROLES:
            raise BadInput(f"{role!r} is not a role", hint=f"use one of {', '.join(ROLES)}")
        if not _NAME.fullmatch(name):
            raise BadInput(f"{name!r} cannot name a token", hint="use at most 64 letters, digits and . _ @ -")
        if any(record.name == name for record in self._records):
            raise BadInput(
                f"there is a token named {name!r} already", hint="remove it first, or choose another name"
            )
        if expires_at is not None and not expires_at > now:
            raise BadInput("the token would have expired already", hint="give a time that is to come")
        if host is not None and role != RUNNER:
            raise BadInput("only the token of a runner is for one host", hint="leave out the host")
        if user is not None and role == RUNNER:
            raise BadInput("a runner is no user", hint="leave out the user")
        if user is not None and not _NAME.fullmatch(user):
            raise BadInput(f"{user!r} cannot be a user", hint="use at most 64 letters, digits and . _ @ -")
        token = f"rota_{role}_{secrets.token_urlsafe(32)}"
        record = TokenRecord(
            name=name,
            role=role,
            sha256=_digest(token),
            created_at=now,
            expires_at=expires_at,
            host=host,
            user=user,
        )
        self._save([*self._records, record])
        return token

    def verify(self, token: str, now: float) -> TokenRecord | None:
        """The record of a token that is valid now. Takes the same time whichever token fits, or none."""
        digest = _digest(token)
        found = None
        for record in self._records:
            if hmac.compare_digest(record.sha256, digest):
                found = record
        if found is not None and found.expires_at is not None and not now < found.expires_at:
            return None
        return found

    def list(self) -> tuple[TokenRecord, ...]:
        """All records, expired ones too, in order of their making."""
        return tuple(self._records)

    def remove(self, name: str) -> TokenRecord:
        """Revoke a token. Raises `NotFound`. The caller closes the connections that use it."""
        for record in self._records:
            if record.name == name:
                self._save([other for other in self._records if other is not record])
                return record
        raise NotFound(f"there is no token named {name!r}", hint="see: rota manager token list")

    def _save(self, records: _Records) -> None:
        private_files.write(
            self._path, msgspec.json.format(msgspec.json.encode(_File(_VERSION, records)), indent=1)
        )
        self._records = records


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


# ------------------------------------------------------------------ tokens in files

#: The tokens that a deployment makes for its owner: name, role and file.
_OWN: Final = ((ADMIN, "admin.token"), (RUNNER, "runner.token"), (GATEWAY, "gateway.token"))


def open_home(directory: Path, *, now: float) -> TokenBook:
    """The book of a deployment (`$ROTA_HOME/tokens`), with the owner's admin and runner tokens made.

    A plain token file that is missing or no longer fits gets a new token under the same name.
    """
    book = TokenBook.open(directory / "tokens.json")
    for role, file in _OWN:
        name, path = f"own-{role}", directory / file
        try:
            record = book.verify(private_files.read(path).decode("utf-8", "replace").strip(), now)
        except FileNotFoundError:
            record = None
        if record is None or record.role != role:
            if any(old.name == name for old in book.list()):
                book.remove(name)
            private_files.write(path, f"{book.create(name, role, now=now)}\n".encode())
    return book


def read_token(path: Path) -> str:
    """The token in a file that only its owner may read."""
    try:
        lines = private_files.read(path).decode("ascii").split()
    except FileNotFoundError:
        raise Denied(f"there is no token in {path}", hint="ask for one: rota manager token add") from None
    except UnicodeDecodeError:
        lines = []
    if len(lines) != 1 or not lines[0].startswith("rota_"):
        raise Denied(f"{path} does not hold a token", hint="it must hold one line: rota_ROLE_…")
    return lines[0]
