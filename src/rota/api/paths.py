"""Finds the operation of a path. Parts are decoded one by one, so that a name may hold a slash."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote_to_bytes

from rota.api.operations import Operation
from rota.api.problems import NotAllowed
from rota.errors import NotFound

PREFIX: Final = "/api/v1"
#: What answers elsewhere too, where monitoring looks for it.
AT_THE_ROOT: Final = (b"/metrics", b"/healthz")


def is_api(raw: bytes) -> bool:
    """Is this for a program, not the address of a page?"""
    return raw == b"/api" or raw.startswith(b"/api/") or raw in AT_THE_ROOT


class Paths:
    """All operations by the form of their path."""

    def __init__(self, operations: list[Operation]) -> None:
        self._by_length: dict[int, list[tuple[tuple[str, ...], Operation]]] = {}
        for operation in operations:
            form = tuple((PREFIX + operation.path).split("/"))
            self._by_length.setdefault(len(form), []).append((form, operation))
        for forms in self._by_length.values():
            # Of `/jobs/actions` and `/jobs/{id}` the one that says more comes first.
            forms.sort(key=lambda each: [_name(part) is not None for part in each[0]])
        self._longest = max(self._by_length, default=1)

    def find(self, method: str, raw: bytes) -> tuple[Operation, dict[str, str]]:
        """The operation and its parameters in the path. Raises `NotFound` or `NotAllowed`."""
        if raw in AT_THE_ROOT:
            raw = PREFIX.encode() + raw
        # No form has more parts: what follows, slashes and all, can only belong to a name at the end.
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
        """What is at these parts, of which the last one must be a name if so said."""
        found = []
        for form, operation in self._by_length.get(len(parts), ()):
            if named and form[-1] != "{name}":
                continue
            place = _match(form, parts)
            if place is not None:
                found.append((operation, place))
        return found


def _name(part: str) -> str | None:
    """The parameter that stands here, if one does."""
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
