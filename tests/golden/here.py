"""Takes a golden home for one of this machine: as if the release had run here, since its last start or before it.

Works on bytes and rows alone, and with no code that could have changed since.
"""

from __future__ import annotations

import contextlib
import sqlite3
import struct
from pathlib import Path
from zlib import crc32

import msgspec

from rota.boot import boot_id, machine_id

_HEADER = struct.Struct(">IIBI")


def adopt(home: Path, *, rebooted: bool) -> None:
    """The journals and the database name this machine; and its present boot, unless it was restarted since."""
    machine, boot = machine_id("nowhere"), boot_id()
    for path in home.parent.glob("**/runners/*/journal"):  # those of agents lie beside it
        path.write_bytes(_renamed(path.read_bytes(), machine, None if rebooted else boot))
        (path.parent / "lock").touch(0o600)
    if not rebooted:
        with contextlib.closing(sqlite3.connect(home / "rota.db")) as db, db:
            db.execute("UPDATE runners SET boot_id = ?", (boot,))


def _renamed(data: bytes, machine: str, boot: str | None) -> bytes:
    """The first record of a journal is who wrote it: tag, runner, machine, boot…"""
    length, _, mark, count = _HEADER.unpack_from(data)
    records = msgspec.msgpack.decode(data[8 : 8 + length])
    assert records[0][0] == "b"
    records[0][2] = machine
    records[0][3] = boot or records[0][3]
    body = b"".join(map(msgspec.msgpack.encode, records))
    return _HEADER.pack(len(body) + 5, crc32(body, count), mark, count) + body + data[8 + length :]
