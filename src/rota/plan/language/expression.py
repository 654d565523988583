"""Property expressions such as `gpu = yes and (mem >= 64 or switch in ('sw1', 'sw2'))`: check and evaluate.

Parsing needs only syntax, checking the kinds of the properties, evaluating the values of one resource. A property
that a resource lacks satisfies no comparison, so that a mistake never matches more; `is null` tests for it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from rota.errors import BadInput
from rota.plan.language.expression_parser import parse
from rota.plan.language.expression_tree import (
    Both,
    Comparison,
    Constant,
    Either,
    Expression,
    Kind,
    Membership,
    Negation,
    Presence,
    Property,
    Range,
    Value,
    kind_of,
    text,
)
from rota.plan.language.reading import shown, suggestion

__all__ = ["Expression", "Kind", "Value", "check", "conjoined", "matches", "names", "parse", "text"]

_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def names(expression: Expression) -> frozenset[str]:
    """The properties that it names."""
    match expression:
        case Comparison(left, _, Property(other)):
            return frozenset({left.name, other})
        case Range(left, low, high):
            return frozenset({left.name, *(each.name for each in (low, high) if isinstance(each, Property))})
        case Comparison(left) | Membership(left) | Presence(left):
            return frozenset({left.name})
        case Negation(part):
            return names(part)
        case Both(parts) | Either(parts):
            return frozenset().union(*map(names, parts))


def conjoined(one: str, other: str) -> str:
    """Both expressions joined by `and`, each part once; an empty text is no condition. Raises `BadInput`."""
    parts: dict[Expression, None] = {}
    for written in (one, other):
        if written:
            tree = parse(written)
            parts.update(dict.fromkeys(tree.parts if isinstance(tree, Both) else (tree,)))
    if not parts:
        return ""
    return text(next(iter(parts)) if len(parts) == 1 else Both(tuple(parts)))


def check(expression: Expression, kinds: Mapping[str, Kind]) -> None:
    """Raise `BadInput` for unknown properties, and for comparisons of different kinds."""
    match expression:
        case Comparison(left, sign, right, column):
            kind = _kind(left, kinds)
            if sign.endswith("like") and kind != "text":
                raise BadInput(
                    f"{shown(left.name)} is {_of(kind)}, 'like' at column {column} is for text",
                    hint=_fix(left, kind),
                )
            if kind == "yesno" and sign not in ("=", "!="):
                raise BadInput(
                    f"{shown(left.name)} is {_of(kind)}, '{sign}' at column {column} is not for those",
                    hint=_fix(left, kind),
                )
            _check_operand(left, kind, right, kinds)
        case Membership(left, choices):
            kind = _kind(left, kinds)
            for choice in choices:
                _check_constant(left, kind, choice)
        case Presence(left):
            _kind(left, kinds)
        case Range(left, low, high, _, column):
            kind = _kind(left, kinds)
            if kind == "yesno":
                raise BadInput(
                    f"{shown(left.name)} is {_of(kind)}, 'between' at column {column} is not for those",
                    hint=_fix(left, kind),
                )
            for bound in (low, high):
                _check_operand(left, kind, bound, kinds)
        case Negation(part):
            check(part, kinds)
        case Both(parts) | Either(parts):
            for part in parts:
                check(part, kinds)


def matches(expression: Expression, values: Mapping[str, Value]) -> bool:
    """Does a resource with these values satisfy the expression?"""
    match expression:
        case Comparison(left, sign, right):
            value = values.get(left.name)
            return value is not None and _compare(value, sign, right, values)
        case Both(parts):
            return all(matches(part, values) for part in parts)
        case Either(parts):
            return any(matches(part, values) for part in parts)
        case Negation(part):
            return not matches(part, values)
        case Membership(left, _, inside):
            value = values.get(left.name)
            return value is not None and (value in expression.by_kind[kind_of(value)]) is inside
        case Presence(left, present):
            return (values.get(left.name) is not None) is present
        case Range(left, low, high, inside):
            value = values.get(left.name)
            if value is None:
                return False
            if inside:
                return _compare(value, ">=", low, values) and _compare(value, "<=", high, values)
            # One crossed bound is enough, even if the other is unknown.
            return _compare(value, "<", low, values) or _compare(value, ">", high, values)


def _compare(value: Value, sign: str, right: Constant | Property, values: Mapping[str, Value]) -> bool:
    kind = kind_of(value)
    other = values.get(right.name) if isinstance(right, Property) else right.read_as(kind)
    if other is None or kind_of(other) != kind:
        return False
    if sign in ("like", "not like"):
        return isinstance(value, str) and isinstance(other, str) and _like(value, other) is (sign == "like")
    if kind == "yesno" and sign not in ("=", "!="):
        return False
    return _COMPARE[sign](value, other)


def _like(value: str, pattern: str) -> bool:
    """`%` is any text, `_` one character. Backtracks to the latest `%` only, so the cost is bounded."""
    at = position = 0
    percent, resume = -1, 0
    while at < len(value):
        if position < len(pattern) and pattern[position] == "%":
            percent, resume = position, at
            position += 1
        elif position < len(pattern) and pattern[position] in ("_", value[at]):
            at += 1
            position += 1
        elif percent >= 0:
            resume += 1
            at, position = resume, percent + 1
        else:
            return False
    return all(rest == "%" for rest in pattern[position:])


# Checking.


def _kind(item: Property, kinds: Mapping[str, Kind], *, bare: bool = False) -> Kind:
    kind = kinds.get(item.name)
    if kind is None:
        hint = suggestion(item.name, kinds, what="properties")
        if item.name in ("node", "nodes") and "host" in kinds:
            hint = "did you mean 'host'?"
        if bare and item.name.lower() == "null":
            hint = "nothing equals null: write it like gpu is null"
        elif bare:
            hint = f"if it is text, quote it: '{item.name}'; {hint}"
        raise BadInput(f"unknown property {shown(item.name)} at column {item.column}", hint=hint)
    return kind


def _check_operand(left: Property, kind: Kind, operand: Constant | Property, kinds: Mapping[str, Kind]) -> None:
    if isinstance(operand, Property):
        _check_pair(left, operand, kinds)
    else:
        _check_constant(left, kind, operand)


def _check_pair(left: Property, right: Property, kinds: Mapping[str, Kind]) -> None:
    kind, other = _kind(left, kinds), _kind(right, kinds, bare=True)
    if kind != other:
        raise BadInput(
            f"{shown(left.name)} is {_of(kind)}, but {shown(right.name)} at column {right.column} is {_of(other)}",
            hint="compare properties of the same kind",
        )


def _check_constant(left: Property, kind: Kind, constant: Constant) -> None:
    if constant.read_as(kind) is not None:
        return
    written = shown(_plain(constant))
    hint = f"quote it: '{_plain(constant)}'" if kind == "text" else _fix(left, kind)
    raise BadInput(
        f"{shown(left.name)} is {_of(kind)}, but {written} at column {constant.column} is not", hint=hint
    )


def _plain(constant: Constant) -> str:
    """The value without quotes."""
    if constant.kind == "yesno":
        return "yes" if constant.value else "no"
    return str(constant.value)


def _of(kind: Kind) -> str:
    return {"text": "text", "integer": "a whole number", "yesno": "yes or no"}[kind]


def _fix(left: Property, kind: Kind) -> str:
    examples = {"text": f"{left.name} = 'word'", "integer": f"{left.name} >= 64", "yesno": f"{left.name} = yes"}
    return f"write it like {examples[kind]}"
