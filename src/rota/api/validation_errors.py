"""Turns validation errors into messages that name the field and the allowed values."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec
import msgspec.inspect as types

from rota.errors import BadInput

_SEE: Final = "see /api/v1/openapi.json"
_WRONG_WORD: Final = re.compile(r"Invalid enum value '?(.*?)'?", re.DOTALL)
_NO_FIELD: Final = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(.*)`", re.DOTALL)
#: One step of a path like ``.jobs[3].cmd``: a field, or an item of a list or mapping.
_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[[^\]]*\]")
_LONGEST: Final = 40


def validation_error(part: str, of: str, error: msgspec.ValidationError, kind: Any) -> BadInput:
    """The error for a `part` ('the field') `of` something ('the body') that does not match the type `kind`."""
    wrong, name = _error(part, of, error, kind)
    return wrong.about(name[:_LONGEST]) if name else wrong


def _error(part: str, of: str, error: msgspec.ValidationError, kind: Any) -> tuple[BadInput, str]:
    """The error, and the name of the innermost field that it is about; empty: there is none."""
    message, _, place = str(error).partition(" - at `$")
    place = place.removesuffix("`")
    named = f"{part} {place.lstrip('.')!r}: " if place else ""
    there = _at(types.type_info(kind), place)
    names = [step[1] for step in _STEP.finditer(place) if step[1]]
    name = names[-1] if names else ""
    if found := _WRONG_WORD.fullmatch(message):
        known = [str(value) for each in there if isinstance(each, types.LiteralType) for value in each.values]
        known.sort(key=lambda word: (word.lstrip("-"), word.startswith("-")))
        return BadInput(f"{named or of + ': '}there is no {found[1][:_LONGEST]!r}", hint=_known(known)), name
    if found := _NO_FIELD.fullmatch(message):
        known = [
            field.encode_name for each in there if isinstance(each, types.StructType) for field in each.fields
        ]
        text = f"{named}there is no {part.split()[-1]} {found[1][:_LONGEST]!r}"
        return BadInput(text, hint=_known(known)), found[1]
    if found := _MISSING.fullmatch(message):
        return BadInput(f"{named}{part} {found[1]!r} is missing", hint=_SEE), found[1]
    return BadInput(f"{named or of + ': '}{message[:1].lower()}{message[1:]}", hint=_SEE), name


def _known(words: Iterable[str]) -> str:
    listed = ", ".join(dict.fromkeys(words))
    return f"known are: {listed}" if listed else _SEE


def _at(kind: types.Type, place: str) -> list[types.Type]:
    """The types allowed at this path of a value of type `kind`."""
    found = _members(kind)
    for step in _STEP.finditer(place):
        name, inner = step[1], list[types.Type]()
        for each in found:
            if isinstance(each, types.StructType):
                inner += [field.type for field in each.fields if field.encode_name == name]
            elif isinstance(each, types.ListType | types.VarTupleType) and name is None:
                inner.append(each.item_type)
            elif isinstance(each, types.DictType) and name is None:
                inner.append(each.value_type)
        found = [member for each in inner for member in _members(each)]
    return found


def _members(kind: types.Type) -> list[types.Type]:
    """The alternatives of a union, without their metadata."""
    if isinstance(kind, types.Metadata):
        return _members(kind.type)
    if isinstance(kind, types.UnionType):
        return [member for each in kind.types for member in _members(each)]
    return [kind]
