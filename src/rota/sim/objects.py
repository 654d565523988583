"""Objects of a JSON document as structs. Errors name the path of the field."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import TypeVar

import msgspec
from msgspec import Struct

from rota.errors import BadInput
from rota.sim.values import WrongField, did_you_mean, field, shown

_T = TypeVar("_T", bound=Struct)


def read_object(given: Mapping[str, object], kind: type[_T], path: str, what: str) -> _T:
    """An object as a struct; unknown fields are refused. `what`: a word for the fields, for the hint."""
    known = kind.__struct_fields__
    with field(path) if path else nullcontext():
        for name in given:
            if name not in known:
                raise BadInput(f"there is no {shown(name)} here", hint=did_you_mean(str(name), known, what))
        try:
            return msgspec.convert(given, kind)
        except msgspec.ValidationError as error:
            raise refusal(error) from None


def refusal(error: msgspec.ValidationError) -> BadInput:
    """The decoder's error in the form of ours: `jobs[3].id: expected int, got str`."""
    message, _, place = str(error).partition(" - at ")
    path = place.strip("`").removeprefix("$").removeprefix(".")
    text = message.replace("`", "'")
    text = text[:1].lower() + text[1:]
    hint = "see 'rota simulate --help'"
    return WrongField(path, text, hint=hint) if path else BadInput(text, hint=hint)
