"""Credentials of a request: a bearer token, or a session cookie with a CSRF token."""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import Final

from msgspec import Struct

from rota.api.problems import Unauthorized
from rota.errors import Denied

CSRF_HEADER: Final = "x-rota-csrf"
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
#: Tokens of runners and of the gateway are not accepted over HTTP.
_TOKEN: Final = re.compile(r"rota_(user|admin)_[A-Za-z0-9_-]{8,128}")
#: A session token is valid only in its cookie, which scripts cannot read; no other token is valid there.
_SESSION: Final = re.compile(r"rota_session_[A-Za-z0-9_-]{8,128}")


class Credential(Struct, frozen=True):
    """A token, and whether it came in a cookie, which browsers send on their own."""

    token: str
    by_cookie: bool = False


class Forgery:
    """Derives and checks the CSRF token of each session.

    Tokens derive from a secret that outlives this process, so open pages survive a restart.
    """

    def __init__(self, secret: str) -> None:
        self._secret = hashlib.sha256(b"csrf " + secret.encode()).digest()

    def token(self, session: str) -> str:
        return hmac.new(self._secret, session.encode(), hashlib.sha256).hexdigest()

    def check(self, credential: Credential, method: str, sent: str) -> None:
        """Raises `Denied` for a change by cookie without a valid CSRF token."""
        if not credential.by_cookie or method in _SAFE:
            return
        if not hmac.compare_digest(self.token(credential.token).encode(), sent.encode("utf-8", "replace")):
            raise Denied("the request lacks the session's CSRF token", hint="reload the page", code="csrf")


def cookie_name(port: int) -> str:
    """The name contains the port: browsers send cookies to all ports of a host, and deployments must not overwrite
    each other's."""
    return f"__Host-rota-{port}"


def find(headers: dict[str, str], cookie: str) -> Credential:
    """The credential of a request. The header wins over the cookie. Raises `Unauthorized`."""
    if "authorization" in headers:
        scheme, _, token = headers["authorization"].partition(" ")
        if scheme.lower() != "bearer" or not _TOKEN.fullmatch(token.strip()):
            raise Unauthorized(
                "the Authorization header holds no token for this", hint="send: Authorization: Bearer rota_…"
            )
        return Credential(token.strip())
    for part in headers.get("cookie", "").split(";"):
        name, _, value = part.strip().partition("=")
        if name == cookie and _SESSION.fullmatch(value):
            return Credential(value, by_cookie=True)
    raise Unauthorized(
        "nobody has logged in", hint="run 'rota manager ui', or send a token: Authorization: Bearer rota_…"
    )


def set_cookie(cookie: str, token: str, *, max_age_s: int) -> str:
    """The value of a Set-Cookie header; an age of 0 deletes the cookie."""
    return f"{cookie}={token}; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age={max_age_s}"
