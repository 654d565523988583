"""The call of a Python function as users give it: its name, and arguments that are values of JSON.

Nothing here imports what is called: a process that adds or starts jobs never runs their code.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import Any, Final

import msgspec

from rota.core.fields.values import MAX_COMMAND, check_argument, kind, shown
from rota.core.jobs.command import CALL_FIELDS, Call, length
from rota.errors import BadInput

_MODULE: Final = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_HINT: Final = "write it like module:function, or path.py:function"
#: What fits into a message between processes.
_LEAST_INT, _MOST_INT = -(1 << 63), (1 << 64) - 1
_MAX_DEPTH: Final = 200


def take_call(fields: dict[str, object], *, text: bool = False) -> Call:
    """The call that these fields of a job describe, which are taken from them. `text`: words of the command line.

    Raises `BadInput` with the field.
    """
    given = {name: fields.pop(name) for name in CALL_FIELDS if name in fields}
    values: dict[str, Any] = {}
    for name, check in (
        ("call", check_function),
        ("args", _args),
        ("kwargs", _kwargs),
        ("python", _python),
        ("each", _each),
    ):
        value = given.get(name)
        try:
            if value is not None or name == "call":
                values[name] = check(_decoded(value) if text and name in ("args", "kwargs") else value)
        except BadInput as error:
            raise error.at(field=name, label=f"--{name}" if text else "") from None
    call = Call(**values)
    if call.each and not all(isinstance(arguments, list) for arguments in call.args):
        raise BadInput("must be a list of lists, with 'each'", hint="write it like [[1], [2]]").at(field="args")
    if length(call) * 4 > MAX_COMMAND and (size := len(msgspec.json.encode(call))) > MAX_COMMAND:
        too_long = BadInput(
            f"the call with its arguments has {size:,} bytes of JSON, at most {MAX_COMMAND:,} are allowed",
            hint="write larger data to a file, and pass its path",
        )
        raise too_long.at(field="args", label="--args" if text else "")
    return call


def _args(value: object) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise BadInput(f"must be a list, not {kind(value)}", hint='write it like [1, "a"]')
    found: list[Any] = plain(list(value))
    return found


def _kwargs(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadInput(f"must be an object, not {kind(value)}", hint='write it like {"k": 3}')
    for key in value:
        if not isinstance(key, str) or not key.isidentifier():
            raise BadInput(f"{shown(str(key))!r} is no name of an argument", hint='write it like {"k": 3}')
    found: dict[str, Any] = plain(value)
    return found


def _each(value: object) -> bool:
    if not isinstance(value, bool):
        raise BadInput(f"must be true or false, not {kind(value)}")
    return value


def _python(value: object) -> str:
    if not isinstance(value, str):
        raise BadInput(f"must be a text, not {kind(value)}", hint="give the path of an interpreter")
    check_argument(value)
    return value


def check_function(value: object) -> str:
    """`module:function` or `path.py:function`. Raises `BadInput`."""
    if value is None:
        raise BadInput("missing", hint=_HINT)
    if not isinstance(value, str):
        raise BadInput(f"must be a text, not {kind(value)}", hint=_HINT)
    check_argument(value)
    module, colon, function = value.rpartition(":")
    if not colon or not module or not _MODULE.fullmatch(function):
        raise BadInput(f"'{shown(value)}' names no function", hint=_HINT)
    if not module.endswith(".py") and not _MODULE.fullmatch(module):
        raise BadInput(f"'{shown(module)}' is neither a module nor the path of a .py file", hint=_HINT)
    return value


def plain(value: Any, place: str = "", depth: int = 0) -> Any:
    """The same value, with lists for tuples. Raises `BadInput` that says what is not JSON, and where."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        if not _LEAST_INT <= value <= _MOST_INT:
            raise _unfit(place, "is an integer of more than 64 bits", "pass it as a text, and convert it there")
        return int(value)
    if isinstance(value, float):
        if not isfinite(value):
            raise _unfit(place, f"is {value}, which JSON cannot say", "pass null, or a text")
        return float(value)
    if depth > _MAX_DEPTH:
        raise _unfit("", "is nested too deeply, or contains itself", "write it to a file, and pass its path")
    if isinstance(value, list | tuple):
        return [plain(each, f"{place}[{n}]", depth + 1) for n, each in enumerate(value)]
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise _unfit(place, f"has the key {key!r}, which is not a text", "use texts as keys")
        return {key: plain(each, f"{place}[{key!r}]", depth + 1) for key, each in value.items()}
    what = f"is of type {type(value).__name__}, which is not JSON"
    if callable(value):
        raise _unfit(place, what, "pass the function's name, or write what it does into the called function")
    raise _unfit(place, what, "pass numbers, texts, lists and objects of them, or the path of a file")


def _unfit(place: str, what: str, hint: str) -> BadInput:
    return BadInput(f"{place} {what}".strip(), hint=hint)


def _decoded(value: object) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise BadInput(f"is not valid JSON: {error}", hint="quote it for the shell: '[1, \"a\"]'") from None
