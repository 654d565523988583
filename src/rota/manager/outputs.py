"""What jobs printed: read from, and made durable in, the append-only segment files.

Runners on this host write segments themselves; the manager only syncs and reads them.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from rota.errors import EnvironmentFault
from rota.manager.open_files import OpenFiles

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class Outputs:
    """The segment files of a deployment. Not shared between threads: each thread makes its own."""

    def __init__(self, directory: Path, *, open_files: int = 64) -> None:
        self._directory = directory
        self._files = OpenFiles(self._open, most=open_files)

    def read(self, segment: str, offset: int, length: int) -> bytes:
        """These bytes, or fewer if the file is shorter. Raises `EnvironmentFault` if it is gone."""
        if length <= 0:
            return b""
        try:
            return os.pread(self._files[segment], length, offset)
        except OSError as error:
            raise EnvironmentFault(
                f"the output cannot be read: {error.strerror}", hint="it may have been pruned", code="not_found"
            ) from None

    def sync(self, segments: set[str]) -> None:
        """Make what was written to these segments durable. A segment that is gone is not an error."""
        for segment in segments:
            try:
                handle = self._files[segment]
            except OSError:
                continue
            os.fdatasync(handle)

    def close(self) -> None:
        self._files.close()

    def _open(self, segment: str) -> int:
        if not _NAME.fullmatch(segment):
            raise FileNotFoundError(2, "not the name of a segment")
        return os.open(self._directory / segment, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
