"""Finds the operation for a path. Segments are decoded one by one, so that a name may contain a slash."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote_to_bytes

from rota.api.operations import Operation
from rota.api.problems import NotAllowed
from rota.errors import NotFound

PREFIX: Final = "/api/v1"
#: Also served at the root, where monitoring expects them.
AT_THE_ROOT: Final = (b"/metrics", b"/healthz")


def is_api(raw: bytes) -> bool:
    """Is this a path of the API, not of a page?"""
    return raw == b"/api" or raw.startswith(b"/api/") or raw in AT_THE_ROOT


class Paths:
    """All operations by the pattern of their path."""

    def __init__(self, operations: list[Operation]) -> None:
        self._by_length: dict[int, list[tuple[tuple[str, ...], Operation]]] = {}
        for operation in operations:
            form = tuple((PREFIX + operation.path).split("/"))
            self._by_length.setdefault(len(form), []).append((form, operation))
        for forms in self._by_length.values():
            # The more specific pattern first: `/jobs/actions` before `/jobs/{id}`.
            forms.sort(key=lambda each: [_name(part) is not None for part in each[0]])
        self._longest = max(self._by_length, default=1)

    def find(self, method: str, raw: bytes) -> tuple[Operation, dict[str, str]]:
        """The operation and its parameters in the path. Raises `NotFound` or `NotAllowed`."""
        if raw in AT_THE_ROOT:
            raw = PREFIX.encode() + raw
        # No pattern has more segments: further slashes can only belong to a name at the end.
        whole = raw.split(b"/", self._longest - 1)
        try:
            parts = [unquote_to_bytes(part).decode() for part in whole]
        except UnicodeDecodeError:
            raise NotFound("this path is not valid UTF-8", hint="see /api/v1/openapi.json") from None
        # A name at the end may have slashes that were not encoded.
        for length in range(len(parts), 1, -1):
            joined = [*parts[: length - 1], "/".join(parts[length - 1 :])]
            if found := self._matching(joined, named=length < len(parts) or b"/" in whole[-1]):
                break
        else:
            found = []
        for operation, place in found:
            if operation.method == method or (operation.method == "GET" and method == "HEAD"):
                return operation, place
        if found:
            methods = {operation.method for operation, _place in found}
            allowed = sorted(methods | {"HEAD"}) if "GET" in methods else sorted(methods)
            raise NotAllowed(f"{method[:20]} is not possible here", allowed=allowed)
        raise NotFound("there is nothing at this path", hint=f"see {PREFIX}/openapi.json")

    def _matching(self, parts: list[str], *, named: bool) -> list[tuple[Operation, dict[str, str]]]:
        """The operations that match these segments; `named`: the last one must be a name."""
        found = []
        for form, operation in self._by_length.get(len(parts), ()):
            if named and form[-1] != "{name}":
                continue
            place = _match(form, parts)
            if place is not None:
                found.append((operation, place))
        return found


def _name(part: str) -> str | None:
    """The name of the parameter, if this segment is one."""
    return part[1:-1] if part.startswith("{") else None


def _match(form: tuple[str, ...], parts: list[str]) -> dict[str, str] | None:
    place: dict[str, str] = {}
    for wanted, part in zip(form, parts, strict=True):
        name = _name(wanted)
        if name is not None:
            place[name] = part
        elif wanted != part:
            return None
    return place
