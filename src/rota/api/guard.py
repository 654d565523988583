"""Checks the headers of every request before anything else: Host (DNS rebinding), Origin (cross-site), size.

It also defines the security headers of every response.
"""

from __future__ import annotations

from typing import Final

from rota.api.problems import Ambiguous, Foreign, HeadersTooLarge, Misdirected
from rota.errors import BadInput

_HEADERS_MAX: Final = 32 << 10
#: Headers that may occur only once: two would be interpreted differently by different parsers.
_ONCE: Final = frozenset({"host", "origin", "authorization", "content-type", "x-rota-csrf"})

_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'none'",
    )
)
#: Sent with every response.
HEADERS: Final = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)


class Guard:
    """Knows the host names under which this gateway may be addressed."""

    def __init__(self, hosts: list[str], port: int) -> None:
        names = {"localhost", "127.0.0.1", "[::1]", *(_bracketed(host.lower()) for host in hosts)}
        self._hosts = {f"{name}:{port}" for name in names}
        if port in (80, 443):
            self._hosts |= names

    def check(self, headers: list[tuple[bytes, bytes]], *, page: bool) -> dict[str, str]:
        """The headers by name. Raises if the request is for another host or comes from another site.

        A link from another site to a `page` is harmless; a request of another site to the API is not.
        """
        if sum(len(name) + len(value) for name, value in headers) > _HEADERS_MAX:
            raise HeadersTooLarge("the headers are too large", hint="send fewer cookies")
        found = _by_name(headers)
        if "transfer-encoding" in found and "content-length" in found:
            raise Ambiguous("the request says its length in two ways", hint="leave one of them out")
        host = found.get("host", "").lower()
        if host not in self._hosts:
            raise Misdirected(
                "the request is for another host",
                hint="use the address in 'rota manager status', or add the name to http_names in rota.toml",
            )
        origin = found.get("origin")
        if origin is not None and not self._ours(origin):
            raise Foreign("a page of another site asks", hint="use the dashboard, or a script without Origin")
        if not page and found.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            raise Foreign("a page of another site asks", hint="use the dashboard, or a script")
        return found

    def _ours(self, origin: str) -> bool:
        scheme, _, host = origin.lower().partition("://")
        return scheme in ("http", "https") and host in self._hosts


def _by_name(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in headers:
        key, text = name.decode("latin-1"), value.decode("latin-1")
        if key not in found:
            found[key] = text
        elif key in _ONCE:
            raise BadInput(f"the header '{key}' is given twice")
        else:
            found[key] += f"{';' if key == 'cookie' else ','} {text}"
    return found


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
