"""Arrays: one entry that expands to many jobs, each with an index and optionally a line of parameters.

`1-100%5` is a hundred jobs, five of which run at once; `0-99:2` and `1,3,7-9` pick indexes. With a parameter file
each line is a job, and a specification picks lines by their number among the jobs. The file is read elsewhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from rota.client.fields.values import DIGITS, check_command, kind, length, shown
from rota.errors import BadInput
from rota.wire.messages import NewUse

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


class Elements:
    """Index and command of each element of one array; commands are built on demand."""

    def __init__(self, cmd: str | list[str], spec: Array | None, lines: list[str] | None) -> None:
        """`lines`: the parameters, if there is a file of them. Raises `BadInput` if an index has no line."""
        self._cmd = cmd
        self._lines = lines
        if spec is not None and spec.parts:
            self._indexes: Sequence[int] = spec.parts[0] if len(spec.parts) == 1 else list(spec)
            if lines is not None:
                beyond = next((index for index in self._indexes if not 1 <= index <= len(lines)), None)
                if beyond is not None:
                    raise BadInput(
                        f"there are no parameters for index {beyond}",
                        hint=f"the file has {len(lines)}, counted from 1, without blank lines and comments",
                    )
        else:
            assert lines is not None
            self._indexes = range(1, len(lines) + 1)

    def __len__(self) -> int:
        return len(self._indexes)

    def indexes(self, first: int, count: int) -> Sequence[int]:
        """The indexes of `count` elements, beginning with element number `first`."""
        return self._indexes[first : first + count]

    def commands(self, first: int, count: int, *, room: int) -> list[str | list[str]]:
        """The commands of these elements: at least one, then as many as fit into `room` characters.

        Raises `BadInput` for an invalid command.
        """
        indexes = self.indexes(first, count)
        if self._lines is None:
            return [self._cmd] * max(1, min(len(indexes), room // length(self._cmd)))
        found: list[str | list[str]] = []
        for index in indexes:
            found.append(self._with(index))
            room -= length(found[-1])
            if room <= 0:
                break
        return found

    def _with(self, index: int) -> str | list[str]:
        import shlex

        assert self._lines is not None
        line = self._lines[index - 1]
        try:
            if isinstance(self._cmd, str):
                return check_command(f"{self._cmd} {line}")
            return check_command([*self._cmd, *shlex.split(line)])
        except ValueError as error:  # an unterminated quotation
            reason = str(error).lower()
            raise BadInput(f"parameters {index} ('{shown(line)}'): {reason}", hint="close the quotation") from None
        except BadInput as error:
            raise BadInput(f"parameters {index}: {error.message}", hint=error.hint) from None


def parameters(data: bytes) -> list[str]:
    """The lines of a parameter file that are jobs. Raises `BadInput`."""
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadInput(f"line {line} is not valid UTF-8", hint="convert the file with iconv") from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise BadInput(f"line {line} contains a NUL byte", hint="is this a text file?")
    stripped = (line.removesuffix("\r").lstrip(" \t\f\v") for line in text.split("\n"))
    found = [line for line in stripped if line and line[0] != "#"]
    if not found:
        raise BadInput("has no lines of parameters", hint="put the parameters of one job on each line")
    if len(found) > MAX_ELEMENTS:
        raise BadInput(f"has more than {MAX_ELEMENTS} lines", hint="make several files of it")
    return found


def throttle(spec: Array) -> NewUse | None:
    """The limit on how many elements of this array run at once; no other array uses it."""
    if spec.at_once is None:
        return None
    return NewUse(f"array-{os.urandom(6).hex()}", spec.at_once)
