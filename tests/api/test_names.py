"""Operation ids and schema names are what generated clients are made of: `names.json` lists them all.

A new operation or type is added to that list; nothing in it is ever changed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from rota.api.operations import OperationTable
from rota.api.routes import OPERATIONS
from rota.api.schema import document
from rota.api.schema_names import SCHEMA_NAMES
from rota.api.typescript import text

_KNOWN = json.loads(Path(__file__).with_name("names.json").read_bytes())
_TYPES = Path(__file__).parents[2] / "web/src/api/types.ts"


def _described() -> Any:
    return msgspec.json.decode(document(OPERATIONS))


def test_every_operation_has_the_id_it_always_had() -> None:
    ids = {
        f"{method.upper()} {path}": operation["operationId"]
        for path, methods in _described()["paths"].items()
        for method, operation in methods.items()
    }
    assert ids == _KNOWN["operations"]


def test_every_schema_has_the_name_it_always_had() -> None:
    schemas = _described()["components"]["schemas"]
    assert list(schemas) == _KNOWN["schemas"]
    assert {name: schema["title"] for name, schema in schemas.items()} == {name: name for name in schemas}


def test_every_schema_is_named_in_the_table() -> None:
    assert sorted(SCHEMA_NAMES.values()) == _KNOWN["schemas"]


def test_schemas_keep_their_names_when_their_classes_are_renamed() -> None:
    before, names = document(OPERATIONS), [kind.__name__ for kind in SCHEMA_NAMES]
    try:
        for n, kind in enumerate(SCHEMA_NAMES):
            kind.__name__ = f"Renamed{n}"
        after = document(OPERATIONS)
    finally:
        for kind, name in zip(SCHEMA_NAMES, names, strict=True):
            kind.__name__ = name
    assert after == before


def test_an_operation_keeps_its_id_when_its_handler_is_renamed() -> None:
    async def renamed(_ask: Any) -> None:
        """Do something."""

    table = OperationTable("subject")
    table.get("/somewhere", "its_id")(renamed)
    assert [each.id for each in table.operations] == ["its_id"]


def test_the_types_of_the_dashboard_are_current() -> None:
    assert _TYPES.read_text("utf-8") == text(), "write them with: make docs"
