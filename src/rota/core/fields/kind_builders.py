"""Builds kinds of values from parsers and bounds, and new kinds from others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from rota.core.fields import values
from rota.core.fields.field import Kind
from rota.errors import BadInput


def same(parse: Callable[[object, bool], Any]) -> Callable[[Any], None]:
    """A check by the parser: it must leave the value as it is."""

    def check(value: Any) -> None:
        if parse(value, False) != value:
            raise BadInput("is not in its usual form", hint="write it as 'rota show --json' does")

    return check


def unless_empty(parse: Callable[[object, bool], Any]) -> Callable[[str], object]:
    """A check by the parser of a text that may be empty: no value."""
    return lambda value: value and parse(value, False)


def within(low: float, high: float, *, above: bool = False) -> Callable[[Any], None]:
    """A check of bounds, which refuses NaN; `above`: the lower one is too low."""

    def check(value: float) -> None:
        if not low <= value <= high or (above and value == low):
            raise BadInput("out of range", hint=f"give {'more than' if above else 'from'} {low:g} to {high:g}")

    return check


def optional(kind: Kind, *, word: str = "") -> Kind:
    """The same kind, also accepting null in JSON, or this word: no value."""
    parse, check, shown, text = kind.parse, kind.check, kind.shown, kind.text

    def parse_or_none(value: object, *context: Any) -> Any:
        return None if value is None or (word and value == word) else parse(value, *context)

    return msgspec.structs.replace(
        kind,
        type=f"{kind.type} | None",
        parse=parse_or_none,
        check=lambda value: None if value is None else check(value),
        view=f"{kind.view} | None" if kind.view else "",
        shown=None if shown is None else lambda value: None if value is None else shown(value),
        text=lambda value: "" if value is None else text(value),
        none=word,
    )


def texts(parse: Callable[[object, bool], Any], check: Callable[[Any], object], doc: str, metavar: str) -> Kind:
    """Several texts."""
    return Kind(
        type="tuple[str, ...]", doc=doc, parse=parse, check=check, metavar=metavar, view="list[str]", shown=list,
        text=", ".join,
    )  # fmt: skip


def count(low: int, high: int) -> Kind:
    """A whole number from low to high."""
    doc = f"whole number from {low} to {high:,}"
    return Kind(type="int", doc=doc, parse=values.count(low, high), check=within(low, high), metavar="N")


def choice(*words: str) -> Kind:
    """One of these words, or none of them."""
    parse = values.choice(*words)
    known = [f"`{word}`" for word in words]
    return Kind(
        type="str",
        doc=f"{', '.join(known[:-1])} or {known[-1]}",
        parse=parse,
        check=unless_empty(parse),
        metavar="|".join(words),
    )
