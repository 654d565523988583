"""Arrays as users write them: `1-100%5` is a hundred jobs, five of which run at once; `0-99:2` and `1,3,7-9` pick
indexes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from rota.core.fields.values import DIGITS, kind, shown
from rota.errors import BadInput

MAX_ELEMENTS: Final = 1_000_000
MAX_INDEX: Final = 999_999_999
MAX_AT_ONCE: Final = 1_000_000

_PART: Final = re.compile(r"([0-9]{1,15})(?:-([0-9]{1,15})(?::([0-9]{1,15}))?)?")
_FORM: Final = "write it like 1-100, 0-99:2 or 1,3,7-9, with %5 behind for five at once"


class Array(Struct, frozen=True):
    """A specification as written, and its meaning."""

    text: str
    parts: tuple[range, ...]  #: none: all lines of the file
    at_once: int | None = None  #: how many may run at the same time

    def __iter__(self) -> Iterator[int]:
        for part in self.parts:
            yield from part

    def __len__(self) -> int:
        return sum(map(len, self.parts))


def array(value: object, text: bool) -> Array:
    """Read a specification. Raises `BadInput` that names the part that is wrong."""
    if not isinstance(value, str):
        raise BadInput(f"must be a text, not {kind(value)}", hint='write it like "1-100", even for one number')
    spec, percent, at_once = value.partition("%")
    limit = None
    if percent:
        if not DIGITS.fullmatch(at_once.strip()) or not 1 <= int(at_once) <= MAX_AT_ONCE:
            raise BadInput(
                f"'%{shown(at_once)}': how many may run at once must be a number from 1 to {MAX_AT_ONCE}",
                hint="write it like 1-100%5",
            )
        limit = int(at_once)
    parts: list[range] = []
    if spec.strip() or not percent:
        total = 0
        for position, word in enumerate(spec.split(","), 1):
            parts.append(_part(word.strip(), position))
            total += len(parts[-1])
            if total > MAX_ELEMENTS:
                raise BadInput(f"has more than {MAX_ELEMENTS} elements", hint="make several arrays of it")
        _check_distinct(parts)
    return Array(value.strip(), tuple(parts), limit)


def _part(word: str, position: int) -> range:
    match = _PART.fullmatch(word)
    if match is None:
        raise BadInput(f"'{shown(word)}' (part {position}) is not an index or a range", hint=_FORM)
    low, high, step = match.groups()
    first, last, by = int(low), int(high or low), int(step or 1)
    if last < first:
        raise BadInput(f"'{shown(word)}' (part {position}) ends before it begins", hint=f"write {last}-{first}")
    if by < 1:
        raise BadInput(f"'{shown(word)}' (part {position}) has a step of 0", hint="give a step of 1 or more")
    if last > MAX_INDEX:
        raise BadInput(f"'{shown(word)}' (part {position}) is beyond {MAX_INDEX}", hint="give lower indexes")
    return range(first, last + 1, by)


def _check_distinct(parts: list[range]) -> None:
    seen: set[int] = set()
    for position, part in enumerate(parts, 1):
        if len(parts) > 1 and not seen.isdisjoint(part):
            twice = next(index for index in part if index in seen)
            raise BadInput(f"part {position} has index {twice} again", hint="give each index once")
        seen.update(part if len(parts) > 1 else ())
