"""Byte queues that overflow to disk, all in one unlinked file.

The file has no name, so nothing is left of it when the process ends, even by a crash. It consists of blocks that
the queues share and return as they are read, so its size is bounded by what is queued, not by what passes through.
"""

from __future__ import annotations

import os
from errno import EISDIR, ENOENT, ENOSPC, EOPNOTSUPP
from typing import Final

BLOCK: Final = 256 * 1024
_NO_TMPFILE: Final = (EOPNOTSUPP, EISDIR, ENOENT)


class Spool:
    """One file of blocks. `most` limits the bytes of all queues together; None: only the disk does."""

    def __init__(self, directory: str, *, most: int | None = None, spare: int = 0) -> None:
        self._directory = directory
        self._spare = spare  #: bytes of the disk to leave free
        self.most = most
        self._fd = -1
        self._free: list[int] = []
        self._blocks = 0  #: in the file
        self._failed = False  #: the last attempt to write met a full disk

    @property
    def used(self) -> int:
        """Bytes of all blocks that are in use."""
        return (self._blocks - len(self._free)) * BLOCK

    def queue(self, at: int) -> SpoolQueue:
        """A queue whose first byte will have this offset."""
        return SpoolQueue(self, at)

    def room(self) -> int:
        """Bytes that can be allocated now."""
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
        """Allocate a block. Raises `OSError` if there is none."""
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
    """Bytes `at` to `end` of a stream: appended at the end, freed from the beginning."""

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
        """At most `limit` bytes from `offset`, which must lie in the queue. Raises `OSError`."""
        index, inside = divmod(offset - self._base, BLOCK)
        size = min(limit, self.end - offset, BLOCK - inside)
        return self._spool._read(self._blocks[index], inside, size) if size > 0 else b""

    def free(self, until: int) -> None:
        """Free the bytes before this offset."""
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
    """Open a new file without a name."""
    try:
        return os.open(directory, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno not in _NO_TMPFILE:
            raise
    import tempfile  # slow to load, and hardly ever needed

    handle, path = tempfile.mkstemp(prefix=".spool-", dir=directory)
    os.unlink(path)
    return handle
