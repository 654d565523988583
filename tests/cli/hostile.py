"""Views in which every text is hostile, and a client that answers every question with them."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import types
import typing
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import msgspec

from rota.client.blocking import Client
from rota.core.states import State
from rota.errors import BadInput
from rota.wire.sums import NodeDetailView, NodeView
from rota.wire.views import LimitView, SiteView, StatusView

#: Texts that are read as something else, so that a hostile one would never come so far.
_READ = {"resources": "1-4", "ids": "1-4", "next": "17", "version": "1", "state": "running"}
_SITE = {
    "property": {"type": "text", "values": []},
    "queue": {"priority": 3},
    "calendar": {"set": "s", "from": "08:00", "to": "18:00"},
    "quota": {"rule": "*,*,*,/", "limits": {}},
}


def hints_of(thing: Any) -> dict[str, Any]:
    """The types of a class or function, also those that its module imports for the type checker alone."""
    return typing.get_type_hints(thing, localns=_for_checkers(thing.__module__))


@functools.cache
def _for_checkers(module: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for node in ast.walk(ast.parse(inspect.getsource(sys.modules[module]))):
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            imports = [each for each in node.body if isinstance(each, ast.Import | ast.ImportFrom)]
            exec(compile(ast.Module(imports, []), module, "exec"), found)
    return found


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
        hints = hints_of(kind)
        made = kind(**{name: self.of(hints[name], name) for name in kind.__struct_fields__})
        if kind is SiteView:
            records = [(kind, self.text, msgspec.json.encode(value).decode()) for kind, value in _SITE.items()]
            made = msgspec.structs.replace(made, records=records)
        if kind in (NodeView, NodeDetailView, LimitView):
            part = {self.text: {"used": 1, "capacity": 2}}
            made = msgspec.structs.replace(made, **{"hosts" if kind is LimitView else "limits": part})
        if kind is StatusView and not self.states:
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
        returned = hints_of(getattr(Client, name))["return"]
        return lambda *_, **__: self._made.of(returned)
