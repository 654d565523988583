"""Selectors: the words by which people name jobs, as clauses.

Within a word commas mean AND; between words OR. A comma behind a backslash is part of a name.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Any, Final

import msgspec

from rota.core.states import BY_LABEL, LEASED, TERMINAL, WAITING, State
from rota.errors import BadInput
from rota.store.base import Clause
from rota.units import parse_duration

_COMMA = re.compile(r"(?<!\\),")
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")
#: `12_3`, `12_3-7`, and `12_*` or `12_` for all elements of an array.
_ELEMENTS = re.compile(r"([0-9]{1,18})_(?:\*|([0-9]{1,15})(?:-([0-9]{1,15}))?)?")
_EXITS = re.compile(r"([0-9]{1,3})(?:-([0-9]{1,3}))?")
_HINT = (
    "use 12, 12-20, 12_3, @group, @part*, state=failed, name=x, cmd~text, exit=1, older=1d, user=x, host=x,"
    " queue=x, project=x, gang=x, pool=x, last or all"
)
_NAMES = (
    "state", "name", "exit", "older", "user", "host", "group", "queue", "project", "submission", "gang", "pool",
)  # fmt: skip
#: What to write instead of a part without a value, or with the wrong sign.
_EXAMPLES = {
    "cmd": "write cmd~TEXT for commands that contain the text",
    "name": "write name=NAME, or name=PART* for names that begin so",
    "exit": "write exit=1, or exit=1-125",
    "older": "write older=1d for jobs that ended, or were added, more than a day ago",
    "state": "write state=failed",
}
#: A moment before which there are no jobs; 0 would mean any time.
_EARLIEST: Final = 1e-6
#: Selectors in one request, and how many of them may be other than ids: those are looked up one by one.
MOST_WORDS: Final = 100_000
MOST_OTHERS: Final = 1000
#: What they may come to: `last` is a range for each of its gaps.
_MOST_CLAUSES: Final = 1_000_000
_LONGEST: Final = 16_384
#: Larger than any id.
_NO_ID: Final = 1 << 62


def parse(words: list[str], *, last: list[tuple[int, int]], now: float, last_session: str = "") -> list[Clause]:
    """The clauses of these words. `last` are the ids of the newest submission, new or not; `last_session` is its
    name if it is a session of a pipeline, whose jobs come one by one. `now` is the time that `older=` counts from.
    Raises `BadInput`."""
    if len(words) > MOST_WORDS:
        raise _too_many(len(words), MOST_WORDS)
    clauses = []
    others = 0
    for word in words:
        if word.isdigit() and word.isascii() and len(word) < 19 and (id := int(word)):
            clauses.append(Clause(low=id, high=id))
            continue
        clause = _clause(word, now)
        others += not is_range(clause)
        if others > MOST_OTHERS:
            raise _too_many(others, MOST_OTHERS)
        if "last" not in _parts(word):
            clauses.append(clause)
            continue
        if last_session:
            clauses.append(msgspec.structs.replace(clause, submission=last_session))
        for low, high in last:
            low, high = max(low, clause.low), min(high, clause.high or high)
            if low <= high:
                clauses.append(msgspec.structs.replace(clause, low=low, high=high))
        if len(clauses) > _MOST_CLAUSES:
            raise _too_many(others, MOST_OTHERS)
    if words and not clauses:
        clauses.append(Clause(low=_NO_ID, high=_NO_ID))  # no clauses at all would mean every job
    return clauses


def _too_many(number: int, most: int) -> BadInput:
    return BadInput(
        f"{number:,} selectors are too many; at most {most:,} are taken at once",
        hint="use ranges like 1-5000, a group or a state, or several commands",
    )


def is_range(clause: Clause) -> bool:
    """Does it select by id only?"""
    return clause.low > 0 and clause == Clause(low=clause.low, high=clause.high)


def _clause(word: str, now: float) -> Clause:
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
        for name, value in _conditions(part, now):
            put(name, value)
    return msgspec.convert(fields, Clause)


def _conditions(part: str, now: float) -> list[tuple[str, Any]]:
    """The fields of a clause that one part of a selector sets. Raises `BadInput`, which names the part."""
    if part.startswith("@") and len(part) > 1:
        return [_begins_or_is("group", part[1:])]
    if match := _RANGE.fullmatch(part):
        low = int(match[1])
        high = int(match[2]) if match[2] else low
        if not 0 < low <= high:
            raise BadInput(f"selector '{part}' is not a range of ids", hint=_HINT)
        return [("low", low), ("high", high)]
    if match := _ELEMENTS.fullmatch(part):
        return _elements(part, match)
    if part.startswith("cmd~") and len(part) > 4:
        return [("cmd_text", part[4:])]
    name, equals, value = part.partition("=")
    if not equals or not value or name not in _NAMES:
        raise _not_understood(part)
    match name:
        case "state":
            if value not in BY_LABEL:
                raise BadInput(f"there is no state '{value}'", hint=f"states are {', '.join(BY_LABEL)}")
            return [("state", int(BY_LABEL[value]))]
        case "exit":
            return [("exits", _exits(part, value))]
        case "older":
            return [("before", _moment(part, value, now))]
        case "name" | "group":
            return [_begins_or_is(name, value)]
    return [(name, value)]


def _begins_or_is(name: str, value: str) -> tuple[str, str]:
    """`part*` is how a name begins, `part\\*` a name that ends with an asterisk, anything else the name."""
    if value.endswith("\\*"):
        return name, f"{value[:-2]}*"
    return (f"{name}_prefix", value[:-1]) if value.endswith("*") else (name, value)


def _elements(part: str, match: re.Match[str]) -> list[tuple[str, Any]]:
    if not int(match[1]):
        raise BadInput(f"selector '{part}': there is no array 0", hint=_HINT)
    found: list[tuple[str, Any]] = [("array", int(match[1]))]
    if match[2]:
        low, high = int(match[2]), int(match[3] or match[2])
        if low > high:
            raise BadInput(f"selector '{part}' is not a range of elements", hint=_HINT)
        found.append(("indexes", ((low, high),)))
    return found


def _exits(part: str, value: str) -> tuple[int, int]:
    match = _EXITS.fullmatch(value)
    low, high = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if not low <= high <= 255:
        raise BadInput(
            f"selector '{part}': '{value}' is not an exit code from 0 to 255", hint="write exit=1, or exit=1-125"
        )
    return low, high


def _moment(part: str, value: str, now: float) -> float:
    try:
        return max(now - parse_duration(value), _EARLIEST)
    except BadInput as error:
        raise BadInput(f"selector '{part}': {error.message}", hint=error.hint) from None


def _not_understood(part: str) -> BadInput:
    name, sign, value = re.fullmatch(r"([^=~]*)([=~]?)(.*)", part, re.DOTALL).groups()  # type: ignore[union-attr]
    if name == "cmd" or (name in _NAMES and (sign == "~" or not value)):
        hint = _EXAMPLES.get(name, f"write {name}={value or name.upper()}")
    elif sign and (close := get_close_matches(name, (*_NAMES, "cmd"), n=1)):
        hint = f"did you mean '{close[0]}{'~' if close[0] == 'cmd' else '='}{value[:40]}'?"
    else:
        hint = _HINT
    return BadInput(f"selector '{part}' is not understood", hint=hint)


def _parts(word: str) -> list[str]:
    if "\\," not in word:
        return word.split(",")
    return [part.replace("\\,", ",") for part in _COMMA.split(word)]


def disjoint(clauses: list[Clause]) -> list[Clause]:
    """The same clauses, with those about hosts, pools and exit codes split by state: only memory knows where a
    live job is and whether it waits, and only the store where an ended one was."""
    found = []
    for clause in clauses:
        if (clause.host or clause.exits or clause.pool) and not clause.state:
            states = frozenset(State)
            if clause.host:
                states &= LEASED | TERMINAL
            if clause.exits:
                states &= WAITING | TERMINAL
            found += [msgspec.structs.replace(clause, state=int(state)) for state in sorted(states)]
        else:
            found.append(clause)
    return found
