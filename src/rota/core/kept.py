"""What is known of an output that was kept, beside where it lies: its checksums, and where its middle is left out.

An output is stdout, then stderr, each in blocks; the last block of each may be shorter. Every block has a
checksum, so that any part can be verified without reading the rest. Rows of older versions know nothing of this.
"""

from __future__ import annotations

from collections.abc import Iterator
from errno import EDQUOT, ENOSPC
from typing import Final
from zlib import crc32

from msgspec import Struct

#: Codes of `output_missing`: why an output that should be there is not.
DISK_FULL: Final = "disk_full"  #: there was no room to write it
NOT_WRITTEN: Final = "not_written"  #: writing failed otherwise
NOT_SENT: Final = "not_sent"  #: a node did not send it
PRUNED: Final = "pruned"  #: it was too old or took too much space, as the settings say
GONE: Final = "gone"  #: its segment is not there
CUT: Final = "cut"  #: its segment ends too early
DAMAGED: Final = "damaged"  #: its segment holds something else
UNREADABLE: Final = "unreadable"  #: its segment cannot be read

_LEAST_BLOCK: Final = 16 << 10
_LARGEST_BLOCK: Final = 4 << 20
_MOST_BLOCKS: Final = 1024


class Kept(Struct, frozen=True, array_like=True, gc=False):
    """What a runner says about an output that it kept, or could not keep."""

    sums: tuple[int, ...] = ()  #: CRC-32 of each block of stdout, then of stderr
    out_head: int = 0  #: bytes of stdout before the gap, where its middle was left out
    err_head: int = 0
    missing: str = ""  #: a code from above: nothing of it could be kept
    message: str = ""


class Output(Struct, frozen=True, gc=False):
    """Where the output of one attempt lies, and how long it should be."""

    segment: str
    offset: int
    out_len: int
    err_len: int
    out_total: int  #: bytes that the job wrote; more than `out_len` when the middle was left out
    err_total: int
    kept: Kept | None = None

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


def not_kept(error: OSError, *, whose: str = "the disk") -> Kept:
    """What is said of an output that could not be written."""
    if error.errno in (ENOSPC, EDQUOT):
        return Kept(missing=DISK_FULL, message=f"{whose} was full when its output was to be kept")
    return Kept(missing=NOT_WRITTEN, message=f"its output could not be written: {error.strerror}")


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
