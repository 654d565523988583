"""The text of a request, such as `{gpu='YES'}/nodes=2/core=4+core=1,walltime=2:30:0`, read and checked.

    request := group ("+" group)* [",walltime=" TIME]
    group   := ["{" expression "}"] ["/"] level "=" n ("/" level "=" n)*
    n       := integer | ALL | BEST | HALF_BEST

Parsing is syntax only; `check_alternative` looks up levels and properties.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from rota.errors import BadInput
from rota.plan.language import expression
from rota.plan.language.expression import Expression, Kind
from rota.plan.language.reading import (
    BLANKS,
    LONGEST,
    LONGEST_CANONICAL,
    NAME,
    RESERVED,
    end_of_text,
    found,
    not_closed,
    require_readable,
    shown,
    suggestion,
)
from rota.plan.language.request import ALL, BEST, HALF_BEST, Alternative, Level, ResourceGroup
from rota.units import MAX_SECONDS, format_duration, parse_duration

#: What people call a host.
ALIASES: Final = {"node": "host", "nodes": "host"}
MOST_GROUPS: Final = 256
MOST_DIGITS: Final = 9

_ONE_CORE: Final = (ResourceGroup((Level("core", 1),)),)
_WORDS: Final = (ALL, BEST, HALF_BEST)
_NUMBER_END: Final = re.compile(r"[/+,{}= \t\r\n]|$")
_BRACE_OR_QUOTE: Final = re.compile(r"['\"}]")
#: As in OAR: hours, hours and minutes, or all three; one digit is enough.
_CLOCK: Final = re.compile(r"([0-9]{1,9})(?::([0-9]{1,9})(?::([0-9]{1,9}))?)?")
_BARE: Final = re.compile(r"(?i:walltime)\s*=\s*([0-9]{1,9})\s*$")
_BLANK: Final = frozenset(BLANKS)
_TIME: Final = "write it like walltime=1h30m; a bare number is hours"
_EXAMPLE: Final = "write it like nodes=2/core=4,walltime=1h"


def parse_request(text: str) -> Alternative:
    """The alternative of one `-l`. Raises `BadInput`, which names the column."""
    return _read(text, longest=LONGEST).alternative


def hours_meant(text: str) -> str:
    """A warning about a walltime without a unit: it means hours, which is easily missed."""
    match = _BARE.search(text)
    return f"walltime={match[1]} is {int(match[1])} h" if match else ""


def request_text(alternative: Alternative) -> str:
    """The canonical text: equal alternatives have equal texts, and parsing it returns the alternative."""
    groups = "+".join(
        (f"{{{group.where}}}" if group.where else "")
        + "".join(f"/{level.name}={level.number}" for level in group.levels)
        for group in alternative.groups
    )
    if alternative.walltime_s is None:
        return groups
    return f"{groups},walltime={format_duration(alternative.walltime_s)}"


def check_alternative(
    alternative: Alternative, text: str, *, levels: Collection[str], kinds: Mapping[str, Kind]
) -> None:
    """Raise `BadInput` for unknown levels and properties, and for comparisons of the wrong kind.

    Columns are those of `text`, from which the alternative was parsed; if its groups were changed since then,
    those of its canonical text. A level of a request is a level of the site or any property.
    """
    known = {*levels, *kinds}
    usable = known | {"nodes"} if "host" in known else known
    for group in _located(alternative, text).groups:
        if group.where is not None:
            expression.check(group.where, kinds)
        for level in group.levels:
            if level.level.name not in known:
                hint = suggestion(level.written, usable, what="levels")
                raise BadInput(f"unknown level {shown(level.written)} at column {level.column}", hint=hint)


@dataclass(frozen=True, slots=True)
class _Level:
    """A level and where it was written."""

    level: Level
    written: str
    column: int
    number_column: int


@dataclass(frozen=True, slots=True)
class _Group:
    levels: tuple[_Level, ...]
    where: Expression | None

    @property
    def group(self) -> ResourceGroup:
        where = "" if self.where is None else expression.text(self.where)
        return ResourceGroup(tuple(level.level for level in self.levels), where)


@dataclass(frozen=True, slots=True)
class _Request:
    groups: tuple[_Group, ...]
    walltime_s: float | None

    @property
    def alternative(self) -> Alternative:
        return Alternative(tuple(group.group for group in self.groups) or _ONE_CORE, self.walltime_s)


def _located(alternative: Alternative, text: str) -> _Request:
    try:
        request = _read(text, longest=LONGEST)
    except BadInput:
        request = None
    if request is not None and request.alternative.groups == alternative.groups:
        return request
    return _read(request_text(Alternative(alternative.groups)), longest=LONGEST_CANONICAL)


def _read(text: str, *, longest: int) -> _Request:
    require_readable(text, what="request", longest=longest)
    return _Reader(text).request()


class _Reader:
    """Goes once through the text, from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def request(self) -> _Request:
        if self.skip() == "":
            raise BadInput("the request is empty", hint=_EXAMPLE)
        if self.is_walltime():
            return _Request((), self.walltime())
        groups = [self.group()]
        while self.skip() == "+":
            if len(groups) == MOST_GROUPS:
                raise BadInput(
                    f"the group at column {self.at + 1} is one too many", hint=f"at most {MOST_GROUPS} are allowed"
                )
            self.at += 1
            groups.append(self.group())
        walltime_s = None
        if self.skip() == ",":
            self.at += 1
            self.skip()
            if not self.is_walltime():
                raise self.expected("'walltime=' after ','", hint="join groups with '+'")
            walltime_s = self.walltime()
        if self.skip():
            raise self.expected("'/', '+', ',walltime=' or the end")
        return _Request(tuple(groups), walltime_s)

    def group(self) -> _Group:
        where = self.where() if self.skip() == "{" else None
        if self.skip() == "/":
            self.at += 1
        levels = [self.level()]
        while self.skip() == "/":
            self.at += 1
            levels.append(self.level())
        seen: set[str] = set()
        for level in levels:
            if level.level.name in seen:
                raise BadInput(
                    f"level {shown(level.written)} at column {level.column} is there twice",
                    hint="join two groups with '+'",
                )
            seen.add(level.level.name)
            if isinstance(level.level.number, str) and len(levels) > 1:
                raise BadInput(
                    f"'{level.level.number}' at column {level.number_column} needs a group of one level",
                    hint=f"write {level.written}={level.level.number} alone, or a number",
                )
        return _Group(tuple(levels), where)

    def where(self) -> Expression:
        opening = self.at
        at = opening + 1
        while match := _BRACE_OR_QUOTE.search(self.text, at):
            if match[0] == "}":
                self.at = match.end()
                return expression.parse(self.text[opening + 1 : match.start()], column=opening + 2)
            at = end_of_text(self.text, match.start())
            if at < 0:
                raise not_closed(match.start() + 1)
        raise BadInput(f"the '{{' at column {opening + 1} is not closed", hint="add the missing '}'")

    def level(self) -> _Level:
        self.skip()
        column = self.at + 1
        match = NAME.match(self.text, self.at)
        if match is None:
            raise self.expected("a level")
        written = match[0]
        if written.lower() in RESERVED:
            hint = "write ',walltime=1h' at the end" if written.lower() == "walltime" else _EXAMPLE
            raise BadInput(f"{shown(written)} at column {column} is not a level", hint=hint)
        self.at = match.end()
        if self.skip() != "=":
            raise BadInput(
                f"expected '=' after level {shown(written)} at column {self.at + 1}", hint=f"write {written}=1"
            )
        self.at += 1
        self.skip()
        number_column = self.at + 1
        return _Level(Level(ALIASES.get(written, written), self.number(written)), written, column, number_column)

    def number(self, level: str) -> int | str:
        column = self.at + 1
        end = _NUMBER_END.search(self.text, self.at)
        word = self.text[self.at : end.start() if end else len(self.text)]
        if not word:
            raise self.expected(f"a number after '{level}='", hint=f"write {level}=1")
        self.at += len(word)
        if word.upper() in _WORDS:
            return word.upper()
        where = f"{shown(word)} at column {column}"
        if not re.fullmatch(r"-?[0-9]+", word):
            raise BadInput(f"{where} is not a number", hint=f"write {level}=1, or {', '.join(_WORDS)}")
        digits = word.lstrip("-0")
        if word.startswith("-") or not digits:
            raise BadInput(f"{where} is less than 1", hint=f"ask for one or more: {level}=1")
        if len(digits) > MOST_DIGITS:
            raise BadInput(f"{where} is too large", hint=f"at most {MOST_DIGITS} digits are allowed")
        return int(digits)

    def is_walltime(self) -> bool:
        match = NAME.match(self.text, self.at)
        return match is not None and match[0].lower() == "walltime"

    def walltime(self) -> float:
        self.at += len("walltime")
        if self.skip() != "=":
            raise self.expected("'=' after 'walltime'", hint=_TIME)
        self.at += 1
        if not self.skip():
            raise self.expected("a time after 'walltime='", hint=_TIME)
        start = self.at
        if stray := re.compile(r"[/+,{}=]").search(self.text, start):
            self.at = stray.start()
            raise self.expected("the end after the walltime", hint="the walltime comes last, once")
        self.at = len(self.text)
        return _seconds(self.text[start:].rstrip(BLANKS), start + 1)

    def skip(self) -> str:
        """The next character that is not a blank; empty at the end."""
        while self.text[self.at : self.at + 1] in _BLANK:
            self.at += 1
        return self.text[self.at : self.at + 1]

    def expected(self, what: str, *, hint: str = _EXAMPLE) -> BadInput:
        return BadInput(f"expected {what} at column {self.at + 1}, found {found(self.text, self.at)}", hint=hint)


def _seconds(word: str, column: int) -> float:
    if match := _CLOCK.fullmatch(word):
        hours, minutes, seconds = (int(part or 0) for part in match.groups())
        total = float(hours * 3600 + minutes * 60 + seconds)
    else:
        try:
            total = parse_duration(word)
        except BadInput as error:
            raise BadInput(f"walltime at column {column}: {error.message}", hint=error.hint) from None
    if not 0 < total <= MAX_SECONDS:
        problem = "longer than 100 years" if total else "zero"
        raise BadInput(f"walltime at column {column}: {shown(word)} is {problem}", hint=_TIME)
    return total
