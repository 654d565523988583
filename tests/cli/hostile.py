"""Views in which every text is hostile, and a client that answers every question with them."""

from __future__ import annotations

import types
import typing
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import msgspec

from rota.client.blocking import Client
from rota.core.states import State
from rota.errors import BadInput

#: Texts that are read as something else, so that a hostile one would never come so far.
_READ = {"resources": "1-4", "ids": "1-4", "next": "17", "version": "1", "state": "running"}
_SITE = {
    "property": {"type": "text", "values": []},
    "queue": {"priority": 3},
    "calendar": {"set": "s", "from": "08:00", "to": "18:00"},
    "quota": {"rule": "*,*,*,/", "limits": {}},
}


class Hostile:
    """Makes values of any type from one text."""

    def __init__(self, text: str, *, states: bool) -> None:
        self.text = text
        self.states = states  #: the names of states are hostile, too

    def of(self, kind: Any, name: str = "") -> Any:
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if origin in (types.UnionType, typing.Union):
            return self.of(next(each for each in arguments if each is not types.NoneType), name)
        if origin in (list, tuple):
            some = [each for each in arguments if each is not Ellipsis] or [str]
            if origin is tuple and len(some) > 1:
                return tuple(self.of(each, name) for each in some)
            return origin([self.of(some[0], name)] * 2)
        if origin is dict:
            return {self.of(arguments[0], "key"): self.of(arguments[1], name)}
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return self.struct(kind)
        if isinstance(kind, type) and issubclass(kind, Enum):
            return next(iter(kind))
        return self.simple(kind, name)

    def simple(self, kind: Any, name: str) -> Any:
        if kind is str or kind is Any:
            if name in _READ and not (name == "state" and self.states):
                return _READ[name]
            return self.text
        made = {int: 3, float: 3.0, bool: True, bytes: b"", datetime: datetime(2026, 1, 1, tzinfo=UTC)}
        return made.get(kind)

    def struct(self, kind: type[msgspec.Struct]) -> Any:
        hints = typing.get_type_hints(kind)
        made = kind(**{name: self.of(hints[name], name) for name in kind.__struct_fields__})
        if kind.__name__ == "SiteView":
            records = [(kind, self.text, msgspec.json.encode(value).decode()) for kind, value in _SITE.items()]
            made = msgspec.structs.replace(made, records=records)
        if kind.__name__ in ("NodeView", "NodeDetailView", "LimitView"):
            part = {self.text: {"used": 1, "capacity": 2}}
            made = msgspec.structs.replace(made, **{"hosts" if kind.__name__ == "LimitView" else "limits": part})
        if kind.__name__ == "StatusView" and not self.states:
            counts = {state.label: 2 for state in State}
            made = msgspec.structs.replace(
                made, counts=counts, groups={self.text: counts, f"{self.text}2": counts}
            )
        return made


class HostileClient:
    """Stands for the connection to a manager that says nothing but hostile things."""

    def __init__(self, made: Hostile) -> None:
        self._made = made

    def __enter__(self) -> HostileClient:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def watch(self, *_: object, **__: object) -> Any:
        raise BadInput(self._made.text, hint=self._made.text)

    def __getattr__(self, name: str) -> Any:
        returned = typing.get_type_hints(getattr(Client, name))["return"]
        return lambda *_, **__: self._made.of(returned)
