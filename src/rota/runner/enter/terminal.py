"""A pseudo-terminal. The process that opens it first gets it as its controlling terminal.

Knows nothing about jobs or channels.
"""

from __future__ import annotations

import fcntl
import os
import struct
import termios

from rota.runner import libc

_MOST = 0xFFFF
_EOF = b"\x04"


class Terminal:
    """One pseudo-terminal. This process keeps the master side."""

    __slots__ = ("_actions", "_slave", "fd", "line_begun")

    def __init__(self, rows: int, cols: int) -> None:
        """Raises `OSError`."""
        self.fd, self._slave = os.openpty()
        try:
            os.set_blocking(self.fd, False)
            self.resize(rows, cols)
            # A leader of a session that has no terminal gets the first one that it opens.
            name = os.fsencode(os.ttyname(self._slave))
            self._actions = libc.FileActions([(0, 1), (0, 2)], opens=[(0, name)])
        except BaseException:
            os.close(self.fd)
            os.close(self._slave)
            raise
        self.line_begun = False  #: has something been typed since the last new line?

    @property
    def actions_at(self) -> int:
        """What a child does with its descriptors, for `libc.spawn`."""
        return self._actions.address

    def started(self) -> None:
        """The process has opened it, or could not be started. Close our copy: it then ends with its last user."""
        if self._slave >= 0:
            os.close(self._slave)
            self._actions.close()
            self._slave = -1

    def resize(self, rows: int, cols: int) -> None:
        """Programs in the foreground get SIGWINCH."""
        size = struct.pack("HHHH", min(max(rows, 0), _MOST), min(max(cols, 0), _MOST), 0, 0)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, size)

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
        self.started()
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
