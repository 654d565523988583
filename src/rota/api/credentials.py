"""Who asks: a token in a header, or a browser with a session cookie and a token against forged requests."""

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
#: Tokens of runners and of the gateway itself are for other doors.
_TOKEN: Final = re.compile(r"rota_(user|admin)_[A-Za-z0-9_-]{8,128}")
#: A session is good in its cookie only, which no script can read; and nothing else is good there.
_SESSION: Final = re.compile(r"rota_session_[A-Za-z0-9_-]{8,128}")


class Credential(Struct, frozen=True):
    """A token, and whether the browser sent it by itself."""

    token: str
    by_cookie: bool = False


class Forgery:
    """Knows for each session the token that only its own page can send.

    It follows from a secret that outlives this process, so that open pages survive its restart.
    """

    def __init__(self, secret: str) -> None:
        self._secret = hashlib.sha256(b"csrf " + secret.encode()).digest()

    def token(self, session: str) -> str:
        return hmac.new(self._secret, session.encode(), hashlib.sha256).hexdigest()

    def check(self, credential: Credential, method: str, sent: str) -> None:
        """Raises `Denied` for a change that a browser may have been tricked into."""
        if not credential.by_cookie or method in _SAFE:
            return
        if not hmac.compare_digest(self.token(credential.token).encode(), sent.encode("utf-8", "replace")):
            raise Denied("the request lacks the session's CSRF token", hint="reload the page", code="csrf")


def cookie_name(port: int) -> str:
    """Browsers send cookies to all ports of a host: two deployments on one must not overwrite each other's."""
    return f"__Host-rota-{port}"


def find(headers: dict[str, str], cookie: str) -> Credential:
    """The credential of a request. Raises `Unauthorized`. A header wins: only scripts send one."""
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
    """The value of a Set-Cookie header; no age takes the cookie away."""
    return f"{cookie}={token}; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age={max_age_s}"
