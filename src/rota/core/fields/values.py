"""Parsers for the values of job fields: one function per kind of value, which checks and converts it.

A function gets the value, and whether it is a word of the command line (`text`) rather than JSON. Its errors
describe only the value; the caller adds the name of the field. Nothing is read from the machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from rota.core.jobs.command import Command
from rota.errors import BadInput
from rota.plan.size import CORE
from rota.units import MAX_BYTES, parse_duration, parse_size

#: The longest argument the kernel accepts (MAX_ARG_STRLEN without its final NUL); `sh -c` gets the command as one.
MAX_COMMAND: Final = 131_071
MAX_ARGUMENTS: Final = 10_000
#: The longest environment the kernel accepts.
MAX_ENVIRONMENT: Final = 2 << 20
MAX_CPUS: Final = 1_000_000
MAX_NAME: Final = 255
MAX_PATH: Final = 4095

_COMMA: Final = re.compile(r"(?<!\\),")
DIGITS: Final = re.compile(r"[0-9]{1,15}")
_DECIMAL: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")


def shown(text: str, limit: int = 40) -> str:
    """A text made fit for a message: printable and short."""
    return text.encode("unicode_escape", "backslashreplace").decode("ascii")[:limit]


def kind(value: object) -> str:
    """The type of a value, in words."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list() | tuple():
            return "a list"
        case dict():
            return "an object"
    return type(value).__name__


# ------------------------------------------------------------------ commands


def check_command(value: object) -> Command:
    """A command: a text for the shell, or a list to execute. Raises `BadInput`."""
    if isinstance(value, str):
        if not value.strip():
            raise BadInput("the command is empty", hint="give a command")
        check_argument(value)
        return value
    if not isinstance(value, list | tuple):
        raise BadInput(f"must be a text or a list of texts, not {kind(value)}")
    words = list(value)
    if not all(isinstance(word, str) for word in words):
        raise BadInput("must be a text or a list of texts", hint='write it like ["prog", "arg"]')
    if not words or not words[0]:
        raise BadInput("the command is empty", hint="give a command")
    if len(words) > MAX_ARGUMENTS:
        raise BadInput(f"has {len(words)} arguments, at most {MAX_ARGUMENTS} are allowed", hint="pass a file")
    for word in words:
        check_argument(word)
    return words


def check_argument(word: str) -> None:
    """Refuse a text that cannot be passed to a program as an argument. Raises `BadInput`."""
    if "\0" in word:
        raise BadInput("contains a NUL byte", hint="no command can have one")
    try:
        size = len(word) if word.isascii() else len(word.encode())
    except UnicodeEncodeError:
        raise BadInput("is not valid UTF-8", hint="put the command in a script file") from None
    if size > MAX_COMMAND:
        raise BadInput(
            f"has {size} bytes, at most {MAX_COMMAND} are allowed", hint="put the command in a script file"
        )


# ------------------------------------------------------------------ texts


def plain_text(value: object, limit: int = MAX_NAME) -> str:
    if not isinstance(value, str):
        raise BadInput(f"must be a text, not {kind(value)}")
    check_argument(value)
    if len(value.encode()) > limit:
        raise BadInput(f"is longer than {limit} bytes")
    return value


def label(value: object, text: bool) -> str:
    return plain_text(value)


def project(value: object, text: bool) -> str:
    """The name of a project, the unit of shares and quotas."""
    name = plain_text(value)
    if not name.isprintable():
        raise BadInput("has an unprintable character", hint="use letters, digits and . _ -")
    return name


def path(value: object, text: bool) -> str:
    """The name of a file or directory."""
    name = plain_text(value, MAX_PATH)
    if not name:
        raise BadInput("is empty", hint="give a path")
    return name


def group(value: object, text: bool) -> str:
    """The name of a group, in a form that selectors accept."""
    name = plain_text(value)
    if not name or name.startswith("@") or "\\" in name or not name.isprintable():
        raise BadInput(
            "cannot be a group: it is empty, begins with '@', or has a backslash or an unprintable character",
            hint="use letters, digits and . _ -",
        )
    return name


def groups(value: object, text: bool) -> str:
    """The report groups of a job, joined as in `core.jobs.report_groups`."""
    if not isinstance(value, list | tuple):
        return group(value, text)
    from rota.core.jobs import report_groups  # late: few jobs are in several groups

    names = list(value)
    if not 0 < len(names) <= report_groups.MOST:
        raise BadInput(f"must be one group, or up to {report_groups.MOST}", hint='write it like "a" or ["a", "b"]')
    return report_groups.joined([group(name, text) for name in names])


def learning_group(value: object, text: bool) -> str:
    """The name of a learning group; an empty one stands for the program's name."""
    name = plain_text(value)
    # Browsers remove `.` and `..` from every URL, even encoded, so these groups could not be requested.
    if not name.isprintable() or name != name.strip() or name in (".", ".."):
        raise BadInput(
            "cannot be a learning group: it is '.' or '..', has blanks around it or an unprintable character",
            hint="use letters, digits and . _ -",
        )
    return name


def choice(*allowed: str) -> Callable[[object, bool], str]:
    """A parser that accepts one of these words."""

    def parse(value: object, text: bool) -> str:
        word = plain_text(value)
        if word not in allowed:
            known = f"{', '.join(allowed[:-1])} or {allowed[-1]}"
            raise BadInput(f"'{shown(word)}' is not one of its values", hint=f"give {known}")
        return word

    return parse


def environment(value: object, text: bool) -> tuple[tuple[str, str], ...]:
    """Additional environment variables, sorted."""
    if text and isinstance(value, list | tuple):
        value = dict(_assignment(word) for word in value)
    if not isinstance(value, dict):
        raise BadInput(f"must be an object of texts, not {kind(value)}", hint='write it like {"NAME": "value"}')
    if len(value) > MAX_ENVIRONMENT // 3:  # at least a letter, `=` and a separator each
        raise _too_large()
    total = 0
    for name, content in value.items():
        if not isinstance(content, str):
            raise BadInput(f"'{name}' must be a text, not {kind(content)}", hint="put the value in quotes")
        if not name or "=" in name or "\0" in name or "\0" in content:
            raise BadInput("has a name or value that no environment can have", hint="write NAME=value")
        check_argument(f"{name}={content}")
        total += len(name) + len(content) + 2
        if total > MAX_ENVIRONMENT:
            raise _too_large()
    return tuple(sorted(value.items()))


def _too_large() -> BadInput:
    return BadInput(f"has more than {MAX_ENVIRONMENT >> 20} MiB", hint="put it into a file that the job reads")


def _assignment(word: str) -> tuple[str, str]:
    name, equals, content = word.partition("=")
    if not equals or not name:
        raise BadInput(f"'{name[:40]}' is not NAME=VALUE", hint="write it like --env LANG=C")
    return name, content


def words(value: object, example: str) -> list[object]:
    """The members of a list, which may also be given as one text with commas."""
    if isinstance(value, str):
        return list(_parts(value))
    if isinstance(value, list | tuple):
        return [part for word in value for part in (_parts(word) if isinstance(word, str) else [word])]
    raise BadInput(f"must be a text or a list of texts, not {kind(value)}", hint=f"write it like {example}")


def _parts(text: str) -> list[str]:
    """Split at commas; a comma after a backslash is part of a name."""
    if "\\," not in text:
        return text.split(",")
    return [part.replace("\\,", ",") for part in _COMMA.split(text)]


def with_commas(name: str) -> str:
    """Escape a name for use in a list with commas."""
    return name.replace(",", "\\,")


# ------------------------------------------------------------------ numbers, times and sizes


def flag(value: object, text: bool) -> bool:
    if not isinstance(value, bool):
        raise BadInput(f"must be true or false, not {kind(value)}")
    return value


def duration(value: object, text: bool) -> float:
    return parse_duration(_with_unit(value, "90s"))


def walltime_change(text: str) -> tuple[float, bool]:
    """Seconds, and whether they are relative: so much more or, if negative, less. Raises `BadInput`."""
    word = text.strip()
    sign, rest = (word[0], word[1:]) if word[:1] in ("+", "-", "−") else ("", word)
    seconds = parse_duration(rest)
    if not seconds:
        raise BadInput("a time of 0 changes nothing", hint="write it like +1h, -30m or 2h")
    return (-seconds if sign in ("-", "−") else seconds), bool(sign)


def positive_duration(value: object, text: bool) -> float:
    seconds = parse_duration(_with_unit(value, "2h"))
    if seconds <= 0:
        raise BadInput("must be more than nothing", hint="write a time such as 30m or 2h")
    return seconds


def size(value: object, text: bool) -> int:
    found = parse_size(_with_unit(value, "4G"))
    if found >= MAX_BYTES:
        raise BadInput("is too much", hint="write a size such as 500M or 4G")
    return found


def byte_count(value: object, text: bool) -> int:
    """A size for a field in bytes: a plain whole number is accepted."""
    if isinstance(value, str) and DIGITS.fullmatch(value.strip()):
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        if not 0 <= value < MAX_BYTES:
            raise BadInput(f"must be from 0 to {MAX_BYTES - 1}")
        return value
    return size(value, text)


def _with_unit(value: object, example: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BadInput(f"must be a text with a unit, not {kind(value)}", hint=f'write it like "{example}"')
    # A bare number falls through to the parser, whose hint suggests a unit.
    return str(value)


def count(low: int, high: int) -> Callable[[object, bool], int]:
    """A whole number from low to high."""

    def parse(value: object, text: bool) -> int:
        if text and isinstance(value, str) and DIGITS.fullmatch(value.removeprefix("-")):
            value = int(value)
        if isinstance(value, float) and value.is_integer() and not text:
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            what = f"'{shown(value)}'" if text and isinstance(value, str) else kind(value)
            if isinstance(value, float):
                what = "a fraction"
            raise BadInput(f"must be a whole number, not {what}", hint=f"give one from {low} to {high}")
        if not low <= value <= high:
            raise BadInput(f"must be from {low} to {high}")
        return value

    return parse


def cpus(value: object, text: bool) -> int:
    """Cores, in hundredths."""
    if text and isinstance(value, str) and _DECIMAL.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput("must be a number", hint="write it like 1, 4 or 0.5")
    if not 0 <= value <= MAX_CPUS:  # also rejects NaN
        raise BadInput(f"must be from 0 to {MAX_CPUS}", hint="write it like 1, 4 or 0.5")
    hundredths = round(value * CORE)
    if abs(hundredths - value * CORE) > 1e-6:
        raise BadInput("is finer than a hundredth of a core", hint="write at most two decimals")
    return hundredths
