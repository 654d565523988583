"""What a job prints, kept in memory until it ends: everything up to a limit, then only head and tail.

No I/O: bytes come in, pieces are read back. Offsets always count from the first byte ever written. What is
stored in the end lacks the steps of progress bars: a terminal would have overwritten them.
"""

from __future__ import annotations

import codecs
import re
from collections import deque
from collections.abc import Sequence
from typing import Final, Protocol

from rota.runner.output.backlog import Backlog

#: Text that a carriage return overwrites. (A return before a newline overwrites nothing.)
_OVERWRITTEN: Final = re.compile(rb"[^\r\n]*\r+(?=[^\r\n])")
#: Pieces in which the tail is given up.
_PIECE: Final = 64 * 1024
_Utf8: Final = codecs.getincrementaldecoder("utf-8")


class Captured(Protocol):
    """One stream of one attempt: what of it is kept, and what can be read of it."""

    keep: int
    backlog: Backlog | None  #: of a reader that wants every byte, once not all fits

    @property
    def total(self) -> int:
        """Bytes written by the job."""
        ...

    @property
    def tail_at(self) -> int:
        """The offset of the bytes that must be given up first."""
        ...

    @property
    def memory(self) -> int:
        """Bytes that it holds in memory."""
        ...

    def add(self, data: bytes) -> None:
        """The job has written this."""
        ...

    def parts(self) -> tuple[bytes, bytes]:
        """Head and tail; the tail is empty if nothing was left out."""
        ...

    def kept(self) -> tuple[bytes, int, int]:
        """What to store, its length had nothing been left out, and the length of the part before the gap."""
        ...

    def read(self, offset: int, limit: int) -> tuple[int, bytes]:
        """At most `limit` bytes from `offset` on, and where they begin: later than asked for if what
        lies there was left out."""
        ...

    def park(self) -> bool:
        """The stream has ended: move what its reader lacks out of memory. False: there is no room for it."""
        ...


class Capture:
    """One stream of one attempt, in this process's memory."""

    __slots__ = ("_head", "_head_len", "_tail", "_tail_len", "backlog", "keep", "total")

    def __init__(self, keep: int) -> None:
        self.keep = keep
        self._head: list[bytes] = []
        self._head_len = 0
        self._tail: deque[bytes] | None = None  #: None while everything fits
        self._tail_len = 0
        self.total = 0  #: bytes written by the job
        self.backlog: Backlog | None = None  #: of a reader that wants every byte, once not all fits

    @classmethod
    def resumed(cls, keep: int, head: bytes, at: int) -> Capture:
        """Of a stream whose first bytes are these, and which goes on at this offset."""
        capture = cls(keep)
        if at:
            capture._head, capture._head_len = [head], len(head)
            capture._tail, capture.total = deque(), at
        return capture

    def add(self, data: bytes) -> None:
        self.total += len(data)
        if self._tail is None:
            self._head.append(data)
            self._head_len += len(data)
            if self._head_len <= self.keep:
                return
            self._split()
            return
        self._tail.append(data)
        self._tail_len += len(data)
        self._trim()

    def _split(self) -> None:
        """It no longer fits: from now on keep a head and a tail of half the limit each."""
        whole = b"".join(self._head)
        half = self.keep // 2
        self._head = [whole[:half]]
        self._head_len = half
        self._tail = deque(whole[at : at + _PIECE] for at in range(half, len(whole), _PIECE))
        self._tail_len = len(whole) - half
        self._trim()

    def _trim(self) -> None:
        tail = self._tail
        assert tail is not None
        room = self.keep - self.keep // 2
        backlog = self.backlog
        while tail and self._tail_len - len(tail[0]) >= room:
            if backlog is not None and not backlog.save(self.total - self._tail_len, tail[0]):
                return
            self._tail_len -= len(tail.popleft())

    def parts(self) -> tuple[bytes, bytes]:
        """Head and tail; the tail is empty if nothing was left out."""
        head = b"".join(self._head)
        self._head = [head]
        if self._tail is None:
            return head, b""
        tail = b"".join(self._tail)
        room = self.keep - self.keep // 2
        return head, tail[-room:] if room else b""

    def kept(self) -> tuple[bytes, int, int]:
        """What to store, its length had nothing been left out, and the length of the part before the gap."""
        head, tail = self.parts()
        left_out = self.total - len(head) - len(tail)
        head, tail = collapsed(head), collapsed(tail)
        return head + tail, left_out + len(head) + len(tail), len(head)

    def read(self, offset: int, limit: int) -> tuple[int, bytes]:
        """At most `limit` bytes from `offset` on, and where they begin: later than asked for if what
        lies there was left out."""
        if offset < self._head_len:
            return offset, _cut(self._head, self._head_len, offset, limit)
        tail_at = self.tail_at
        if offset < tail_at and self.backlog is not None:
            at, data = self.backlog.read(offset, limit)
            if data:
                return at, data
        at = max(offset, tail_at)
        if self.backlog is None:
            at = max(at, self.total - self.keep + self.keep // 2)  # earlier bytes are about to be dropped
        return at, _cut(self._tail or (), self._tail_len, at - tail_at, limit)

    @property
    def tail_at(self) -> int:
        """The offset of the bytes that must leave memory first."""
        return self.total - self._tail_len if self._tail is not None else min(self.keep // 2, self.total)

    @property
    def memory(self) -> int:
        """Bytes that it holds in memory."""
        return self._head_len + self._tail_len

    def park(self) -> bool:
        """The stream has ended: move what its reader lacks out of memory. False: there is no room for it."""
        backlog = self.backlog
        if backlog is None:
            return False
        if not backlog.save_head(b"".join(self._head)):
            return False
        self._head, self._head_len = [], 0
        while self._tail and backlog.joins(self.total - self._tail_len):
            if not backlog.save(self.total - self._tail_len, self._tail[0]):
                return False
            self._tail_len -= len(self._tail.popleft())
        self._tail = self._tail or deque()
        return True


def _cut(chunks: Sequence[bytes], size: int, offset: int, limit: int) -> bytes:
    """At most `limit` bytes from `offset` on of these chunks, which are `size` bytes together.

    Readers are mostly near one end, so it is looked for from the nearer one.
    """
    if 2 * offset <= size:
        begin, index = 0, 0
        while index < len(chunks) and begin + len(chunks[index]) <= offset:
            begin += len(chunks[index])
            index += 1
    else:
        begin, index = size, len(chunks)
        while index and begin > offset:
            index -= 1
            begin -= len(chunks[index])
    found, have = [], 0
    for place in range(index, len(chunks)):
        piece = chunks[place][max(0, offset - begin) :][: limit - have]
        begin += len(chunks[place])
        found.append(piece)
        have += len(piece)
        if have >= limit:
            break
    return b"".join(found)


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
