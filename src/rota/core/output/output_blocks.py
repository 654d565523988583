"""Where the output of an attempt is in its segment, and the checksums of its blocks.

An output is stdout, then stderr, each in blocks of equal size but the last. Every block has a checksum, so any
part can be verified without reading the rest. Rows of older versions have none.
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
    """The location of one attempt's output, and its lengths."""

    segment: str
    offset: int
    out_len: int
    err_len: int
    out_total: int  #: bytes written by the job; more than `out_len` if the middle was left out
    err_total: int
    kept: OutputReport | None = None

    def begins(self, stream: int) -> int:
        """Offset of a stream (1: stdout, 2: stderr) in the segment."""
        return self.offset + (0 if stream == 1 else self.out_len)

    def length(self, stream: int) -> int:
        return self.out_len if stream == 1 else self.err_len

    def total(self, stream: int) -> int:
        return self.out_total if stream == 1 else self.err_total

    def left_out(self, stream: int) -> int:
        """Bytes of the middle that were not kept because the output exceeded `keep_output`."""
        if self.kept is not None and self.kept.missing:
            return 0
        return max(0, self.total(stream) - self.length(stream))

    def head(self, stream: int) -> int:
        """Offset of the gap within the kept bytes. Older rows, which do not record it, were cut in the middle."""
        if self.kept is None:
            return self.length(stream) // 2
        head = self.kept.out_head if stream == 1 else self.kept.err_head
        return min(head, self.length(stream))

    def sums(self, stream: int) -> tuple[int, ...]:
        """Checksums of a stream's blocks; too few of them mean damage."""
        if self.kept is None:
            return ()
        first = blocks(self.out_len)
        return self.kept.sums[:first] if stream == 1 else self.kept.sums[first:]


def block_size(length: int) -> int:
    """The block size for a stream of this length: a power of two, for few blocks of moderate size."""
    size = _LEAST_BLOCK
    while size * _MOST_BLOCKS < length and size < _LARGEST_BLOCK:
        size *= 2
    return size


def blocks(length: int) -> int:
    """The number of blocks of a stream."""
    return -(-length // block_size(length))


def checksums(out: bytes, err: bytes) -> tuple[int, ...]:
    """The checksums of a whole output."""
    return (*_checksums(out), *_checksums(err))


def _checksums(data: bytes) -> Iterator[int]:
    size = block_size(len(data))
    if 0 < len(data) <= size:
        yield crc32(data)
        return
    view = memoryview(data)
    for at in range(0, len(data), size):
        yield crc32(view[at : at + size])
