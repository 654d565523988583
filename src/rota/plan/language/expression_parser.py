"""Parses the text of a property expression into a tree. Syntax only: properties are not looked up.

The time is linear in the length of the text, and nesting is bounded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from rota.errors import BadInput
from rota.plan.language.expression_tree import (
    INTEGER,
    NO,
    YES,
    Both,
    Comparison,
    Constant,
    Either,
    Expression,
    Membership,
    Negation,
    Presence,
    Property,
    Range,
    Value,
    kind_of,
)
from rota.plan.language.reading import (
    BLANKS,
    LONGEST_CANONICAL,
    NAME,
    RESERVED,
    end_of_text,
    found,
    not_closed,
    require_readable,
    shown,
)

#: Nested parentheses and `not`.
DEEPEST: Final = 50
#: Bounded, because an expression is evaluated for every resource of a site.
MOST_COMPARISONS: Final = 1000

_SIGN: Final = re.compile(r"<=|>=|<>|!=|==|[=<>(),]")
_NUMBER: Final = re.compile(r"[+-]?[0-9][A-Za-z0-9_.]*")
_WORDS: Final = frozenset({"and", "or", "not", "in", "like"})
_SAME: Final = {"==": "=", "<>": "!="}
#: Keywords only in place of an operator; properties may have these names.
_OPERATORS: Final = frozenset({"is", "between"})
#: Operators with sides exchanged: `5 < x` is `x > 5`.
_MIRRORED: Final = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_EXAMPLE: Final = "write it like mem >= 64 or gpu = yes"
_TYPOGRAPHIC: Final = frozenset("‘’“”«»`´")


def parse(text: str, *, column: int = 1) -> Expression:
    """The tree of an expression that begins at `column`. Raises `BadInput`."""
    require_readable(text, what="expression", longest=LONGEST_CANONICAL)
    return _Parser(_tokens(text, column)).whole()


@dataclass(frozen=True, slots=True)
class _Token:
    kind: Literal["sign", "word", "name", "constant", "end"]
    value: Value  #: keywords and signs in canonical spelling
    column: int
    source: str  #: as it was written

    def is_(self, *values: str) -> bool:
        return self.kind in ("sign", "word") and self.value in values

    def is_word(self, *words: str) -> bool:
        """Is it one of these words, which are plain names elsewhere?"""
        return self.kind == "name" and str(self.value).lower() in words

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else shown(self.source)


def _tokens(text: str, first: int) -> list[_Token]:
    tokens: list[_Token] = []
    at = 0
    while at < len(text):
        if text[at] in BLANKS:
            at += 1
            continue
        token = _token(text, at, first + at)
        tokens.append(token)
        at += len(token.source)
    tokens.append(_Token("end", "", first + len(text), ""))
    return tokens


def _token(text: str, at: int, column: int) -> _Token:
    if match := _SIGN.match(text, at):
        return _Token("sign", _SAME.get(match[0], match[0]), column, match[0])
    if text[at] in "'\"":
        end = end_of_text(text, at)
        if end < 0:
            raise not_closed(column)
        quote = text[at]
        return _Token("constant", text[at + 1 : end - 1].replace(quote + quote, quote), column, text[at:end])
    if match := _NUMBER.match(text, at):
        if not INTEGER.fullmatch(match[0]):
            digits = match[0].lstrip("+-").isdigit()
            raise BadInput(
                f"{shown(match[0])} at column {column} is {'too large' if digits else 'not a whole number'}",
                hint="write at most 18 digits" if digits else "write digits only, or quote it if it is text",
            )
        return _Token("constant", int(match[0]), column, match[0])
    if match := NAME.match(text, at):
        return _word(match[0], column)
    if text[at].isalnum() or text[at] == "_":
        what = "too long for a name" if NAME.match(text[at : at + 1]) else "not a letter a name may have"
        raise BadInput(
            f"{found(text, at)} at column {column} is {what}",
            hint="names have up to 64 of A-Z a-z 0-9 _; quote it if it is text",
        )
    hint = "use plain quotes: 'text'" if text[at] in _TYPOGRAPHIC else _EXAMPLE
    raise BadInput(f"unexpected {shown(text[at])} at column {column}", hint=hint)


def _word(source: str, column: int) -> _Token:
    word = source.lower()
    if word in _WORDS:
        return _Token("word", word, column, source)
    if word in YES | NO:
        return _Token("constant", word in YES, column, source)
    if word in RESERVED:
        raise BadInput(
            f"{shown(source)} at column {column} is not a property", hint="a walltime stands outside the braces"
        )
    return _Token("name", source, column, source)


class _Parser:
    """Recursive descent. Precedence, lowest first: `or`, `and`, `not`, comparisons."""

    def __init__(self, tokens: list[_Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = 0
        self.comparisons = 0

    @property
    def next(self) -> _Token:
        return self.tokens[self.at]

    def ended(self) -> bool:
        return self.next.kind == "end"

    def take(self) -> _Token:
        token = self.tokens[self.at]
        if token.kind != "end":
            self.at += 1
        return token

    def expected(self, what: str, *, hint: str = _EXAMPLE) -> BadInput:
        return BadInput(f"expected {what} at column {self.next.column}, found {self.next}", hint=hint)

    def whole(self) -> Expression:
        if self.ended():
            raise BadInput(f"the expression at column {self.next.column} is empty", hint=_EXAMPLE)
        expression = self.either()
        if not self.ended():
            raise self.expected("'and', 'or' or the end")
        return expression

    def either(self) -> Expression:
        parts = [self.both()]
        while self.next.is_("or"):
            self.take()
            parts.append(self.both())
        if len(parts) == 1:
            return parts[0]
        return Either(tuple(p for part in parts for p in (part.parts if isinstance(part, Either) else (part,))))

    def both(self) -> Expression:
        parts = [self.single()]
        while self.next.is_("and"):
            self.take()
            parts.append(self.single())
        if len(parts) == 1:
            return parts[0]
        return Both(tuple(p for part in parts for p in (part.parts if isinstance(part, Both) else (part,))))

    def single(self) -> Expression:
        if not self.next.is_("not", "("):
            return self.comparison()
        opening = self.take()
        self.depth += 1
        if self.depth > DEEPEST:
            raise BadInput(
                f"{opening} at column {opening.column} is nested deeper than {DEEPEST} levels",
                hint="remove parentheses and 'not' that are not needed",
            )
        if opening.value == "not":
            expression: Expression = Negation(self.single())
        else:
            expression = self.either()
            if not self.next.is_(")"):
                raise self.expected("'and', 'or' or ')'", hint=f"the '(' at column {opening.column} is not closed")
            self.take()
        self.depth -= 1
        return expression

    def comparison(self) -> Expression:
        self.comparisons += 1
        if self.comparisons > MOST_COMPARISONS:
            raise BadInput(
                f"the comparison at column {self.next.column} is one too many",
                hint=f"at most {MOST_COMPARISONS} are allowed; x in ('a', 'b') counts once",
            )
        left = self.operand("a property")
        sign = self.next
        if sign.is_(*_MIRRORED):
            self.take()
            return self.sides(left, sign, self.operand("a property or a value"))
        operator = sign.is_("not", "in", "like") or sign.is_word(*_OPERATORS)
        if isinstance(left, Constant) or not operator:
            raise self.expected(f"a comparison after {self.tokens[self.at - 1]}")
        self.take()
        if sign.is_word("is"):
            return self.presence(left)
        if negated := sign.is_("not"):
            sign = self.next
            if not sign.is_("in", "like") and not sign.is_word("between"):
                raise self.expected("'in', 'like' or 'between' after 'not'")
            self.take()
        if sign.is_("in"):
            return Membership(left, self.choices(), inside=not negated)
        if sign.is_word("between"):
            return self.range(left, inside=not negated, column=sign.column)
        if self.next.kind != "constant" or not isinstance(self.next.value, str):
            raise self.expected("a quoted text after 'like'", hint=f"write {left.name} like 'abc%'")
        return Comparison(left, "not like" if negated else "like", self.constant(), sign.column)

    def presence(self, left: Property) -> Presence:
        if negated := self.next.is_("not"):
            self.take()
        if not self.next.is_word("null"):
            expected = "'null' after 'is not'" if negated else "'null' or 'not null' after 'is'"
            raise self.expected(expected, hint=f"write {left.name} is null, or compare it with =")
        self.take()
        return Presence(left, present=negated)

    def range(self, left: Property, *, inside: bool, column: int) -> Range:
        low = self.operand("a property or a value")
        if not self.next.is_("and"):
            raise self.expected("'and' after the lower bound", hint=f"write {left.name} between 16 and 64")
        self.take()
        return Range(left, low, self.operand("a property or a value"), inside, column)

    def sides(self, left: Property | Constant, sign: _Token, right: Property | Constant) -> Comparison:
        compared = str(sign.value)
        if isinstance(left, Property):
            return Comparison(left, compared, right, sign.column)
        if isinstance(right, Property):
            return Comparison(right, _MIRRORED[compared], left, sign.column)
        raise BadInput(f"two values are compared at column {sign.column}", hint="compare a property with a value")

    def choices(self) -> tuple[Constant, ...]:
        hint = "write it like switch in ('sw1', 'sw2')"
        if not self.next.is_("("):
            raise self.expected("'(' after 'in'", hint=hint)
        self.take()
        choices: list[Constant] = []
        while True:
            if self.next.kind != "constant":
                raise self.expected("a value", hint=hint)
            choices.append(self.constant())
            if self.next.is_(")"):
                self.take()
                return tuple(choices)
            if not self.next.is_(","):
                raise self.expected("',' or ')'", hint=hint)
            self.take()

    def operand(self, what: str) -> Property | Constant:
        if self.next.kind == "constant":
            return self.constant()
        if self.next.kind != "name":
            raise self.expected(what)
        token = self.take()
        return Property(str(token.value), token.column)

    def constant(self) -> Constant:
        token = self.take()
        return Constant(kind_of(token.value), token.value, token.column)
