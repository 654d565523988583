"""The tree of a property expression, and its canonical text.

Trees are immutable and compare by meaning: columns of the user's text are kept for messages and ignored by `==`.
`plan.language.expression` checks and evaluates them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal

Kind = Literal["text", "integer", "yesno"]
Value = str | int | bool

YES: Final = frozenset({"yes", "true"})
NO: Final = frozenset({"no", "false"})
INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")


def kind_of(value: Value) -> Kind:
    if isinstance(value, bool):
        return "yesno"
    return "integer" if isinstance(value, int) else "text"


@dataclass(frozen=True, slots=True)
class Property:
    """A resource's value of this property."""

    name: str
    column: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Constant:
    """A value as it was written."""

    kind: Kind  #: part of the comparison, because 1 == True
    value: Value
    column: int = field(default=0, compare=False)

    def read_as(self, kind: Kind) -> Value | None:
        """The value converted to this kind: `'64'` is also a number, `'YES'` a yes. None: it cannot be."""
        if self.kind == kind:
            return self.value
        if isinstance(self.value, str):
            if kind == "integer" and INTEGER.fullmatch(self.value):
                return int(self.value)
            if kind == "yesno":
                word = self.value.lower()
                return True if word in YES else False if word in NO else None
        return None


@dataclass(frozen=True, slots=True)
class Comparison:
    """`property operator operand`; the operator is one of = != < <= > >= like, not like."""

    left: Property
    operator: str
    right: Constant | Property
    column: int = field(default=0, compare=False)  #: of the operator


@dataclass(frozen=True)
class Membership:
    """`property in (…)`, or not in."""

    left: Property
    choices: tuple[Constant, ...]
    inside: bool = True

    @cached_property
    def by_kind(self) -> Mapping[Kind, frozenset[Value]]:
        """The choices as sets by kind: a long list costs one lookup per resource."""
        kinds: tuple[Kind, ...] = ("text", "integer", "yesno")
        return {
            kind: frozenset(value for choice in self.choices if (value := choice.read_as(kind)) is not None)
            for kind in kinds
        }


@dataclass(frozen=True, slots=True)
class Presence:
    """`property is not null`: a resource has some value under this name; or `is null`: it lacks one."""

    left: Property
    present: bool = True


@dataclass(frozen=True, slots=True)
class Range:
    """`property between low and high`, both included, or not between."""

    left: Property
    low: Constant | Property
    high: Constant | Property
    inside: bool = True
    column: int = field(default=0, compare=False)  #: of the word `between`


@dataclass(frozen=True, slots=True)
class Negation:
    part: Expression


@dataclass(frozen=True, slots=True)
class Both:
    """Two or more parts joined by `and`; no part is itself a `Both`."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """Two or more parts joined by `or`; no part is itself an `Either`."""

    parts: tuple[Expression, ...]


Expression = Comparison | Membership | Presence | Range | Negation | Both | Either


def text(expression: Expression) -> str:
    """The canonical text: equal trees have equal texts, and parsing it returns the tree."""
    match expression:
        case Comparison(left, operator, right):
            between = f" {operator} " if operator.endswith("like") else operator
            return f"{left.name}{between}{_operand(right)}"
        case Membership(left, choices, inside):
            return f"{left.name} {'in' if inside else 'not in'} ({', '.join(map(_operand, choices))})"
        case Presence(left, present):
            return f"{left.name} is {'not null' if present else 'null'}"
        case Range(left, low, high, inside):
            return f"{left.name} {'' if inside else 'not '}between {_operand(low)} and {_operand(high)}"
        case Negation(part):
            return f"not {_enclosed(part, Both, Either)}"
        case Both(parts):
            return " and ".join(_enclosed(part, Either) for part in parts)
        case Either(parts):
            return " or ".join(map(text, parts))


def _enclosed(part: Expression, *loose: type) -> str:
    """In parentheses if it binds less tightly than its context."""
    return f"({text(part)})" if isinstance(part, loose) else text(part)


def _operand(operand: Constant | Property) -> str:
    if isinstance(operand, Property):
        return operand.name
    if isinstance(operand.value, bool):
        return "yes" if operand.value else "no"
    if isinstance(operand.value, int):
        return str(operand.value)
    # Choose the quote that is doubled less often, to bound the length.
    quote = '"' if operand.value.count("'") > operand.value.count('"') else "'"
    return quote + operand.value.replace(quote, quote + quote) + quote
