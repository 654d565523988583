"""A pseudo-terminal, at the master side. Knows nothing about jobs or channels."""

from __future__ import annotations

import os

from rota.launcher import stdio

_EOF = b"\x04"


class Terminal:
    """One pseudo-terminal."""

    __slots__ = ("fd", "line_begun")

    def __init__(self, fd: int) -> None:
        self.fd = fd  #: of the master side
        self.line_begun = False  #: has something been typed since the last new line?

    def resize(self, rows: int, cols: int) -> None:
        """Programs in the foreground get SIGWINCH."""
        stdio.resize(self.fd, rows, cols)

    def foreground(self) -> int:
        """The process group that the keyboard belongs to, or 0."""
        try:
            return os.tcgetpgrp(self.fd)
        except OSError:
            return 0

    def typed(self, data: bytes) -> None:
        """Remember whether a line has been begun."""
        if data:
            self.line_begun = data[-1:] not in (b"\n", b"\r", _EOF)

    def eof(self) -> bytes:
        """What must be typed for a program to see the end of its input."""
        return _EOF * 2 if self.line_begun else _EOF

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
