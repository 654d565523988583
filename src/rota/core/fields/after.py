"""Dependencies as users write them: ids, lines of the same input, dependency groups and, in JSON, commands."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from rota.core.fields import values
from rota.core.fields.values import DIGITS, kind, shown
from rota.errors import BadInput

#: Elements of an array: its id, the first index and the last.
Span = tuple[int, int, int]


class OfCommand(Struct, frozen=True):
    """The job with this command, in this directory or, if it is empty, in one of its own (`scratch`)."""

    cmd: str
    cwd: str = ""


#: A dependency: its condition, whether the number is a line of the input, and the parent: a number, the name of a
#: dependency group, elements of an array, or a command.
Dependency = tuple[int, bool, int | str | Span | OfCommand]

MAX_PARENTS: Final = 10_000
MAX_GROUPS: Final = 1000

CONDITIONS: Final = {"afterok": 1, "afterany": 2, "afternotok": 3}
_ELEMENTS: Final = re.compile(r"([0-9]{1,15})_(?:\*|([0-9]{1,15})(?:-([0-9]{1,15}))?)")
_LAST_INDEX: Final = 1 << 52
_HINT: Final = "write an id, 12-15, 12_3, 12_*, line:3, @group, afterok:12, afterany:12 or afternotok:12"


def after(value: object, text: bool) -> tuple[Dependency, ...]:
    """The dependencies of a job, without duplicates; `none` on the command line means none. Raises `BadInput`."""
    if text and value in ("none", ["none"], ("none",)):
        return ()
    if isinstance(value, int) and not isinstance(value, bool):
        value = [value]
    if isinstance(value, dict) and "cmd" in value:
        value = [value]
    if not isinstance(value, str | list | tuple):
        raise BadInput(f"must be ids, not {kind(value)}", hint='write it like "12,15-17" or "afterany:12"')
    found: dict[Dependency, None] = {}
    for word in values.words(value, '"12,15-17"'):
        for dependency in _dependencies(word):
            found[dependency] = None
        if len(found) > MAX_PARENTS:
            raise BadInput(f"names more than {MAX_PARENTS} jobs", hint="depend on one job that depends on them")
    return tuple(found)


def _dependencies(word: object) -> list[Dependency]:
    """`12`, `12-15`, `12_3`, `line:3`, `@group`, each optionally after `afterok:`, `afterany:` or
    `afternotok:`."""
    if isinstance(word, int) and not isinstance(word, bool):
        word = str(word)
    if isinstance(word, dict):
        return [(1, False, _of_command(word))]
    if not isinstance(word, str):
        raise BadInput(f"must be ids, not {kind(word)}", hint='write it like [12, "afterany:13"]')
    parts = word.strip().split(":")
    condition = 1
    if parts[0] in CONDITIONS:
        condition = CONDITIONS[parts.pop(0)]
    found: list[Dependency] = []
    of_line = False
    for part in parts:
        if part == "line" and not of_line:
            of_line = True
            continue
        if part.startswith("@") and not of_line:
            found.append((condition, False, dependency_group(part[1:])))
            continue
        if (span := _ELEMENTS.fullmatch(part)) and not of_line:
            found.append((condition, False, _span(span, part)))
            continue
        low, dash, high = part.partition("-")
        if not DIGITS.fullmatch(low) or (dash and not DIGITS.fullmatch(high)) or int(low) < 1:
            found.clear()
            break
        first, last = int(low), int(high or low)
        if last < first or last - first >= MAX_PARENTS:
            raise BadInput(f"'{part[:40]}' is not a range of at most {MAX_PARENTS} ids", hint="write low-high")
        found += [(condition, of_line, number) for number in range(first, last + 1)]
        of_line = False
    if not found or of_line:
        raise BadInput(f"'{shown(word)}' is not a dependency", hint=_HINT)
    return found


def _of_command(said: dict[str, object]) -> OfCommand:
    """`{"cmd": …, "cwd": …}`."""
    cmd, cwd = said.get("cmd"), said.get("cwd", "")
    if not said.keys() <= {"cmd", "cwd"} or not isinstance(cmd, str) or not isinstance(cwd, str) or not cmd:
        raise BadInput("must be objects with cmd and cwd", hint='write it like {"cmd": "make data", "cwd": "/d"}')
    values.check_argument(cmd)
    values.plain_text(cwd, values.MAX_PATH)
    if cwd and not cwd.startswith("/"):
        raise BadInput(f"'{shown(cwd)}' is not an absolute path", hint="give the whole path, or none for scratch")
    return OfCommand(cmd, cwd)


def _span(match: re.Match[str], part: str) -> Span:
    """`12_3`, `12_3-7` or `12_*`."""
    low = int(match[2] or 0)
    high = int(match[3] or match[2] or _LAST_INDEX)
    if high < low:
        raise BadInput(f"'{part[:40]}' is not a range of elements", hint="write 12_low-high")
    return int(match[1]), low, high


# ------------------------------------------------------------------ the groups that others depend on


def dependency_groups(value: object, text: bool) -> tuple[str, ...]:
    """The dependency groups of a job, without duplicates. Raises `BadInput`."""
    found: dict[str, None] = {}
    for word in values.words(value, '["group"]'):
        found[dependency_group(word)] = None
    if len(found) > MAX_GROUPS:
        raise BadInput(f"names more than {MAX_GROUPS} groups", hint="name fewer")
    return tuple(found)


def dependency_group(value: object) -> str:
    """The name of a dependency group. Raises `BadInput`."""
    try:
        name = values.group(value, False)
    except BadInput as error:
        raise BadInput(f"'{shown(str(value))}' {error.message}", hint=error.hint) from None
    if ":" in name or name != name.strip():
        raise BadInput(
            f"'{shown(name)}' cannot be a dependency group: it has a colon or blanks around it",
            hint="use letters, digits and . _ -",
        )
    return name
