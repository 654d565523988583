"""What jobs printed: read from, and made durable in, the append-only segment files.

Runners on this host write segments themselves; the manager only syncs and reads them.
"""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from pathlib import Path

from rota.errors import EnvironmentFault

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class Outputs:
    """The segment files of a deployment. Not shared between threads: each thread makes its own."""

    def __init__(self, directory: Path, *, open_files: int = 64) -> None:
        self._directory = directory
        self._open_files = open_files
        self._handles: OrderedDict[str, int] = OrderedDict()

    def read(self, segment: str, offset: int, length: int) -> bytes:
        """These bytes, or fewer if the file is shorter. Raises `EnvironmentFault` if it is gone."""
        if length <= 0:
            return b""
        try:
            return os.pread(self._handle(segment), length, offset)
        except OSError as error:
            raise EnvironmentFault(
                f"the output cannot be read: {error.strerror}", hint="it may have been pruned", code="not_found"
            ) from None

    def sync(self, segments: set[str]) -> None:
        """Make what was written to these segments durable. A segment that is gone is not an error."""
        for segment in segments:
            try:
                handle = self._handle(segment)
            except OSError:
                continue
            os.fdatasync(handle)

    def close(self) -> None:
        for handle in self._handles.values():
            os.close(handle)
        self._handles.clear()

    def _handle(self, segment: str) -> int:
        handle = self._handles.get(segment)
        if handle is not None:
            self._handles.move_to_end(segment)
            return handle
        if not _NAME.fullmatch(segment):
            raise FileNotFoundError(2, "not the name of a segment")
        handle = os.open(self._directory / segment, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        self._handles[segment] = handle
        if len(self._handles) > self._open_files:
            os.close(self._handles.popitem(last=False)[1])
        return handle
