"""The fields of a job as people give them, in JSON, on the command line or in Python: checked once.

`Wanted` holds what one job wants, complete; `Wanted.changed` applies fields over it. Everything is
checked here, strictly, and errors name the field; nothing is read from the machine.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

import msgspec
from msgspec import Struct

from rota.errors import BadInput
from rota.plan.size import CORE, Size
from rota.units import MAX_BYTES, parse_duration, parse_size

#: A dependency: what the condition is, whether the number is a line of the input, and the number.
Dependency = tuple[int, bool, int]

#: The kernel takes no longer argument (MAX_ARG_STRLEN, less its final NUL), and `sh -c` gets one.
MAX_COMMAND: Final = 131_071
MAX_ARGUMENTS: Final = 10_000
MAX_PARENTS: Final = 10_000
MAX_CPUS: Final = 1_000_000
MAX_RETRIES: Final = 10_000
MAX_NAME: Final = 255

_CONDITIONS: Final = {"afterok": 1, "afterany": 2, "afternotok": 3}
_DIGITS: Final = re.compile(r"[0-9]{1,15}")
_DECIMAL: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
#: In the contract, but not in this version.
# fmt: off
LATER: Final = frozenset({
    "request", "where", "type", "at", "array", "array_file", "dep_groups", "limits", "learn", "override",
    "input_bytes", "pool", "live", "allow_empty_group", "prefer", "force_host", "reserve", "reserve_for",
    "gang_same", "provision", "job_key", "call", "args", "on_success", "on_failure", "on_exit", "checkpoint",
    "signal", "notify", "stdout", "stderr", "stage_in", "stage_out", "gang",
})
# fmt: on


class Wanted(Struct, frozen=True, kw_only=True):
    """Everything one job wants except its command. The defaults are those of `rota add`."""

    cwd: str
    scratch: bool = False
    env: tuple[tuple[str, str], ...] = ()  #: added to the captured environment, sorted
    name: str = ""
    group: str = "default"
    project: str = ""
    queue: str = "default"
    priority: int = 0
    cpus: int = CORE  #: hundredths
    mem: int
    disk: int = 0
    time: float = 3600.0
    gpus: int = 0
    walltime: float | None = None
    after: tuple[Dependency, ...] = ()
    retries: int = 3
    backoff: float = 30.0
    no_retry_over: float | None = None
    pipefail: bool = False
    rerun: bool = False
    once: bool = False
    allow_unsatisfiable: bool = False

    @property
    def size(self) -> Size:
        return Size(cpus=self.cpus, mem=self.mem, disk=self.disk, time_s=self.time, gpus=self.gpus)

    def changed(self, fields: Mapping[str, object], *, text: bool = False) -> Wanted:
        """With these fields over it. `text`: values are words of the command line, not JSON.

        Raises `BadInput` whose message begins with the field.
        """
        new: dict[str, Any] = {}
        for name, value in fields.items():
            parse = FIELDS.get(name)
            if parse is None:
                _refuse_name(name)
            try:
                new[name] = parse(value, text)
            except BadInput as error:
                shown = f"--{name.replace('_', '-')}" if text else f"field '{name}'"
                raise BadInput(f"{shown}: {error.message}", hint=error.hint) from None
        if "cwd" in new:
            new["cwd"] = _tidy(os.path.join(self.cwd, new["cwd"]))
        if "env" in new:
            new["env"] = tuple(sorted((dict(self.env) | dict(new["env"])).items()))
        result = msgspec.structs.replace(self, **new)
        if result.rerun and result.once:
            word = "--rerun and --once" if text else "fields 'rerun' and 'once'"
            raise BadInput(f"{word} contradict each other", hint="give one of them")
        return result


def _tidy(path: str) -> str:
    # `x/../y` stays: if x is a link, it is not y.
    return path if ".." in path.split("/") else os.path.normpath(path)


def check_command(value: object) -> str | list[str]:
    """A command: text for the shell or a list to execute. Raises `BadInput`."""
    if isinstance(value, str):
        if not value.strip():
            raise BadInput("the command is empty", hint="give a command")
        check_argument(value)
        return value
    if not isinstance(value, list | tuple):
        raise BadInput(f"must be a text or a list of texts, not {_kind(value)}")
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


def _refuse_name(name: str) -> NoReturn:
    shown = name.encode("unicode_escape", "backslashreplace").decode("ascii")[:60]
    if name in LATER:
        raise BadInput(f"field '{shown}': not supported by this version yet", hint="leave it out")
    if name == "cmd":
        raise BadInput("field 'cmd': given twice", hint="give it once")
    import difflib

    close = difflib.get_close_matches(name[:60], [*FIELDS, "cmd"], n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"the fields are cmd, {', '.join(FIELDS)}"
    raise BadInput(f"field '{shown}': there is no such field", hint=hint)


def _kind(value: object) -> str:
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


# ------------------------------------------------------------------ one function a kind of value


def _text(value: object, limit: int = MAX_NAME) -> str:
    if not isinstance(value, str):
        raise BadInput(f"must be a text, not {_kind(value)}")
    check_argument(value)
    if len(value.encode()) > limit:
        raise BadInput(f"is longer than {limit} bytes")
    return value


def _flag(value: object, text: bool) -> bool:
    if not isinstance(value, bool):
        raise BadInput(f"must be true or false, not {_kind(value)}")
    return value


def _duration(value: object, text: bool) -> float:
    return parse_duration(_with_unit(value, "90s"))


def _positive_duration(value: object, text: bool) -> float:
    seconds = parse_duration(_with_unit(value, "2h"))
    if seconds <= 0:
        raise BadInput("must be more than nothing", hint="write a time such as 30m or 2h")
    return seconds


def _bytes(value: object, text: bool) -> int:
    size = parse_size(_with_unit(value, "4G"))
    if size >= MAX_BYTES:
        raise BadInput("is too much", hint="write a size such as 500M or 4G")
    return size


def _with_unit(value: object, example: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BadInput(f"must be a text with a unit, not {_kind(value)}", hint=f'write it like "{example}"')
    # A bare number falls through to the parser, whose hint names the likely unit.
    return str(value)


def _count(low: int, high: int) -> Callable[[object, bool], int]:
    def parse(value: object, text: bool) -> int:
        if text and isinstance(value, str) and _DIGITS.fullmatch(value):
            value = int(value)
        if isinstance(value, float) and value.is_integer() and not text:
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            shown = "a text that is not a number" if text else _kind(value)
            if isinstance(value, float):
                shown = "a fraction"
            raise BadInput(f"must be a whole number, not {shown}", hint=f"give one from {low} to {high}")
        if not low <= value <= high:
            raise BadInput(f"must be from {low} to {high}")
        return value

    return parse


def _cpus(value: object, text: bool) -> int:
    if text and isinstance(value, str) and _DECIMAL.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput("must be a number", hint="write it like 1, 4 or 0.5")
    if not 0 <= value <= MAX_CPUS:  # NaN is not
        raise BadInput(f"must be from 0 to {MAX_CPUS}", hint="write it like 1, 4 or 0.5")
    hundredths = round(value * CORE)
    if abs(hundredths - value * CORE) > 1e-6:
        raise BadInput("is finer than a hundredth of a core", hint="write at most two decimals")
    return hundredths


def _directory(value: object, text: bool) -> str:
    path = _text(value, 4095)
    if not path:
        raise BadInput("is empty", hint="give a directory")
    return path


def _environment(value: object, text: bool) -> tuple[tuple[str, str], ...]:
    if text and isinstance(value, list | tuple):
        value = dict(_assignment(word) for word in value)
    if not isinstance(value, dict):
        raise BadInput(f"must be an object of texts, not {_kind(value)}", hint='write it like {"NAME": "value"}')
    for name, content in value.items():
        if not isinstance(content, str):
            raise BadInput(f"'{name}' must be a text, not {_kind(content)}", hint="put the value in quotes")
        if not name or "=" in name or "\0" in name or "\0" in content:
            raise BadInput("has a name or value that no environment can have", hint="write NAME=value")
        check_argument(f"{name}={content}")
    return tuple(sorted(value.items()))


def _assignment(word: str) -> tuple[str, str]:
    name, equals, content = word.partition("=")
    if not equals or not name:
        raise BadInput(f"'{name[:40]}' is not NAME=VALUE", hint="write it like --env LANG=C")
    return name, content


def _group(value: object, text: bool) -> str:
    group = _text(value)
    if not group or group.startswith("@") or "," in group or not group.isprintable():
        raise BadInput(
            "cannot be a group: it is empty, begins with '@', or has a comma or an unprintable character",
            hint="use letters, digits and . _ -",
        )
    return group


def _queue(value: object, text: bool) -> str:
    if _text(value) != "default":
        raise BadInput("there is no such queue", hint="this version has only 'default'")
    return "default"


def _after(value: object, text: bool) -> tuple[Dependency, ...]:
    words: list[object]
    if isinstance(value, str):
        words = list(value.split(","))
    elif isinstance(value, list | tuple):
        words = [part for word in value for part in (word.split(",") if isinstance(word, str) else [word])]
    elif isinstance(value, int) and not isinstance(value, bool):
        words = [value]
    else:
        raise BadInput(f"must be ids, not {_kind(value)}", hint='write it like "12,15-17" or "afterany:12"')
    found: dict[Dependency, None] = {}
    for word in words:
        for dependency in _dependencies(word):
            found[dependency] = None
        if len(found) > MAX_PARENTS:
            raise BadInput(f"names more than {MAX_PARENTS} jobs", hint="depend on one job that depends on them")
    return tuple(found)


def _dependencies(word: object) -> list[Dependency]:
    """`12`, `12-15`, `line:3`, and these after `afterok:`, `afterany:` or `afternotok:`."""
    if isinstance(word, int) and not isinstance(word, bool):
        word = str(word)
    if not isinstance(word, str):
        raise BadInput(f"must be ids, not {_kind(word)}", hint='write it like [12, "afterany:13"]')
    parts = word.strip().split(":")
    condition = 1
    if parts[0] in _CONDITIONS:
        condition = _CONDITIONS[parts.pop(0)]
    found: list[Dependency] = []
    of_line = False
    for part in parts:
        if part == "line" and not of_line:
            of_line = True
            continue
        if part.startswith("@"):
            raise BadInput(f"'{part[:40]}': groups are not supported by this version yet", hint="give ids")
        low, dash, high = part.partition("-")
        if not _DIGITS.fullmatch(low) or (dash and not _DIGITS.fullmatch(high)) or int(low) < 1:
            found.clear()
            break
        first, last = int(low), int(high or low)
        if last < first or last - first >= MAX_PARENTS:
            raise BadInput(f"'{part[:40]}' is not a range of at most {MAX_PARENTS} ids", hint="write low-high")
        found += [(condition, of_line, number) for number in range(first, last + 1)]
        of_line = False
    if not found or of_line:
        shown = word.encode("unicode_escape", "backslashreplace").decode("ascii")[:40]
        raise BadInput(
            f"'{shown}' is not a dependency",
            hint="write an id, 12-15, line:3, afterok:12, afterany:12 or afternotok:12",
        )
    return found


def _label(value: object, text: bool) -> str:
    return _text(value)


#: Every field that a job may have besides `cmd`, and how its value is read.
FIELDS: Final[dict[str, Callable[[object, bool], Any]]] = {
    "cwd": _directory,
    "scratch": _flag,
    "env": _environment,
    "name": _label,
    "group": _group,
    "cpus": _cpus,
    "mem": _bytes,
    "disk": _bytes,
    "time": _positive_duration,
    "gpus": _count(0, 1024),
    "walltime": _positive_duration,
    "priority": _count(0, 255),
    "project": _label,
    "queue": _queue,
    "after": _after,
    "retries": _count(0, MAX_RETRIES),
    "backoff": _duration,
    "no_retry_over": _duration,
    "pipefail": _flag,
    "rerun": _flag,
    "once": _flag,
    "allow_unsatisfiable": _flag,
}
