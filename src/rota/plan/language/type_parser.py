"""Parses the types of a job from `-t`: words such as `besteffort`, `inner=12` or `timesharing=user,*`.

A site may have types of its own, `type:NAME` or `type:NAME=VALUE`, which only its quotas and rules interpret. The
prefix distinguishes them from a misspelt type.

`type_words` writes types in canonical order and spelling, times in Unix seconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from rota.errors import BadInput
from rota.plan.language.reading import require_readable, shown, suggestion
from rota.plan.language.types import Types

#: Type → what is written after `=`; empty: no value.
TYPES: Final = {
    "besteffort": "",
    "idempotent": "",
    "container": "",
    "inner": "ID",
    "timesharing": "user|*,name|*",
    "placeholder": "NAME",
    "allowed": "NAME",
    "deploy": "",
    "cosystem": "",
    "noop": "",
    "deadline": "TIME",
    "postpone": "TIME",
    "expire": "TIME",
    "no_quotas": "",
}
#: Prefix of a site's own types.
FREE: Final = "type:"

#: Types whose value is a time.
MOMENTS: Final = tuple(name for name, value in TYPES.items() if value == "TIME")

_LONGEST: Final = 255
_FREE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_UNIX: Final = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,9})?")
_PLACES: Final = ("deploy", "cosystem", "noop")


def unix_seconds(text: str) -> float:
    """A time as `type_words` writes it. Raises `BadInput`."""
    if not _UNIX.fullmatch(text):
        raise BadInput(f"{shown(text)} is not a time in Unix seconds", hint="write it like 1700000000")
    return float(text)


def parse_types(words: Sequence[str], *, moment: Callable[[str], float] = unix_seconds) -> Types:
    """The types that these words name; `moment` parses a TIME. Raises `BadInput`."""
    given: dict[str, Any] = {}
    free: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        name, value = name.strip(), value.strip()
        if name in given or name in free:
            raise BadInput(f"type '{name}' is given twice", hint="give it once")
        if name.startswith(FREE):
            free[name] = _free(name, value, has_value=bool(equals))
        elif name not in TYPES:
            raise _unknown(name)
        else:
            given[name] = _value(name, value, moment=moment, has_value=bool(equals))
    types = Types(**given, free=tuple(sorted(free.values()))) if free else Types(**given)
    _refuse_contradictions(types)
    return types


def type_words(types: Types) -> tuple[str, ...]:
    """The canonical words of these types, which `parse_types` reads back; times to the microsecond."""
    words: list[str] = []
    for name in TYPES:
        value = getattr(types, name)
        if value is True:
            words.append(name)
        elif isinstance(value, tuple):
            words.append(f"{name}={','.join(value)}")
        elif isinstance(value, float):
            words.append(f"{name}={f'{value:.6f}'.rstrip('0').rstrip('.')}")
        elif value:
            words.append(f"{name}={value}")
    return (*words, *types.free)


def is_free(name: str) -> bool:
    """Is this a valid name of a site's own type?"""
    return name.startswith(FREE) and _FREE_NAME.fullmatch(name, len(FREE)) is not None


def check_reservation(types: Types, at: float) -> None:
    """Raise `BadInput` if a job of these types cannot be a reservation for this time."""
    if types.besteffort:
        raise BadInput("a besteffort job cannot be a reservation", hint="leave out one of them")
    if types.inner:
        raise BadInput("a job inside a container cannot be a reservation", hint="leave out one of them")
    if types.postpone is not None and at < types.postpone:
        raise BadInput("the reservation begins before 'postpone'", hint="leave out type 'postpone'")
    if types.expire is not None and at > types.expire:
        raise BadInput("the reservation begins after 'expire'", hint="leave out type 'expire'")
    if types.deadline is not None and at >= types.deadline:
        raise BadInput("the reservation does not begin before 'deadline'", hint="give an earlier time")


def _unknown(name: str) -> BadInput:
    if not name:
        return BadInput("a type is empty", hint=f"types: {', '.join(TYPES)}")
    if "," in name:
        return BadInput(f"unknown type {shown(name)}", hint="give -t once for each type")
    hint = suggestion(name, TYPES, what="types")
    if "mean" not in hint:
        hint = f"types: {', '.join(TYPES)}"
    if is_free(FREE + name):
        hint += f"; one of the site's own is written {FREE}{name}"
    return BadInput(f"unknown type {shown(name)}", hint=hint)


def _free(name: str, value: str, *, has_value: bool) -> str:
    if not is_free(name):
        raise BadInput(
            f"type {shown(name)} cannot be one of the site's own",
            hint=f"write {FREE}NAME with letters, digits and . _ - (at most 64)",
        )
    if not has_value:
        return name
    require_readable(value, what=f"value of type '{name}'", longest=_LONGEST)
    if not value or not value.isprintable() or "," in value:
        raise BadInput(f"type '{name}': {shown(value)} is not a value", hint=f"write {name}, or {name}=WORD")
    return f"{name}={value}"


def _value(
    name: str, value: str, *, moment: Callable[[str], float], has_value: bool
) -> bool | str | float | tuple[str, str]:
    wanted = TYPES[name]
    if not wanted:
        if has_value:
            raise BadInput(f"type '{name}' takes no value", hint=f"write {name}")
        return True
    if name == "timesharing":
        return _sharing(value) if has_value else ("*", "*")
    if not value:
        raise BadInput(f"type '{name}' needs a value", hint=f"write {name}={wanted}")
    require_readable(value, what=f"value of type '{name}'", longest=_LONGEST)
    if wanted == "TIME":
        try:
            return float(moment(value))
        except BadInput as error:
            raise BadInput(f"type '{name}': {error.message}", hint=error.hint) from None
    if not value.isprintable():
        raise BadInput(f"type '{name}': {shown(value)} is not printable", hint=f"write {name}={wanted}")
    return value


def _sharing(value: str) -> tuple[str, str]:
    user, comma, name = (part.strip() for part in value.partition(","))
    if not comma or user not in ("user", "*") or name not in ("name", "*"):
        raise BadInput(
            f"type 'timesharing': {shown(value)} is not understood",
            hint="write timesharing=user,name with * for what may differ, such as timesharing=user,*",
        )
    return user, name


def _refuse_contradictions(types: Types) -> None:
    places = [name for name in _PLACES if getattr(types, name)]
    if len(places) > 1:
        raise BadInput(f"types '{places[0]}' and '{places[1]}' exclude each other", hint="give one of them")
    if types.postpone is not None:
        if types.deadline is not None and types.postpone >= types.deadline:
            raise BadInput(
                "type 'postpone' is not before 'deadline'", hint="let it start before it must have ended"
            )
        if types.expire is not None and types.postpone > types.expire:
            raise BadInput("type 'postpone' is after 'expire'", hint="let it start before it gives up")
