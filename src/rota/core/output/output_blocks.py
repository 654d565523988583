"""Where the output of an attempt lies in its segment, and the checksums of its blocks.

An output is stdout, then stderr, each in blocks; the last block of each may be shorter. Every block has a
checksum, so that any part can be verified without reading the rest. Rows of older versions know nothing of this.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from zlib import crc32

from msgspec import Struct

from rota.core.output.output_report import OutputReport

_LEAST_BLOCK: Final = 16 << 10
_LARGEST_BLOCK: Final = 4 << 20
_MOST_BLOCKS: Final = 1024


class Output(Struct, frozen=True, gc=False):
    """Where the output of one attempt lies, and how long it should be."""

    segment: str
    offset: int
    out_len: int
    err_len: int
    out_total: int  #: bytes that the job wrote; more than `out_len` when the middle was left out
    err_total: int
    kept: OutputReport | None = None

    def begins(self, stream: int) -> int:
        """Where a stream (1: stdout, 2: stderr) begins in the segment."""
        return self.offset + (0 if stream == 1 else self.out_len)

    def length(self, stream: int) -> int:
        return self.out_len if stream == 1 else self.err_len

    def total(self, stream: int) -> int:
        return self.out_total if stream == 1 else self.err_total

    def left_out(self, stream: int) -> int:
        """So many bytes of the middle were not kept, because there were more than `keep_output`."""
        if self.kept is not None and self.kept.missing:
            return 0
        return max(0, self.total(stream) - self.length(stream))

    def head(self, stream: int) -> int:
        """Where in what is kept the middle was left out. Older rows do not say; they cut in halves."""
        if self.kept is None:
            return self.length(stream) // 2
        head = self.kept.out_head if stream == 1 else self.kept.err_head
        return min(head, self.length(stream))

    def sums(self, stream: int) -> tuple[int, ...]:
        """The checksums of the blocks of a stream; too few of them mean that something is wrong."""
        if self.kept is None:
            return ()
        first = blocks(self.out_len)
        return self.kept.sums[:first] if stream == 1 else self.kept.sums[first:]


def block_size(length: int) -> int:
    """Of a stream of which so much is kept: a power of two, so that there are few blocks and none is large."""
    size = _LEAST_BLOCK
    while size * _MOST_BLOCKS < length and size < _LARGEST_BLOCK:
        size *= 2
    return size


def blocks(length: int) -> int:
    """How many blocks a stream has."""
    return -(-length // block_size(length))


def checksums(out: bytes, err: bytes) -> tuple[int, ...]:
    """Those of a whole output."""
    return (*_checksums(out), *_checksums(err))


def _checksums(data: bytes) -> Iterator[int]:
    size = block_size(len(data))
    if 0 < len(data) <= size:
        yield crc32(data)
        return
    view = memoryview(data)
    for at in range(0, len(data), size):
        yield crc32(view[at : at + size])
