"""Scratch directories of jobs: made, measured and removed."""

from __future__ import annotations

import os
import time

from rota.launcher.trees import remove, usage

#: A measurement may take this share of the time.
_SHARE = 0.05


class Scratch:
    """The scratch directory of one attempt, and beside it one for temporary files."""

    __slots__ = ("_measure_at", "path", "tmp")

    def __init__(self, root: str, job: int, attempt: int, *, made: bool = False) -> None:
        """Makes it, empty and for the owner only, unless it was `made` before. Raises `OSError`."""
        self.path, self.tmp = directories(root, job, attempt)
        self._measure_at = 0.0
        if made:
            return
        os.makedirs(root, mode=0o700, exist_ok=True)
        for path in (self.path, self.tmp):
            try:
                os.mkdir(path, 0o700)
            except FileExistsError:
                remove(path)  # left over from a runner that died
                os.mkdir(path, 0o700)

    def measure(self, now: float) -> int:
        """Bytes on disk below both, or 0 if that was measured too recently for its size."""
        if now < self._measure_at:
            return 0
        before = time.monotonic()
        size = self.usage()
        self._measure_at = now + (time.monotonic() - before) / _SHARE
        return size

    def usage(self) -> int:
        """Bytes on disk below both."""
        return usage(self.path) + usage(self.tmp)

    def remove(self) -> list[str]:
        """Remove both; what went wrong, for the log."""
        return self.keep() + remove(self.path)

    def keep(self) -> list[str]:
        """Remove only what was temporary; what went wrong, for the log."""
        return remove(self.tmp)

    @property
    def exists(self) -> bool:
        """Is it still there?"""
        return os.path.lexists(self.path)


def directories(root: str, job: int, attempt: int) -> tuple[str, str]:
    """Where an attempt works, and where its temporary files are."""
    path = f"{root}/{job}.{attempt}"
    return path, f"{path}.tmp"
