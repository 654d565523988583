"""Every struct that is sent or stored has the tag and the fields, in this order, that `forms.json` lists.

Golden files of a release tell what was changed since; this also guards what no release has yet. A new field is
added to the list, behind the others of an array. Nothing in it is ever changed otherwise.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect as mi

import rota.wire
from rota.launcher import journal as launcher_journal
from rota.launcher import messages as launcher_messages
from rota.runner.report import journal
from rota.wire import messages
from tests.golden.launcher_names import FROM_AGENT, FROM_LAUNCHER, LAUNCHER_RECORDS
from tests.golden.names import MESSAGES, RECORDS, TABLES, name_of
from tests.golden.samples import plain

_KNOWN = json.loads(Path(__file__).with_name("forms.json").read_bytes())


def _form(kind: type[msgspec.Struct]) -> dict[str, Any]:
    config = kind.__struct_config__
    tag = {"tag": config.tag} if config.tag is not None else {}
    fields = "array" if config.array_like else "object"
    return tag | {fields: " ".join(kind.__struct_encode_fields__)}


def forms() -> dict[str, Any]:
    return {title: {name: _form(kind) for name, kind in table.items()} for title, table in TABLES.items()}


def _structs(kind: Any, seen: set[Any]) -> Iterator[type[msgspec.Struct]]:
    """This struct and all in its fields."""
    if isinstance(kind, mi.StructType):
        if kind.cls in seen:
            return
        seen.add(kind.cls)
        yield kind.cls
        parts = [field.type for field in kind.fields]
    else:
        values = [getattr(kind, name) for name in kind.__struct_fields__]
        parts = [part for value in values for part in (value if isinstance(value, tuple) else (value,))]
    for part in parts:
        if isinstance(part, mi.Type):
            yield from _structs(part, seen)


def test_tags_and_fields_are_what_they_always_were() -> None:
    assert forms() == _KNOWN


def test_every_message_and_record_is_known() -> None:
    unions = (messages.FromClient, messages.ToClient, messages.FromRunner, messages.ToRunner)
    assert set(MESSAGES.values()) == {kind for union in unions for kind in typing.get_args(union)}
    assert set(RECORDS.values()) == set(typing.get_args(journal.Record))
    assert set(FROM_AGENT.values()) == set(typing.get_args(launcher_messages.FromAgent))
    assert set(FROM_LAUNCHER.values()) == set(typing.get_args(launcher_messages.FromLauncher))
    assert set(LAUNCHER_RECORDS.values()) == set(typing.get_args(launcher_journal.Record))


def test_every_struct_on_the_wire_is_known_with_its_parts() -> None:
    names = [each.name for each in pkgutil.walk_packages(rota.wire.__path__, f"{rota.wire.__name__}.")]
    defined = {
        value
        for name in names
        for value in vars(importlib.import_module(name)).values()
        if isinstance(value, type)
        and issubclass(value, msgspec.Struct)
        and value is not messages.Message
        and value.__module__ == name
    }
    known = {kind for table in TABLES.values() for kind in table.values()}
    seen: set[Any] = set()
    used = {part for kind in known | defined for part in _structs(mi.type_info(kind), seen)}
    assert used - {msgspec.Struct} == known


def test_a_renamed_class_is_still_the_same_to_golden_files() -> None:
    stop = messages.Stop(n=1, stream=2)
    before, name = (forms(), plain(stop)), messages.Stop.__name__
    try:
        messages.Stop.__name__ = "Renamed"
        assert (forms(), plain(stop)) == before
    finally:
        messages.Stop.__name__ = name
    assert name_of(messages.Stop) == "Stop"
