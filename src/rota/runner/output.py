"""What a job prints, kept in memory until it ends: whole up to a bound, beyond it head and tail.

No I/O: bytes come in, pieces are read back. Offsets always count from the first byte ever written. What is
kept for good is without the steps of progress bars, which a terminal would have overwritten.
"""

from __future__ import annotations

import codecs
import re
from collections import deque
from typing import Final

#: The part of a line that what follows a carriage return overwrites. (A return before a newline is one.)
_OVERWRITTEN: Final = re.compile(rb"[^\r\n]*\r+(?=[^\r\n])")
_Utf8: Final = codecs.getincrementaldecoder("utf-8")


class Capture:
    """One stream of one attempt."""

    __slots__ = ("_head", "_head_len", "_keep", "_tail", "_tail_len", "total")

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._head: list[bytes] = []
        self._head_len = 0
        self._tail: deque[bytes] | None = None  #: None while everything fits
        self._tail_len = 0
        self.total = 0  #: bytes written by the job

    def add(self, data: bytes) -> None:
        self.total += len(data)
        if self._tail is None:
            self._head.append(data)
            self._head_len += len(data)
            if self._head_len <= self._keep:
                return
            self._split()
            return
        self._tail.append(data)
        self._tail_len += len(data)
        self._trim()

    def _split(self) -> None:
        """It no longer fits: from now on keep the first half and the last."""
        whole = b"".join(self._head)
        half = self._keep // 2
        self._head = [whole[:half]]
        self._head_len = half
        self._tail = deque([whole[half:]])
        self._tail_len = len(whole) - half
        self._trim()

    def _trim(self) -> None:
        tail = self._tail
        assert tail is not None
        room = self._keep - self._keep // 2
        while tail and self._tail_len - len(tail[0]) >= room:
            self._tail_len -= len(tail.popleft())

    def parts(self) -> tuple[bytes, bytes]:
        """Head and tail; the tail is empty if nothing was left out."""
        head = b"".join(self._head)
        self._head = [head]
        if self._tail is None:
            return head, b""
        tail = b"".join(self._tail)
        room = self._keep - self._keep // 2
        return head, tail[-room:] if room else b""

    def kept(self) -> tuple[bytes, int, int]:
        """What is worth keeping, how much it would be had nothing been left out, and after how many of the kept
        bytes that was."""
        head, tail = self.parts()
        left_out = self.total - len(head) - len(tail)
        head, tail = collapsed(head), collapsed(tail)
        return head + tail, left_out + len(head) + len(tail), len(head)

    def read(self, offset: int, limit: int) -> tuple[int, bytes]:
        """At most `limit` bytes from `offset` on, and where they begin: later than asked for if what
        lies there was left out."""
        head, tail = self.parts()
        if offset < len(head):
            return offset, head[offset : offset + limit]
        tail_at = self.total - len(tail)
        at = max(offset, tail_at)
        return at, tail[at - tail_at : at - tail_at + limit]


def collapsed(data: bytes) -> bytes:
    """Text without what carriage returns overwrite. What is not text stays as it is, byte for byte."""
    if b"\r" not in data or b"\0" in data:
        return data
    cut = 0  # head and tail may begin or end within a character
    while cut < min(3, len(data)) and 0x80 <= data[cut] < 0xC0:
        cut += 1
    try:
        _Utf8().decode(data[cut:])
    except UnicodeDecodeError:
        return data
    return _OVERWRITTEN.sub(b"", data)
