"""Copies of the segments of nodes: what their jobs printed, kept beside that of the manager's own host.

A piece is written where it stands in the original, so that one that comes twice changes nothing.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path

from rota.errors import WireError
from rota.manager.open_files import OpenFiles

log = logging.getLogger("rota.manager")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}-\d{6,10}")
_OPEN = 64
#: A segment ends after so much, and what the last attempt printed.
_MOST = 64 << 20


class Pieces:
    """Writes the copies. What cannot be written is missing: an end is recorded whatever became of its output."""

    def __init__(self, directory: Path, *, keep_output: int) -> None:
        self._directory = directory
        self._most = _MOST + 2 * keep_output + 4096
        self._files = OpenFiles(self._open, most=_OPEN)
        self._failed = False

    def keep(self, segment: str, offset: int, data: bytes) -> None:
        """Raises `WireError` for what no runner sends."""
        if not _NAME.fullmatch(segment) or not 0 <= offset <= self._most - len(data):
            raise WireError("a piece of no segment")
        try:
            handle = self._files[segment]
            while data:
                written = os.pwrite(handle, data, offset)
                data, offset = data[written:], offset + written
        except OSError as error:
            if not self._failed:
                log.error("output of nodes cannot be kept: %s", error.strerror)  # noqa: TRY400
            self._failed = True
        else:
            self._failed = False

    def close(self) -> None:
        self._files.close()

    def _open(self, segment: str) -> int:
        self._directory.mkdir(mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(self._directory / segment, flags, 0o600)
