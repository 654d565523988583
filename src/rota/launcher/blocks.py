"""A file of checksummed blocks, appended to without fsync. It does not know what the records mean.

Each write is one block: its length, a checksum, and a msgpack array of records. Only a reboot loses what was
written. Reading never fails: a truncated or damaged end is left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from errno import ENOSPC
from struct import Struct as Layout
from typing import TypeVar
from zlib import crc32

import msgspec

_HEADER = Layout(">IIBI")  # length and checksum of what follows: an array of so many records
_SIZE, _fill_in = _HEADER.size, _HEADER.pack_into
_ARRAY = 0xDD  # how msgpack marks an array whose length takes four bytes
_PREFIX = 8  # bytes of the header that are not part of the array
_MAX_BLOCK = 1 << 30
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC

R = TypeVar("R")

#: Adds a record to a block.
encode_into = msgspec.msgpack.Encoder().encode_into


def pack(records: Iterable[object]) -> bytes:
    """Encode records as one block."""
    block = empty()
    count = 0
    for record in records:
        encode_into(record, block, -1)
        count += 1
    return bytes(sealed(block, count))


def empty() -> bytearray:
    """A block without records, to which `encode_into` adds some."""
    return bytearray(_SIZE)


def sealed(block: bytearray, count: int) -> bytearray:
    """Fill in the header of a block with so many records."""
    checksum = crc32(memoryview(block)[_SIZE:], count)
    _fill_in(block, 0, len(block) - _PREFIX, checksum, _ARRAY, count)
    return block


def unpack(data: bytes, decode: Callable[[bytes], list[R]]) -> tuple[list[R], bool]:
    """All records of whole blocks up to the first damage, and whether that is all that was written.

    A block cut short at the end is no loss: its writer acts on an intent only when the block is whole.
    """
    found: list[R] = []
    at, end = 0, len(data)
    while at + _HEADER.size <= end:
        length, checksum, _, count = _HEADER.unpack_from(data, at)
        block = data[at : at + _PREFIX + length]
        if len(block) < _PREFIX + length:
            return found, length <= _MAX_BLOCK and not _holds_more(block, checksum, count)
        if length > _MAX_BLOCK or crc32(block[_HEADER.size :], count) != checksum:
            return found, False
        try:
            found += decode(block[_PREFIX:])
        except msgspec.DecodeError:
            return found, False
        at += _PREFIX + length
    return found, True


def _holds_more(tail: bytes, checksum: int, count: int) -> bool:
    """Is this a whole block whose length field is damaged?"""
    view = memoryview(tail)[_HEADER.size :]
    for at in range(len(view)):
        count = crc32(view[at : at + 1], count)
        if count == checksum:
            return True
    return False


def _whole_blocks(data: bytes) -> int:
    """The bytes before the first block that is cut short or damaged."""
    at = 0
    while at + _HEADER.size <= len(data):
        length, checksum, _, count = _HEADER.unpack_from(data, at)
        end = at + _PREFIX + length
        if end > len(data) or crc32(data[at + _HEADER.size : end], count) != checksum:
            break
        at = end
    return at


class BlockFile:
    """Such a file, open for appending."""

    def __init__(self, path: str, *, goes_on: bool = False) -> None:
        """Makes the file; one that was there is replaced, unless it `goes_on`. Raises `OSError`."""
        self._path = path
        self._fd = os.open(path, _FLAGS, 0o600) if goes_on else _fresh(path)
        self.size = 0  #: bytes on file
        if goes_on:
            # Its writer may have been killed in the middle of a block: the next must not come after garbage.
            with open(path, "rb") as file:
                self.size = _whole_blocks(file.read())
            os.ftruncate(self._fd, self.size)

    def append(self, records: Iterable[object]) -> None:
        """Write records as one block. Raises `OSError`, and then none of them is in the file."""
        self.write(pack(records))

    def write(self, data: bytes | bytearray) -> None:
        """Write packed blocks. Raises `OSError`, and then none of them is in the file."""
        written = 0
        try:
            written = os.write(self._fd, data)
        finally:
            if written != len(data):
                # The disk filled up in the middle of a block: the next must not come after garbage.
                os.ftruncate(self._fd, self.size)
        if written != len(data):
            raise OSError(ENOSPC, os.strerror(ENOSPC))
        self.size += written

    def replace(self, records: Iterable[object]) -> None:
        """Replace all records. Raises `OSError`; the old file then stays in use."""
        data = pack(records)
        path = f"{self._path}.new"
        fd = _fresh(path)
        try:
            _write_whole(fd, data)
            os.rename(path, self._path)
        except OSError:
            os.close(fd)
            raise
        os.close(self._fd)
        self._fd, self.size = fd, len(data)

    def close(self) -> None:
        os.close(self._fd)


def _fresh(path: str) -> int:
    return os.open(path, _FLAGS | os.O_TRUNC, 0o600)


def _write_whole(fd: int, data: bytes) -> None:
    if os.write(fd, data) != len(data):
        raise OSError(ENOSPC, os.strerror(ENOSPC))
