"""Selectors: the words by which people name jobs, as clauses.

Within a word commas mean AND; between words OR. A comma behind a backslash is part of a name.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from rota.core.states import BY_LABEL, LEASED, TERMINAL
from rota.errors import BadInput
from rota.store.base import Clause

_COMMA = re.compile(r"(?<!\\),")
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")
#: `12_3`, `12_3-7`, and `12_*` or `12_` for all elements of an array.
_ELEMENTS = re.compile(r"([0-9]{1,18})_(?:\*|([0-9]{1,15})(?:-([0-9]{1,15}))?)?")
_HINT = "use 12, 12-20, 12_3, @group, state=failed, user=x, host=x, queue=x, project=x, last or all"
_NAMES = frozenset({"state", "user", "host", "group", "queue", "project", "submission"})
#: Selectors in one request, and how many of them may be other than ids: those are looked up one by one.
MOST_WORDS: Final = 100_000
MOST_OTHERS: Final = 1000
#: What they may come to: `last` is a range for each of its gaps.
_MOST_CLAUSES: Final = 1_000_000
_LONGEST: Final = 16_384


def parse(words: list[str], *, last: list[tuple[int, int]]) -> list[Clause]:
    """The clauses of these words. `last` are the ids of the newest submission, new or not. Raises `BadInput`."""
    if len(words) > MOST_WORDS:
        raise _too_many(len(words), MOST_WORDS)
    clauses = []
    others = 0
    for word in words:
        if word.isdigit() and word.isascii() and len(word) < 19 and (id := int(word)):
            clauses.append(Clause(low=id, high=id))
            continue
        clause = _clause(word)
        others += not is_range(clause)
        if others > MOST_OTHERS:
            raise _too_many(others, MOST_OTHERS)
        if "last" not in _parts(word):
            clauses.append(clause)
            continue
        for low, high in last:
            low, high = max(low, clause.low), min(high, clause.high or high)
            if low <= high:
                clauses.append(msgspec.structs.replace(clause, low=low, high=high))
        if len(clauses) > _MOST_CLAUSES:
            raise _too_many(others, MOST_OTHERS)
    return clauses


def _too_many(number: int, most: int) -> BadInput:
    return BadInput(
        f"{number:,} selectors are too many; at most {most:,} are taken at once",
        hint="use ranges like 1-5000, a group or a state, or several commands",
    )


def is_range(clause: Clause) -> bool:
    """Does it select by id only?"""
    return clause.low > 0 and clause == Clause(low=clause.low, high=clause.high)


def _clause(word: str) -> Clause:
    fields: dict[str, Any] = {}
    if len(word) > _LONGEST:
        raise BadInput(f"selector '{word[:40]}…' is too long", hint=_HINT)

    def put(name: str, value: Any) -> None:
        if name in fields and fields[name] != value:
            raise BadInput(f"selector '{word}' can match nothing", hint="join alternatives with a space")
        fields[name] = value

    for part in _parts(word):
        if part in ("all", "last"):
            continue
        if part.startswith("@") and len(part) > 1:
            put("group", part[1:])
        elif match := _RANGE.fullmatch(part):
            low = int(match[1])
            high = int(match[2]) if match[2] else low
            if not 0 < low <= high:
                raise BadInput(f"selector '{part}' is not a range of ids", hint=_HINT)
            put("low", low)
            put("high", high)
        elif match := _ELEMENTS.fullmatch(part):
            if not int(match[1]):
                raise BadInput(f"selector '{part}': there is no array 0", hint=_HINT)
            put("array", int(match[1]))
            if match[2]:
                low, high = int(match[2]), int(match[3] or match[2])
                if low > high:
                    raise BadInput(f"selector '{part}' is not a range of elements", hint=_HINT)
                put("indexes", ((low, high),))
        else:
            name, equals, value = part.partition("=")
            if not equals or not value or name not in _NAMES:
                raise BadInput(f"selector '{part}' is not understood", hint=_HINT)
            if name == "state":
                if value not in BY_LABEL:
                    known = ", ".join(BY_LABEL)
                    raise BadInput(f"there is no state '{value}'", hint=f"states are {known}")
                put("state", int(BY_LABEL[value]))
            else:
                put(name, value)
    return msgspec.convert(fields, Clause)


def _parts(word: str) -> list[str]:
    if "\\," not in word:
        return word.split(",")
    return [part.replace("\\,", ",") for part in _COMMA.split(word)]


def disjoint(clauses: list[Clause]) -> list[Clause]:
    """The same clauses, with those about hosts split by state: only memory knows where a live job is, and only the
    store where an ended one was."""
    found = []
    for clause in clauses:
        if clause.host and not clause.state:
            found += [msgspec.structs.replace(clause, state=int(state)) for state in sorted(LEASED | TERMINAL)]
        else:
            found.append(clause)
    return found
