"""Reads YAML from the events of the parser: no tag makes an object, nothing recurses."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from typing import Any, Final, NoReturn, TypeVar

from rota.core.fields.values import shown
from rota.documents.tree import MAX_DEPTH, Form, List, Node, Object, Place, Scalar, place_of
from rota.errors import BadDocument, BadInput

T = TypeVar("T")

MAX_BYTES: Final = 128 << 20
#: Nodes that aliases may stand for, all together.
MAX_ALIASED: Final = 5_000_000

_OLD_BREAKS: Final = re.compile("[\x85\u2028\u2029]")
_STRING_TAG: Final = "tag:yaml.org,2002:str"
# Plain scalars mean what the core schema of YAML 1.2 says.
_NULL: Final = re.compile(r"~|null|Null|NULL|")
_TRUE: Final = re.compile(r"true|True|TRUE")
_FALSE: Final = re.compile(r"false|False|FALSE")
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,18}", re.ASCII)
_OTHER_BASE: Final = re.compile(r"0o[0-7]{1,20}|0x[0-9a-fA-F]{1,16}", re.ASCII)
_FLOAT: Final = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", re.ASCII
)


def load(path: str | os.PathLike[str], form: Form, read: Callable[[Node], T]) -> T:
    """What `read` makes of this file. Raises `BadInput`; about what is wrong in it, with line and column."""
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        hint = "give the name of a file that you may read"
        raise BadInput(f"cannot be read: {error.strerror}", hint=hint).at(source=shown(name, 200)) from None
    return from_bytes(data, form, read, source=shown(name, 200))


def from_bytes(data: bytes, form: Form, read: Callable[[Node], T], *, source: str) -> T:
    """What `read` makes of these bytes. Raises `BadInput` as above."""
    root: Node | None = None
    try:
        root = _tree(data, form)
        return read(root)
    except BadInput as error:
        if isinstance(error, BadDocument) and root is not None and not error.line:
            error.line, error.column = place_of(root, error.path)
        raise error.at(source=source) from None


class _Refused(Exception):
    """Something wrong at a place, before anybody knows what kind of document it is."""

    def __init__(self, text: str, place: Place, hint: str) -> None:
        super().__init__(text)
        self.text = text
        self.place = place
        self.hint = hint


def _refuse(text: str, place: Place, *, hint: str) -> NoReturn:
    raise _Refused(text, place, hint)


def _tree(data: bytes, form: Form) -> Node:
    """The one document of these bytes. Raises `BadInput`."""
    if len(data) > MAX_BYTES:
        raise BadInput(f"has more than {MAX_BYTES >> 20} MiB", hint=f"make {form.many} of it")
    try:
        return _parsed(_decoded(data), form)
    except _Refused as refused:
        error = form.error(refused.text, path=(), hint=refused.hint)
        error.line, error.column = refused.place
        raise error from None


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode(errors="replace")) + 1
        _refuse("is not valid UTF-8", (line, column), hint="convert the file to UTF-8")


def _parsed(text: str, form: Form) -> Node:
    # Late: other commands do without it.
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    # The parser in C is far faster, but of YAML 1.1: it refuses texts such as {url: file:///here} and knows
    # more ends of lines. The other one decides.
    if not _OLD_BREAKS.search(text):
        try:
            return _Builder(form).document(YAML(typ="safe").parse(text))
        except YAMLError:
            pass
    try:
        return _Builder(form).document(YAML(typ="safe", pure=True).parse(text))
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        before = text[: getattr(error, "position", 0)]
        place = (before.count("\n") + 1, len(before) - before.rfind("\n"))
        if mark is not None:
            place = (mark.line + 1, mark.column + 1)
        said = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be read"
        _refuse(f"not YAML: {shown(str(said), 200)}", place, hint="check quotes, colons and indentation")


class _Open:
    """A list or an object that has not ended."""

    def __init__(self, place: Place, anchor: str | None, *, is_list: bool) -> None:
        self.place = place
        self.anchor = anchor
        self.is_list = is_list
        self.list: list[Node] = []
        self.items: dict[str, Node] = {}
        self.places: dict[str, Place] = {}
        self.key: str | None = None
        self.size = 1

    def add(self, node: Node, size: int) -> None:
        self.size += size
        if self.is_list:
            self.list.append(node)
        elif self.key is None:
            self.begin(node)
        else:
            self.items[self.key] = node
            self.key = None

    def begin(self, node: Node) -> None:
        """The key of the next value."""
        if not isinstance(node, Scalar):
            _refuse(f"a key must be a text, not {node.kind}", node.place, hint="write it like key: value")
        if node.text in self.items:
            first = self.places[node.text][0]
            text = f"key '{shown(node.text, 80)}' is given twice, first in line {first}"
            _refuse(text, node.place, hint="give it once")
        self.key = node.text
        self.places[node.text] = node.place

    def node(self) -> Node:
        if self.is_list:
            return List(place=self.place, items=tuple(self.list))
        return Object(place=self.place, items=self.items, places=self.places)


class _Builder:
    """Makes nodes of the events of a parser."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.open: list[_Open] = []
        self.root: Node | None = None
        self.anchors: dict[str, tuple[Node, int]] = {}
        self.aliased = 0
        self.documents = 0

    def document(self, events: Iterable[Any]) -> Node:
        """What the events say. Raises `_Refused`, and `YAMLError` as the parser does."""
        handlers = {
            name: getattr(self, f"_on_{name}", None)
            for name in "Scalar Alias MappingStart MappingEnd SequenceStart SequenceEnd DocumentStart".split()
        }
        for event in events:
            handler = handlers.get(type(event).__name__.removesuffix("Event"))
            if handler is not None:
                mark = event.start_mark
                handler(event, (mark.line + 1, mark.column + 1))
        if self.root is None or (isinstance(self.root, Scalar) and self.root.value is None):
            _refuse("is empty", (1, 1), hint=f"{self.form.what} has {self.form.parts}")
        return self.root

    def _on_DocumentStart(self, event: Any, place: Place) -> None:  # noqa: N802
        self.documents += 1
        if self.documents > 1:
            _refuse("a second document begins here", place, hint="make a file of its own of it")

    def _on_Scalar(self, event: Any, place: Place) -> None:  # noqa: N802
        is_text = event.tag == _STRING_TAG or not event.implicit[0]
        if event.tag not in (None, _STRING_TAG):
            _refuse_tag(event, place)
        text = _joined(event.value)
        value = text if is_text else _resolved(text)
        node = Scalar(place=place, value=value, text=text)
        if event.anchor:
            self.anchors[event.anchor] = node, 1
        self._add(node, 1)

    def _on_MappingStart(self, event: Any, place: Place) -> None:  # noqa: N802
        self._begin(event, place, is_list=False)

    def _on_SequenceStart(self, event: Any, place: Place) -> None:  # noqa: N802
        self._begin(event, place, is_list=True)

    def _on_MappingEnd(self, event: Any, place: Place) -> None:  # noqa: N802
        ended = self.open.pop()
        node = ended.node()
        if ended.anchor:
            self.anchors[ended.anchor] = node, ended.size
        self._add(node, ended.size)

    _on_SequenceEnd = _on_MappingEnd  # noqa: N815

    def _on_Alias(self, event: Any, place: Place) -> None:  # noqa: N802
        if event.anchor not in self.anchors:
            _refuse(
                f"there is no anchor '{shown(event.anchor)}' before", place, hint="write &NAME before its value"
            )
        node, size = self.anchors[event.anchor]
        self.aliased += size
        if self.aliased > MAX_ALIASED:
            _refuse("aliases stand for too much", place, hint="write it without aliases")
        self._add(node, size)

    def _begin(self, event: Any, place: Place, *, is_list: bool) -> None:
        if event.tag is not None:
            _refuse_tag(event, place)
        if len(self.open) >= MAX_DEPTH:
            _refuse("is nested too deeply", place, hint=f"{self.form.what} is a few levels deep")
        self.open.append(_Open(place, event.anchor, is_list=is_list))

    def _add(self, node: Node, size: int) -> None:
        if self.open:
            self.open[-1].add(node, size)
        else:
            self.root = node


def _refuse_tag(event: Any, place: Place) -> NoReturn:
    _refuse(f"the tag '{shown(event.tag)}' is not allowed", place, hint="write the value without a tag")


def _joined(text: str) -> str:
    """Join surrogates: JSON may write one character as two escapes."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return text


def _resolved(text: str) -> str | int | float | bool | None:
    """What a text without quotes means."""
    if _NULL.fullmatch(text):
        return None
    if _TRUE.fullmatch(text):
        return True
    if _FALSE.fullmatch(text):
        return False
    if _INTEGER.fullmatch(text):
        return int(text)
    if _OTHER_BASE.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return text
