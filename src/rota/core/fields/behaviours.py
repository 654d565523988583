"""What happens when a job has ended (`run: CMD`, `cleanup`, `remove`), and where its output goes."""

from __future__ import annotations

import re
from typing import Final

from rota.core.fields import values
from rota.core.fields.values import kind, shown
from rota.core.output.output_file_names import LETTERS
from rota.errors import BadInput

MAX_BEHAVIOURS: Final = 100

_WORDS: Final = ("cleanup", "remove")
_RUN: Final = "run:"
_FORM: Final = "write 'run: CMD', 'cleanup' or 'remove'"
_PERCENT: Final = re.compile(r"%(.?)", re.DOTALL)


def behaviours(value: object, text: bool) -> tuple[str, ...]:
    """Behaviours in the order of execution; `none` on the command line means none.

    In JSON also objects with one key: `{"run": "CMD"}`, `{"cleanup": true}`. Raises `BadInput`.
    """
    if isinstance(value, str | dict):
        value = [value]
    if not isinstance(value, list | tuple):
        raise BadInput(f"must be a list of behaviours, not {kind(value)}", hint='write it like ["run: CMD"]')
    if text and list(value) == ["none"]:
        return ()
    if len(value) > MAX_BEHAVIOURS:
        raise BadInput(f"has more than {MAX_BEHAVIOURS} behaviours", hint="put the commands in a script")
    return tuple(_behaviour(each) for each in value)


def _behaviour(value: object) -> str:
    if isinstance(value, dict):
        return _from_object(value)
    if not isinstance(value, str):
        raise BadInput(f"has a behaviour that is {kind(value)}", hint=_FORM)
    word = value.strip()
    if word in _WORDS:
        return word
    if word.startswith(_RUN):
        return _run(word.removeprefix(_RUN))
    raise BadInput(f"'{shown(word)}' is not a behaviour", hint=_FORM)


def _from_object(value: dict[object, object]) -> str:
    if len(value) != 1:
        raise BadInput(f"has a behaviour with {len(value)} keys", hint='give one each, like {"run": "CMD"}')
    ((name, content),) = value.items()
    if name == "run":
        if not isinstance(content, str):
            raise BadInput(f"'run' must be a text, not {kind(content)}", hint='write it like {"run": "CMD"}')
        return _run(content)
    if name in _WORDS:
        if content is not True:
            raise BadInput(f"'{name}' must be true", hint="leave it out if it is not wanted")
        return str(name)
    raise BadInput(f"'{shown(str(name))}' is not a behaviour", hint=_FORM)


def _run(cmd: str) -> str:
    cmd = cmd.strip()
    if not cmd:
        raise BadInput("'run' has no command", hint="write it like 'run: CMD'")
    values.check_argument(cmd)
    return f"{_RUN} {cmd}"


def check_behaviours(found: tuple[str, ...]) -> None:
    """Refuse behaviours that no parser makes. Raises `BadInput`."""
    if len(found) > MAX_BEHAVIOURS:
        raise BadInput(f"has more than {MAX_BEHAVIOURS} behaviours", hint="put the commands in a script")
    for each in found:
        if _behaviour(each) != each:
            raise BadInput(f"'{shown(each)}' is not a behaviour", hint=_FORM)


def pattern(value: object, text: bool) -> str:
    """A file name with placeholders such as `%j` and `%a`, relative to the job's directory. Raises `BadInput`."""
    name = values.path(value, text)
    if name.endswith("/"):
        raise BadInput("is a directory", hint="give the name of a file, such as out/%j.txt")
    for match in _PERCENT.finditer(name):
        if match[1] != "%" and (not match[1] or match[1] not in LETTERS):
            what = f"'%{shown(match[1])}' means nothing" if match[1] else "ends with '%'"
            known = " ".join(f"%{letter}" for letter in LETTERS)
            raise BadInput(what, hint=f"use {known}, or %% for a percent sign")
    return name
