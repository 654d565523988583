"""Bytes on disk that somebody will want in a while: queues of them in one file without a name.

The file has no name, so that nothing is left of it whatever becomes of the process. It is cut into blocks, which
queues share and give back as they are read: what it takes is bounded, whatever passes through it.
"""

from __future__ import annotations

import os
from errno import EISDIR, ENOENT, ENOSPC, EOPNOTSUPP
from typing import Final

BLOCK: Final = 256 * 1024
_NO_TMPFILE: Final = (EOPNOTSUPP, EISDIR, ENOENT)


class Spool:
    """One file of blocks. `most`: bytes that all queues together may take; None: as the disk has room."""

    def __init__(self, directory: str, *, most: int | None = None, spare: int = 0) -> None:
        self._directory = directory
        self._spare = spare  #: bytes of the disk that are left to others
        self.most = most
        self._fd = -1
        self._free: list[int] = []
        self._blocks = 0  #: that the file has
        self._failed = False  #: the last attempt to write met a full disk

    @property
    def used(self) -> int:
        """Bytes of all blocks that are in use."""
        return (self._blocks - len(self._free)) * BLOCK

    def queue(self, at: int) -> SpoolQueue:
        """A queue whose first byte will have this offset."""
        return SpoolQueue(self, at)

    def room(self) -> int:
        """Bytes in blocks that can be had now."""
        if self._failed or not self._disk_has_room():
            self._failed = False  # ask the disk again next time
            return 0
        return 1 << 62 if self.most is None else max(0, self.most - self.used)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _disk_has_room(self) -> bool:
        if not self._spare or self._free:
            return True
        found = os.statvfs(self._directory)
        return found.f_bavail * found.f_frsize >= self._spare

    def _take(self) -> int:
        """A block. Raises `OSError` if there is none."""
        if self.room() < BLOCK:
            _full()
        if self._fd < 0:
            self._fd = _nameless(self._directory)
        if self._free:
            return self._free.pop()
        self._blocks += 1
        return self._blocks - 1

    def _give_back(self, block: int) -> None:
        self._free.append(block)
        if len(self._free) == self._blocks:
            self._free.clear()
            self._blocks = 0
            os.ftruncate(self._fd, 0)

    def _write(self, block: int, at: int, data: memoryview) -> None:
        place = block * BLOCK + at
        while data:
            try:
                written = os.pwrite(self._fd, data, place) or _full()
            except OSError:
                self._failed = True
                raise
            data, place = data[written:], place + written

    def _read(self, block: int, at: int, size: int) -> bytes:
        return os.pread(self._fd, size, block * BLOCK + at)


class SpoolQueue:
    """Bytes `at` to `end` of a stream. They are added at the end and given up from the beginning."""

    __slots__ = ("_base", "_blocks", "_spool", "at", "end")

    def __init__(self, spool: Spool, at: int) -> None:
        self._spool = spool
        self._blocks: list[int] = []
        self._base = at  #: offset of the first byte of the first block
        self.at = self.end = at

    def append(self, data: bytes) -> None:
        """Add these bytes, or raise `OSError` and add none."""
        blocks, took = self._blocks, 0
        end, view = self.end, memoryview(data)
        try:
            while view:
                index, inside = divmod(end - self._base, BLOCK)
                if index == len(blocks):
                    blocks.append(self._spool._take())
                    took += 1
                piece = view[: BLOCK - inside]
                self._spool._write(blocks[index], inside, piece)
                view = view[len(piece) :]
                end += len(piece)
        except OSError:
            for _ in range(took):
                self._spool._give_back(blocks.pop())
            raise
        self.end = end

    def read(self, offset: int, limit: int) -> bytes:
        """At most so many bytes from this offset on, which is one of the queue's. Raises `OSError`."""
        index, inside = divmod(offset - self._base, BLOCK)
        size = min(limit, self.end - offset, BLOCK - inside)
        return self._spool._read(self._blocks[index], inside, size) if size > 0 else b""

    def free(self, until: int) -> None:
        """Bytes before this offset are not needed any more."""
        self.at = max(self.at, min(until, self.end))
        whole = (self.at - self._base) // BLOCK
        if self.at == self.end and self._blocks:
            whole = len(self._blocks)  # the last block too: the next byte begins another
        for block in self._blocks[:whole]:
            self._spool._give_back(block)
        if whole:
            del self._blocks[:whole]
            self._base = self.at if self.at == self.end else self._base + whole * BLOCK

    def close(self) -> None:
        self.free(self.end)


def _full() -> int:
    raise OSError(ENOSPC, os.strerror(ENOSPC))


def _nameless(directory: str) -> int:
    """A new file that only this process knows."""
    try:
        return os.open(directory, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno not in _NO_TMPFILE:
            raise
    import tempfile  # slow to load, and hardly ever needed

    handle, path = tempfile.mkstemp(prefix=".spool-", dir=directory)
    os.unlink(path)
    return handle
