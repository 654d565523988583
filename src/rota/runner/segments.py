"""The files in which the output of ended jobs lies: append-only, one writer, bounded size.

A segment belongs to one runner. Nothing is read here; the manager serves what is in them.
"""

from __future__ import annotations

import os
from errno import ENOSPC

ROTATE_OVER = 64 * 1024 * 1024


class Segments:
    """Where this runner puts output."""

    def __init__(self, directory: str, runner: str) -> None:
        self._directory = directory
        self._runner = runner
        self._number = 0
        self._fd = -1
        self._offset = 0
        self.name = ""

    def append(self, data: bytes) -> tuple[str, int]:
        """(segment, offset) of these bytes. Raises `OSError`, and then nothing was kept."""
        if self._fd < 0 or self._offset >= ROTATE_OVER:
            self._rotate()
        offset = self._offset
        written = 0
        try:
            while written < len(data):
                written += os.write(self._fd, data[written:] if written else data) or _full()
        except OSError:
            os.ftruncate(self._fd, offset)
            raise
        self._offset = offset + written
        return self.name, offset

    def _rotate(self) -> None:
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        name = f"{self._runner}-{self._number + 1:06d}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        fd = os.open(f"{self._directory}/{name}", flags, 0o600)
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._offset, self.name = fd, 0, name
        self._number += 1


def _full() -> int:
    raise OSError(ENOSPC, os.strerror(ENOSPC))
