"""Writes the golden file of a version of the protocol between agents and launchers.

`python -m tests.golden.launcher_formats FILE`, once for each version, before the next one is begun.
"""

from __future__ import annotations

import base64
import lzma
import sys
from pathlib import Path
from typing import Any

import msgspec

from rota.launcher import blocks
from rota.runner.launch.notes import VERSION, TaskNote
from tests.golden.launcher_names import FROM_AGENT, FROM_LAUNCHER, LAUNCHER_RECORDS
from tests.golden.samples import plain, samples


def made() -> dict[str, list[dict[str, Any]]]:
    """Messages of either side, records of the journal, and notes: as bytes, and what they mean."""
    notes = [msgspec.structs.replace(value, version=VERSION) for value in samples(TaskNote)]
    return {
        "agent": _frames(FROM_AGENT),
        "launcher": _frames(FROM_LAUNCHER),
        "journal": [_one(blocks.pack([value]), value) for value in _all(LAUNCHER_RECORDS)],
        "notes": [_one(msgspec.msgpack.encode(value), value) for value in notes],
    }


def _frames(table: dict[str, type[msgspec.Struct]]) -> list[dict[str, Any]]:
    return [_one(msgspec.msgpack.encode(value), value) for value in _all(table)]


def _all(table: dict[str, type[msgspec.Struct]]) -> list[Any]:
    return [value for kind in table.values() for value in samples(kind)]


def _one(data: bytes, value: Any) -> dict[str, Any]:
    return {"data": base64.b64encode(data).decode(), "value": plain(value)}


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(lzma.compress(msgspec.json.encode(made())))
