"""Files with the output of ended jobs: append-only, one writer, bounded size.

A segment belongs to one runner. Nothing is read here; the manager serves what is in them.
"""

from __future__ import annotations

import os
import re
from errno import ENOSPC

from rota.runner.log import say

ROTATE_OVER = 64 * 1024 * 1024
#: The current segment is reused when its output is no longer needed, unless it is larger than this.
_WORTH_IT = 4 * 1024 * 1024
_SEGMENT = re.compile(r"(.+-\d+-[0-9a-f]{8})-\d{6,}")


class Segments:
    """Appends output to the segments of this runner."""

    def __init__(self, directory: str, runner: str) -> None:
        self.directory = directory
        self._runner = runner
        self._number = 0
        self._oldest = 1  #: the first that has not been removed
        self._fd = -1
        self._offset = 0
        self.name = ""

    def go_on(self) -> None:
        """Continue after the segments that an earlier runner of this name has left."""
        prefix = f"{self._runner}-"
        try:
            names = os.listdir(self.directory)
        except FileNotFoundError:
            return
        numbers = [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
        known = [int(number) for number in numbers if number.isdigit()]
        if known:
            self._number, self._oldest = max(known), min(known)

    def remove_old(self, runners: str) -> None:
        """Remove the segments of runners without a directory in `runners`: it goes when the manager has them all.

        Only for runners that send output to the manager; that of others is kept in these files.
        """
        try:
            names = os.listdir(self.directory)
        except FileNotFoundError:
            return
        for name in names:
            match = _SEGMENT.fullmatch(name)
            if match is not None and not os.path.isdir(f"{runners}/{match[1]}"):
                try:
                    os.unlink(f"{self.directory}/{name}")
                except OSError as error:
                    say(f"{name} cannot be removed: {error}")

    def append(self, data: bytes) -> tuple[str, int]:
        """(segment, offset) of these bytes. Raises `OSError`, and then nothing was kept."""
        if self._fd < 0 or self._offset >= ROTATE_OVER or not self._as_left():
            self._rotate()
        offset = self._offset
        written = 0
        try:
            while written < len(data):
                written += os.write(self._fd, data[written:] if written else data) or _full()
        except OSError:
            os.ftruncate(self._fd, offset)  # should that fail too, the next output goes to another segment
            raise
        self._offset = offset + written
        return self.name, offset

    def _as_left(self) -> bool:
        """Is the file unchanged since the last write? If it was pruned or damaged, later output goes to another
        one."""
        facts = os.fstat(self._fd)
        return facts.st_nlink > 0 and facts.st_size == self._offset

    def forget(self, wanted: set[str]) -> None:
        """Remove the segments of this runner that are not `wanted`: the manager has their output."""
        if self._fd >= 0 and self.name not in wanted and self._offset > _WORTH_IT:
            os.close(self._fd)
            self._fd = -1
        for number in range(self._oldest, self._number + 1):
            name = self._named(number)
            if name in wanted or (self._fd >= 0 and name == self.name):
                return
            try:
                os.unlink(f"{self.directory}/{name}")
            except FileNotFoundError:
                pass
            except OSError as error:
                say(f"{name} cannot be removed: {error}")
                return
            self._oldest = number + 1

    def _named(self, number: int) -> str:
        return f"{self._runner}-{number:06d}"

    def _rotate(self) -> None:
        os.makedirs(self.directory, mode=0o700, exist_ok=True)
        name = self._named(self._number + 1)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        fd = os.open(f"{self.directory}/{name}", flags, 0o600)
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._offset, self.name = fd, 0, name
        self._number += 1


def _full() -> int:
    raise OSError(ENOSPC, os.strerror(ENOSPC))
