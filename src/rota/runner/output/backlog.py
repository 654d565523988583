"""Output of one stream that a reader still needs and memory has no room for: spooled to disk.

Most readers keep up; then nothing touches the disk.
"""

from __future__ import annotations

from rota.spool import Spool, SpoolQueue


class Backlog:
    """Takes bytes that leave a capture's memory, in order, and gives them back by their offsets."""

    __slots__ = ("_early", "_late", "_spool", "strict", "taken")

    def __init__(self, spool: Spool, taken: int) -> None:
        self._spool = spool
        self._early: SpoolQueue | None = None  #: the head of an ended stream, which lies before what is in `_late`
        self._late: SpoolQueue | None = None
        self.taken = taken  #: the reader has everything before this offset
        self.strict = True  #: keep bytes in memory rather than lose them

    def took(self, until: int) -> None:
        """The reader has everything before this offset."""
        self.taken = max(self.taken, until)
        for queue in (self._early, self._late):
            if queue is not None:
                queue.free(self.taken)

    def save(self, at: int, data: bytes) -> bool:
        """Keep what the reader lacks of these bytes. False: that is impossible, and they must stay in memory."""
        begin = max(at, self.taken)
        if at + len(data) <= begin:
            return True
        if not self.joins(at):
            return True  # behind a gap: what lies before it comes first
        if self._late is None or self._late.end <= self.taken:
            self._late = self._spool.queue(begin)
        try:
            self._late.append(data[begin - at :])
        except OSError:
            return not self.strict
        return True

    def joins(self, at: int) -> bool:
        """Do bytes from there on follow what is here, without a gap?"""
        late = self._late
        return late is None or late.end <= self.taken or late.end == max(at, self.taken)

    def save_head(self, data: bytes) -> bool:
        """The same with the first bytes of the stream, after it has ended."""
        if len(data) <= self.taken:
            return True
        self._early = self._spool.queue(self.taken)
        try:
            self._early.append(data[self.taken :])
        except OSError:
            self._early = None
            return False
        return True

    def read(self, offset: int, limit: int) -> tuple[int, bytes]:
        """At most so many bytes from here on, and where they begin. Nothing: there is none from here on."""
        for queue in (self._early, self._late):
            if queue is not None and offset < queue.end and queue.at < queue.end:
                at = max(offset, queue.at)
                try:
                    return at, queue.read(at, limit)
                except OSError:
                    continue  # lost: the reader sees a gap
        return offset, b""

    def close(self) -> None:
        for queue in (self._early, self._late):
            if queue is not None:
                queue.close()
        self._early = self._late = None
