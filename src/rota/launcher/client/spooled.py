"""Reads the output that a launcher process has captured in its spools."""

from __future__ import annotations

import os
from collections.abc import Callable

from rota.launcher.spool import ERR, OUT, SpooledPipes

#: What was read is reported at the latest after so many bytes.
_REPORTED = 64 * 1024

#: Called with the number of the pipes, the stream, and the offset up to which it was read.
Took = Callable[[int, int, int], None]


class ReadPosition:
    """How far the runner has read one stream."""

    __slots__ = ("at", "reported")

    def __init__(self) -> None:
        self.at = 0
        self.reported = 0


class SpoolReader:
    """Implements `OutputPipes`: a stream is known by the descriptor of its spool, and read from there."""

    polled = False

    def __init__(self, pipes: SpooledPipes, took: Took, close: Callable[[SpooledPipes], None]) -> None:
        self.pipes = pipes
        self.out = pipes.spools[OUT].fd
        self.err = pipes.spools[ERR].fd
        self._took = took
        self._close = close
        self._positions = ReadPosition(), ReadPosition()
        self.waits = False  #: what is written belongs to a process that the runner does not know of yet
        self.missed = False  #: something was not read for that reason

    def read(self, stream: int, size: int, /) -> bytes:
        if self.waits:
            self.missed = True
            raise BlockingIOError
        index = OUT if stream == self.out else ERR
        position = self._positions[index]
        data = os.pread(stream, size, position.at)
        if not data:
            raise BlockingIOError
        position.at += len(data)
        # After a full read there may be more: the launcher reminds of it.
        if len(data) == size or position.at - position.reported >= _REPORTED:
            position.reported = position.at
            self._took(self.pipes.number, index, position.at)
        return data

    def began(self, keep: int) -> int:
        """Another process begins to write, so the spools are emptied; the number of these pipes. `keep`: how many
        bytes of each stream are kept."""
        for spool, position in zip(self.pipes.spools, self._positions, strict=True):
            spool.keep = keep
            position.at = position.reported = 0
        return self.pipes.number

    def refresh(self) -> None:
        """The launcher has died, and this process moves output to the spools from now on."""
        for spool, position in zip(self.pipes.spools, self._positions, strict=True):
            spool.refresh()
            spool.taken = position.at

    def restore(self, index: int) -> tuple[bytes, int]:
        """For a stream that an earlier runner has read: the head that was kept if a part after it was not, and the
        offset from which on `read` continues."""
        spool, position = self.pipes.spools[index], self._positions[index]
        if spool.trimmed <= spool.head:
            return b"", 0
        position.at = position.reported = spool.trimmed
        return os.pread(spool.fd, spool.head, 0), spool.trimmed

    def close(self) -> None:
        self._close(self.pipes)
