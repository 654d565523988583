"""Host lists such as `n[001-100]`, `n[1-3,7],login` and `a[1-2]b[1-2]`: expand and fold.

Numbers keep their leading zeros. Pure text: whether the hosts exist is not checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Final

from rota.errors import BadInput

MOST_NAMES: Final = 1_000_000
_NAME_MAX: Final = 253
_TEXT_MAX: Final = 1 << 20
_DIGITS_MAX: Final = 9

_PLAIN: Final = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)
_RANGE: Final = re.compile(r"([0-9]+)(?:-([0-9]+))?", re.ASCII)
#: A name in three parts: before its last number, the number, after it.
_LAST_NUMBER: Final = re.compile(r"(.*?)(?<![0-9])([0-9]{1,9})([^0-9]*)", re.ASCII | re.DOTALL)
_NUMBERS: Final = re.compile(r"([0-9]+)")
_NODE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}", re.ASCII)
_HINT: Final = "write hosts like n1,n2 or n[001-100]"


def check_name(text: str, what: str = "a node") -> None:
    """Raise `BadInput` unless this can be the name of a host."""
    if not _NODE.fullmatch(text):
        shown = f"'{text[:40]}...'" if len(text) > 40 else f"'{text}'"
        raise BadInput(
            f"{shown} cannot be the name of {what}",
            hint=f"use at most {_NAME_MAX} letters, digits and . _ - with a letter or digit first",
        )


def expand(text: str, *, most: int = MOST_NAMES) -> list[str]:
    """The names in a list, each once, in its order. Raises `BadInput` with the column."""
    if not text.strip():
        raise BadInput("the list of hosts is empty", hint=_HINT)
    if len(text) > _TEXT_MAX:
        raise BadInput("the list of hosts is too long", hint="use brackets: n[001-100]")
    found: dict[str, None] = {}
    reader = _Reader(text)
    while True:
        for words in product(*reader.item(most - len(found))):
            name = "".join(words)
            if len(name) > _NAME_MAX:
                raise BadInput(
                    f"'{name[:40]}...' is too long for a host", hint=f"use at most {_NAME_MAX} characters"
                )
            found[name] = None
        if not reader.comma():
            return list(found)


class _Reader:
    """Goes through a list from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def item(self, most: int) -> list[Sequence[str]]:
        """The parts of one item, each with its alternatives; at most so many names in all."""
        self._skip_spaces()
        parts: list[Sequence[str]] = []
        names = 1
        while self._at < len(self._text) and self._text[self._at] not in ", \t\n":
            if self._text[self._at] == "[":
                parts.append(self._numbers())
                names *= len(parts[-1])
            elif plain := _PLAIN.match(self._text, self._at):
                parts.append((plain[0],))
                self._at = plain.end()
            else:
                raise self._wrong(f"'{_shown(self._text[self._at])}' cannot be in the name of a host")
            if names > most:
                raise BadInput("the list of hosts stands for too many names", hint=f"write at most {MOST_NAMES:,}")
        if not parts:
            raise self._wrong("a name is missing")
        return parts

    def comma(self) -> bool:
        """Is there another name?"""
        self._skip_spaces()
        if self._at == len(self._text):
            return False
        if self._text[self._at] != ",":
            raise self._wrong("a comma is missing")
        self._at += 1
        return True

    def _numbers(self) -> list[str]:
        opened = self._at
        self._at += 1
        found: list[str] = []
        while True:
            match = _RANGE.match(self._text, self._at)
            if match is None:
                raise self._wrong("a number is missing")
            found += self._span(match, MOST_NAMES - len(found))
            self._at = match.end()
            sign = self._text[self._at : self._at + 1]
            if sign not in ("]", ","):
                if not sign:
                    self._at = opened
                    raise self._wrong("the bracket is not closed")
                raise self._wrong(f"'{_shown(sign)}' is no part of a range of numbers")
            self._at += 1
            if sign == "]":
                return list(dict.fromkeys(found))

    def _span(self, match: re.Match[str], most: int) -> list[str]:
        first, last = match[1], match[2] or match[1]
        if max(len(first), len(last)) > _DIGITS_MAX:
            raise self._wrong("a number is too large", hint=f"use at most {_DIGITS_MAX} digits")
        width = len(first) if first[0] == "0" else 0
        if len(last) < width or (last[0] == "0" and len(last) > 1 and len(last) != width):
            example = f"{int(first):0{len(last)}}-{last}" if not width else f"{first}-{int(last):0{width}}"
            raise self._wrong(f"'{match[0]}' begins and ends with different zeros", hint=f"write {example}")
        low, high = int(first), int(last)
        if high < low:
            raise self._wrong(f"'{match[0]}' runs backwards", hint=f"write {last}-{first}")
        if high - low >= most:
            raise self._wrong(f"'{match[0]}' are more than {MOST_NAMES:,} names", hint="write fewer")
        return [f"{number:0{width}}" for number in range(low, high + 1)]

    def _skip_spaces(self) -> None:
        while self._at < len(self._text) and self._text[self._at] in " \t\n":
            self._at += 1

    def _wrong(self, what: str, *, hint: str = _HINT) -> BadInput:
        return BadInput(f"hosts, column {self._at + 1}: {what}", hint=hint)


def _shown(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")


# ------------------------------------------------------------------ and back


def fold(names: Iterable[str]) -> str:
    """A short list of these names: `expand` returns them, numbers in order."""
    return ",".join(_fold(list(dict.fromkeys(names))))


def _fold(names: list[str]) -> list[str]:
    """Fold the last number of each name; then fold the earlier numbers of names that are otherwise equal."""
    numbers: dict[tuple[str, str], list[str]] = {}
    whole: dict[tuple[str, str], None] = {}  #: (folded end, beginning), in the order of the names
    plain: list[str] = []
    for name in names:
        match = _LAST_NUMBER.fullmatch(name)
        if match is None:
            plain.append(name)
        else:
            numbers.setdefault((match[1], match[3]), []).append(match[2])
    for (before, after), found in numbers.items():
        whole[f"{_ranges(found)}{after}", before] = None
    beginnings: dict[str, list[str]] = {}
    for end, before in whole:
        beginnings.setdefault(end, []).append(before)
    folded = [
        f"{before}{end}"
        for end, several in beginnings.items()
        for before in (_fold(several) if len(several) > 1 else several)
    ]
    return folded + plain


def _ranges(numbers: list[str]) -> str:
    """`7`, or `[001-100,7]`: numbers as texts, those of equal padding together."""
    if len(numbers) == 1:
        return numbers[0]
    padded = {len(text) for text in numbers if text[0] == "0" and len(text) > 1}
    spans: list[tuple[int, int, int]] = []  #: (width, first, last)
    for width, number in sorted((len(text) if len(text) in padded else 0, int(text)) for text in numbers):
        if spans and spans[-1][0] == width and spans[-1][2] == number - 1:
            spans[-1] = (width, spans[-1][1], number)
        else:
            spans.append((width, number, number))
    texts = [f"{a:0{width}}" if a == b else f"{a:0{width}}-{b:0{width}}" for width, a, b in spans]
    return f"[{','.join(texts)}]"


def natural(name: str) -> tuple[list[str | int], str]:
    """A sort key for natural order: node2 before node10."""
    return [int(part) if at % 2 else part for at, part in enumerate(_NUMBERS.split(name))], name
