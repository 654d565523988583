"""Static files of the dashboard: read once, sent compressed. Names under `/assets` contain a content hash."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Final

from starlette.responses import Response

from rota.api.problems import NotAllowed
from rota.errors import NotFound

STATIC: Final = Path(__file__).with_name("static")
_KINDS: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
}
_YEAR: Final = "public, max-age=31536000, immutable"


class Pages:
    """The files of one directory; any other path gets `index.html`, which routes in the browser."""

    def __init__(self, directory: Path = STATIC) -> None:
        self._files: dict[str, tuple[bytes, bytes, str]] = {}
        for path in sorted(directory.rglob("*")) if directory.is_dir() else ():
            if path.is_file() and path.suffix in _KINDS:
                data = path.read_bytes()
                name = "/" + path.relative_to(directory).as_posix()
                self._files[name] = (data, gzip.compress(data, 6, mtime=0), _KINDS[path.suffix])

    def find(self, method: str, path: str, headers: dict[str, str]) -> Response:
        """The file of a path. Raises `NotFound`."""
        if method not in ("GET", "HEAD"):
            raise NotAllowed(f"{method[:20]} is not possible here", allowed=["GET", "HEAD"])
        name = path if path in self._files else "/index.html"
        # A missing file is not the page; but in `/machines/node1.example.com` the dot is part of a name.
        if name != path and (path.startswith("/assets/") or "." in path.partition("/")[2].partition("/")[0]):
            raise NotFound("there is no such file", hint="open the page at /")
        if name not in self._files:
            raise NotFound("the dashboard was not built into this installation", hint="build it with 'make web'")
        data, packed, kind = self._files[name]
        found = {"vary": "accept-encoding", "cache-control": _YEAR if path.startswith("/assets/") else "no-cache"}
        if "gzip" in headers.get("accept-encoding", "") and len(packed) < len(data):
            data, found["content-encoding"] = packed, "gzip"
        return Response(data, headers=found, media_type=kind)
