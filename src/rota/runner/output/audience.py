"""The readers of one attempt's output: how far each has come, and what is held for them. No I/O of its own."""

from __future__ import annotations

from operator import ge

from rota.runner.output.backlog import Backlog
from rota.runner.output.capture import Captured
from rota.runner.task import Task
from rota.spool import Spool

_NEVER = float("inf")
#: A reader may be this far behind even if the spool is full.
_SLACK = 256 * 1024


class Follower:
    """One reader: how much of each stream was sent to it, and how much it has consumed."""

    __slots__ = ("awaited", "hold", "key", "sent", "tail", "taken", "window")

    def __init__(self, key: tuple[int, int], *, tail: int = 0, hold: bool = False, window: int = -1) -> None:
        self.key = key
        self.tail = tail
        self.hold = hold
        self.window = window
        self.sent = [0, 0]
        self.awaited = [0, 0]  #: where the last piece that was sent ended
        self.taken = [0, 0]


class Audience:
    """All readers of one attempt."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.followers: dict[int, Follower] = {}
        self.asked = False  #: waits for the manager to say if a reader wants every byte; reads no more until then
        self.unwanted = False  #: it answered: none does
        self.orphaned = False  #: a reader that wants every byte is gone, and may come back
        self.forget_at = _NEVER
        self.over = False  #: the attempt has ended
        self.exact = False  #: … and all that it printed is kept, byte for byte
        self._lenient = False

    @property
    def captures(self) -> tuple[Captured | None, Captured | None]:
        return self.task.out, self.task.err

    @property
    def strict(self) -> bool:
        """Is there a reader for which the job must wait rather than lose a byte?"""
        return not self._lenient and any(follower.hold for follower in self.followers.values())

    @property
    def held(self) -> bool:
        return self.orphaned or any(follower.hold for follower in self.followers.values())

    @property
    def memory(self) -> int:
        return sum(capture.memory for capture in self.captures if capture is not None)

    @property
    def inexact(self) -> bool:
        """Has it printed more than is kept, or may have (progress bars are reduced)?"""
        return any(
            capture.total > capture.keep or b"\r" in b"".join(capture.parts())
            for capture in self.captures
            if capture is not None
        )

    # -------------------------------------------------------------- readers come and go

    def add(self, follower: Follower) -> None:
        self.followers[follower.tail] = follower
        if follower.hold:
            self.asked = self.unwanted = self.orphaned = False

    def remove(self, tail: int) -> None:
        """This reader has gone; 0: no reader wants every byte."""
        self.followers.pop(tail, None)
        if not tail:
            self.asked = self.orphaned = False
            self.unwanted = True
        if not self.held:
            self._release()

    def orphan(self) -> None:
        """All readers are gone at once."""
        self.orphaned = self.held and not (self.over and self.exact)
        self.asked = False
        self.followers.clear()
        self.forget_at = _NEVER
        if self.orphaned:
            self.unstrict(lasting=False)
        else:
            self._release()

    def unstrict(self, *, lasting: bool = True) -> None:
        """From now on lose bytes rather than let the job wait."""
        self._lenient = self._lenient or lasting
        for capture in self.captures:
            if capture is not None and capture.backlog is not None:
                capture.backlog.strict = False

    def _release(self) -> None:
        for capture in self.captures:
            if capture is not None and capture.backlog is not None:
                capture.backlog.close()
                capture.backlog = None

    close = _release

    # -------------------------------------------------------------- what they have

    def took(self, tail: int, taken: list[int], window: int) -> bool:
        follower = self.followers.get(tail)
        if follower is None:
            return False
        follower.window = window
        for index, until in enumerate(taken):
            follower.taken[index] = max(follower.taken[index], min(until, follower.sent[index]))
        if follower.hold:
            for index, capture in enumerate(self.captures):
                if capture is not None and capture.backlog is not None:
                    capture.backlog.took(self._floor(index))
        return True

    def _floor(self, index: int) -> int:
        return min((each.taken[index] for each in self.followers.values() if each.hold), default=0)

    def admits(self, index: int, size: int, spool: Spool) -> bool:
        """May so much be read from a stream that has more than is kept?"""
        capture = self.captures[index]
        if capture is None or not self.held:
            return True
        if capture.backlog is None:
            capture.backlog = Backlog(spool, self._floor(index))
        capture.backlog.strict = strict = self.strict
        taken = capture.backlog.taken
        if not strict or capture.tail_at + size <= taken or capture.total - taken <= _SLACK:
            return True
        return spool.room() >= size

    def park(self, spool: Spool) -> None:
        """The attempt has ended: move what its readers lack to the disk, as far as there is room."""
        for index, capture in enumerate(self.captures):
            if capture is None:
                continue
            if capture.backlog is None:
                capture.backlog = Backlog(spool, self._floor(index))
            capture.backlog.strict = True
            capture.park()

    # -------------------------------------------------------------- what to send

    def unsent(self, follower: Follower) -> int:
        return sum(
            capture.total - follower.sent[index]
            for index, capture in enumerate(self.captures)
            if capture is not None
        )

    def sendable(self, follower: Follower) -> int:
        """Bytes that can be sent to it now: unsent, and within its window."""
        unsent = self.unsent(follower)
        if follower.window < 0 or not unsent:
            return unsent
        return max(0, min(unsent, follower.window - sum(follower.sent) + sum(follower.taken)))

    def behind(self, follower: Follower) -> bool:
        """Is there something that it cannot be sent yet?"""
        return self.unsent(follower) > 0

    def has_all(self, follower: Follower) -> bool:
        """Has it been sent everything and, if it wants every byte, consumed it?"""
        done = self.exact or not follower.hold or all(map(ge, follower.taken, follower.awaited))
        return done and not self.unsent(follower)
