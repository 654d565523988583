"""Checksums of a closed database's pages, in a file beside it.

SQLite notices a malformed page, but not a changed number in it. So closing a database records a checksum of every
page, and the next open compares them. While the database is open there is no such file: it is removed, durably,
before the first change. After a crash there is none either.
"""

from __future__ import annotations

import os
import stat
import struct
from array import array
from pathlib import Path
from typing import Final
from zlib import crc32

from rota.store.home.directories import put_whole, sync_directory

NAME: Final = "checksums"
_DATABASE: Final = "rota.db"
#: Magic, page size, number of pages; then the checksums of the pages, and one of the whole file.
_HEAD: Final = struct.Struct("<8sII")
_MAGIC: Final = b"RotaSums"
_CHUNK: Final = 1 << 20
_HINT: Final = f"; remove the file {NAME} if it was you who changed it"


def write(home: Path) -> None:
    """Record the checksums of a closed database's pages. Raises `OSError`.

    Not synced: a file that did not reach the disk completely is ignored.
    """
    size, sums = _sums(home / _DATABASE)
    body = _HEAD.pack(_MAGIC, size, len(sums)) + sums.tobytes()
    put_whole(home / NAME, body + struct.pack("<I", crc32(body)))


def forget(home: Path) -> None:
    """Remove the file, durably: the database is about to change. Raises `OSError`."""
    try:
        (home / NAME).unlink()
    except FileNotFoundError:
        return
    except OSError:
        if _read(home / NAME) is not None:
            raise
        return  # probably a directory: ignored
    sync_directory(home)


def difference(home: Path) -> str:
    """How the database differs from its state when closed; empty: not at all, or there are no checksums.

    Raises `OSError`.
    """
    known = _read(home / NAME)
    if known is None:
        return ""
    size, sums = _sums(home / _DATABASE)
    if size != known[0] or len(sums) != len(known[1]):
        return f"{len(sums)} pages of {size} bytes are there, {len(known[1])} of {known[0]} were{_HINT}"
    wrong = [number for number, (now, then) in enumerate(zip(sums, known[1], strict=True), 1) if now != then]
    if not wrong:
        return ""
    others = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
    return f"page {wrong[0]}{others} changed since it was closed{_HINT}"


def is_known(home: Path) -> bool:
    """Are there checksums for the pages?"""
    return _read(home / NAME) is not None


def _sums(path: Path) -> tuple[int, array[int]]:
    """The page size, and the checksum of each page."""
    with path.open("rb") as file:
        (size,) = struct.unpack_from(">H", file.read(100).ljust(100, b"\0"), 16)
        size = 65536 if size == 1 else size if size >= 512 and size & (size - 1) == 0 else 4096
        file.seek(0)
        sums = array("I")
        while chunk := file.read(_CHUNK):
            view = memoryview(chunk)
            sums.extend(crc32(view[at : at + size]) for at in range(0, len(chunk), size))
    return size, sums


def _read(path: Path) -> tuple[int, array[int]] | None:
    try:
        # Do not block on a pipe; ignore anything but a regular file.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return None
            data = file.read()
    except OSError:
        return None
    if len(data) < _HEAD.size + 4 or struct.unpack("<I", data[-4:])[0] != crc32(data[:-4]):
        return None
    magic, size, count = _HEAD.unpack_from(data)
    if magic != _MAGIC or len(data) != _HEAD.size + 4 * count + 4:
        return None
    return size, array("I", data[_HEAD.size : -4])
