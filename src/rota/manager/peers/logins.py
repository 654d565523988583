"""One-time codes by which a browser logs in, and the sessions that they become.

Both are only in memory and end with the manager. While no manager listens, another program may take its port, and
browsers would send their cookies there. So these must be worthless to the next manager.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from rota.errors import Denied

#: The role in the `Hello` of a session; the manager knows its real role.
SESSION: Final = "session"
#: How names of sessions begin, and of no other token.
PREFIX: Final = "ui-"
_CODE_S: Final = 60.0
#: Per creator, so that one creator cannot evict the sessions of another.
_MOST_CODES: Final = 32
_MOST_SESSIONS: Final = 32


class SessionCreator(Struct, frozen=True):
    """The client that asked for a link: the name of its token, or a local user without one."""

    token: str
    user: str
    until: float | None = None  #: when that token expires

    @property
    def key(self) -> tuple[str, str]:
        return self.token, self.user

    @property
    def name(self) -> str:
        return self.token or self.user

    def is_owner(self, owner: str) -> bool:
        """Is it the owner of the deployment? Only the owner needs no token."""
        return not self.token or self.user == owner


class _Code(Struct, frozen=True):
    code: str
    role: str
    creator: SessionCreator
    until: float


class BrowserSession(Struct, frozen=True):
    """A browser that is logged in."""

    name: str
    role: str
    creator: SessionCreator
    created_at: float
    expires_at: float


class Logins:
    """Codes are valid for a minute and for one use. A session never outlives the token of its creator."""

    def __init__(self, *, session_s: float, clock: Callable[[], float], hang_up: Callable[[str], None]) -> None:
        self._hang_up = hang_up  #: ends the connections that were opened with a token or by a session
        self._session_s = session_s
        self._clock = clock
        self._codes: list[_Code] = []
        self._sessions: dict[bytes, BrowserSession] = {}  #: by the hash of their tokens, the oldest first

    def code(self, role: str, creator: SessionCreator) -> str:
        """A new code for a session with this role."""
        now = self._clock()
        self._codes = [each for each in self._codes if each.until > now]
        mine = [each for each in self._codes if each.creator.key == creator.key]
        for each in mine[: max(0, len(mine) - _MOST_CODES + 1)]:
            self._codes.remove(each)
        made = _Code(secrets.token_urlsafe(32), role, creator, _sooner(now + _CODE_S, creator.until))
        self._codes.append(made)
        return made.code

    def redeem(self, code: str) -> tuple[str, BrowserSession]:
        """The token of the session that a code becomes, and the session. Raises `Denied`."""
        now = self._clock()
        found = None
        for each in self._codes:
            if hmac.compare_digest(each.code.encode(), code.encode("utf-8", "replace")) and each.until > now:
                found = each
        if found is None:
            raise Denied("this link is not valid any more", hint="open the page again with 'rota manager ui'")
        self._codes.remove(found)
        mine = [each for each in self.list() if each.creator.key == found.creator.key]
        for old in mine[: max(0, len(mine) - _MOST_SESSIONS + 1)]:
            self.end(old.name)
        token = f"rota_{SESSION}_{secrets.token_urlsafe(32)}"
        until = _sooner(now + self._session_s, found.creator.until)
        made = BrowserSession(f"{PREFIX}{secrets.token_hex(4)}", found.role, found.creator, now, until)
        self._sessions[_digest(token)] = made
        return token, made

    def verify(self, token: str) -> BrowserSession | None:
        """The session with this token, unless it has expired."""
        found = self._sessions.get(_digest(token))
        return found if found is not None and self._clock() < found.expires_at else None

    def list(self) -> tuple[BrowserSession, ...]:
        """Sessions that have not expired, the oldest first."""
        now = self._clock()
        for each in [each for each in self._sessions.values() if each.expires_at <= now]:
            self.end(each.name)
        return tuple(self._sessions.values())

    def end(self, name: str) -> bool:
        """End a session and its connections. Is there one with this name?"""
        for digest, each in self._sessions.items():
            if each.name == name:
                del self._sessions[digest]
                self._hang_up(name)
                return True
        return False

    def removed(self, token: str) -> None:
        """A token was removed: so are the codes and sessions made with it."""
        self._codes = [each for each in self._codes if each.creator.token != token]
        for session in [each for each in self._sessions.values() if each.creator.token == token]:
            self.end(session.name)


def _sooner(one: float, other: float | None) -> float:
    return one if other is None else min(one, other)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
