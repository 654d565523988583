"""A document as a tree whose nodes know their places: what was written, before anybody says what it means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Final, NoReturn

from msgspec import Struct

from rota.core.fields.values import shown
from rota.errors import BadDocument

#: From the top of a document.
Path = tuple[str | int, ...]
#: Line and column, from 1.
Place = tuple[int, int]
NOWHERE: Final[Place] = (0, 0)
#: More than any value of a document needs.
MAX_DEPTH: Final = 12


class Form(Struct, frozen=True):
    """What a kind of document is called, and which errors it has."""

    error: type[BadDocument]
    what: str  #: `a pipeline`
    many: str  #: `several pipelines`
    parts: str  #: `stages and elements`


class Node(Struct, frozen=True, kw_only=True):
    """What is at one place."""

    place: Place = NOWHERE

    @property
    def kind(self) -> str:
        """What it is, in words."""
        return "nothing"


class Scalar(Node, frozen=True, kw_only=True):
    """A text, number, true, false or null, with the text as written."""

    value: str | int | float | bool | None
    text: str

    @property
    def kind(self) -> str:
        match self.value:
            case None:
                return "nothing"
            case bool():
                return "true or false"
            case str():
                return "a text"
        return "a number"


class List(Node, frozen=True, kw_only=True):
    items: tuple[Node, ...] = ()

    @property
    def kind(self) -> str:
        return "a list"


class Object(Node, frozen=True, kw_only=True):
    """Keys, with the places where they are written, and their values."""

    items: dict[str, Node] = {}
    places: dict[str, Place] = {}

    @property
    def kind(self) -> str:
        return "an object"


def node_of(value: object, path: Path, form: Form) -> Node:
    """The node of a value given in Python. Raises the error of the form."""
    if len(path) > MAX_DEPTH:
        raise form.error("is nested too deeply", path=path, hint=f"{form.what} is a few levels deep")
    match value:
        case None | bool() | int() | float() | str():
            return Scalar(value=value, text=value if isinstance(value, str) else _written(value))
        case Mapping():
            for key in value:
                if not isinstance(key, str):
                    raise form.error(f"{key!r:.40} is not a text", path=path, hint="keys are texts")
            return Object(items={key: node_of(each, (*path, key), form) for key, each in value.items()})
        case Sequence() if not isinstance(value, bytes | bytearray):
            return List(items=tuple(node_of(each, (*path, at), form) for at, each in enumerate(value)))
    text = f"must be a text, a number, true, false, a list or an object, not {type(value).__name__}"
    raise form.error(text, path=path, hint="convert it")


def _written(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
    return str(value)


def plain(node: Node) -> object:
    """The value as in JSON."""
    match node:
        case Scalar():
            return node.value
        case List():
            return [plain(each) for each in node.items]
        case Object():
            return {key: plain(each) for key, each in node.items.items()}
    raise AssertionError(node)


def place_of(root: Node, path: Path) -> Place:
    """Where the path leads: to a key or to a member of a list; where it ends, as far as it goes."""
    place, node = root.place, root
    for step in path:
        if isinstance(node, Object) and isinstance(step, str) and step in node.items:
            place, node = node.places[step], node.items[step]
        elif isinstance(node, List) and isinstance(step, int):
            node = node.items[step]
            place = node.place
        else:
            break
    return place


# ------------------------------------------------------------------ readers of values, which know their path


class At(Struct, frozen=True):
    """A node with the way to it, and what the message calls the thing that it belongs to."""

    node: Node
    path: Path
    form: Form
    of: str = ""

    def refuse(self, text: str, *, hint: str) -> NoReturn:
        raise self.form.error(text, path=self.path, hint=hint, of=self.of)

    def fields(self, known: Sequence[str]) -> dict[str, At]:
        """The values of an object that has only these keys."""
        found = self.members("an object")
        for key, value in found.items():
            if key not in known:
                close = get_close_matches(key[:60], known, n=1)
                hint = f"did you mean '{close[0]}'?" if close else f"the fields are {', '.join(known)}"
                value.refuse("there is no such field", hint=hint)
        return found

    def members(self, expected: str) -> dict[str, At]:
        """The values of an object."""
        if not isinstance(self.node, Object):
            self.refuse(f"must be {expected}, not {self.node.kind}", hint="write it like {a: 1}")
        path, form, of = self.path, self.form, self.of
        return {key: At(node, (*path, key), form, of) for key, node in self.node.items.items()}

    def items(self, hint: str) -> list[At]:
        """The members of a list."""
        if not isinstance(self.node, List):
            self.refuse(f"must be a list, not {self.node.kind}", hint=hint)
        return [At(node, (*self.path, at), self.form, self.of) for at, node in enumerate(self.node.items)]

    def at(self, name: str) -> At:
        """Where a field that is missing would be."""
        return At(self.node, (*self.path, name), self.form, self.of)

    def called(self, of: str) -> At:
        """The same, as part of something that has a name."""
        return At(self.node, self.path, self.form, of)

    def string(self, hint: str = "put it in quotes") -> str:
        if not isinstance(self.node, Scalar) or not isinstance(self.node.value, str):
            self.refuse(f"must be a text, not {self.node.kind}", hint=hint)
        return self.node.value

    def word(self, hint: str = "write one word or number") -> str:
        """A text, or anything else as it was written: a version 1.10 stays what it is."""
        if not isinstance(self.node, Scalar) or self.node.value is None:
            hint = "write '' for an empty text" if isinstance(self.node, Scalar) else hint
            self.refuse(f"must be a text, not {self.node.kind}", hint=hint)
        return self.node.text

    def flag(self) -> bool:
        if not isinstance(self.node, Scalar) or not isinstance(self.node.value, bool):
            self.refuse(f"must be true or false, not {self.node.kind}", hint="write true or false")
        return self.node.value

    def number(self) -> int:
        value = self.node.value if isinstance(self.node, Scalar) else None
        if isinstance(value, bool) or not isinstance(value, int):
            what = f"'{shown(self.node.text)}'" if isinstance(self.node, Scalar) else self.node.kind
            self.refuse(f"must be a whole number, not {what}", hint="write it like 4")
        return value
