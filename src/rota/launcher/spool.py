"""Captured output: the pipes that jobs write to, and for each a spool in memory that outlives its agent.

Whoever reads a pipe moves its bytes into the spool in one system call, so that a kill between reading and writing
loses nothing: the length of the spool is the number of bytes taken from the pipe. A spool keeps everything up to
a limit, then head and tail.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
from typing import Final

from rota.launcher.pipes import HeldPipes

OUT: Final = 0
ERR: Final = 1
#: The job waits when the agent is this many bytes behind.
WINDOW: Final = 512 * 1024
#: Bytes moved in one call.
_MOVE: Final = 1 << 20
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_KEEP_SIZE_AND_PUNCH: Final = 0x01 | 0x02

_fallocate = ctypes.CDLL(None, use_errno=True).fallocate
_fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]


class Spool:
    """What one stream has carried since it was last reset. Offsets count from the first byte."""

    __slots__ = ("fd", "keep", "taken", "total", "trimmed")

    def __init__(self, fd: int, *, keep: int = 0, trimmed: int = 0, taken: int = 0) -> None:
        self.fd = fd  #: a file in memory that holds each byte at its offset
        self.keep = keep
        self.total = os.fstat(fd).st_size
        self.trimmed = trimmed  #: bytes between the head and this offset are gone
        self.taken = taken  #: the agent has all before this offset

    @property
    def head(self) -> int:
        """Bytes that are never given up."""
        return self.keep // 2

    @property
    def tail(self) -> int:
        """As many of the last bytes are never given up either."""
        return self.keep - self.keep // 2

    @property
    def full(self) -> bool:
        """Is the agent so far behind that the job must wait?"""
        return self.total - self.taken >= WINDOW

    def move(self, pipe: int, most: int = _MOVE) -> int:
        """Take bytes from a pipe; 0 if there are none. Raises `OSError` if there is no memory for them."""
        try:
            moved = os.splice(pipe, self.fd, most, offset_dst=self.total, flags=os.SPLICE_F_NONBLOCK)
        except BlockingIOError:
            return 0
        self.total += moved
        return moved

    def drain(self, pipe: int) -> int:
        """Take what is in a pipe now, however much the agent lacks."""
        first = self.move(pipe)
        if not first:
            return 0  # most jobs write nothing
        # A process that was left behind may never stop writing.
        left = fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ)
        total = first
        while left > 0 and (moved := self.move(pipe, left)):
            left -= moved
            total += moved
        return total

    def trim(self, taken: int) -> None:
        """The agent has all before this offset (or there is no agent to wait for): free what need not be kept."""
        self.taken = max(self.taken, min(taken, self.total))
        upto = min(self.taken, self.total - self.tail)
        if self.total <= self.keep or upto <= max(self.trimmed, self.head):
            return
        # Whole pages go; the bytes beside them are as good as gone.
        first, last = -(-self.head // _PAGE) * _PAGE, upto // _PAGE * _PAGE
        first = max(first, self.trimmed // _PAGE * _PAGE)
        if last > first:
            _fallocate(self.fd, _KEEP_SIZE_AND_PUNCH, first, last - first)
        self.trimmed = upto

    def refresh(self) -> None:
        """Another process has written to it."""
        self.total = os.fstat(self.fd).st_size

    def reset(self, keep: int) -> None:
        """Forget everything: another job begins."""
        if self.total:
            os.ftruncate(self.fd, 0)
        self.keep, self.total, self.trimmed, self.taken = keep, 0, 0, 0


class SpooledPipes:
    """A stdout and a stderr pipe with their spools, used by one job after the other."""

    __slots__ = ("number", "pipes", "spools")

    def __init__(self, number: int, pipes: HeldPipes, spools: tuple[Spool, Spool]) -> None:
        self.number = number
        self.pipes = pipes
        self.spools = spools

    @property
    def reading(self) -> tuple[int, int]:
        """The ends of both pipes that the launcher reads from."""
        return self.pipes.out, self.pipes.err

    @property
    def fds(self) -> list[int]:
        """All descriptors, in the order in which they are sent."""
        pipes = self.pipes
        spools = [spool.fd for spool in self.spools]
        return [pipes.out, pipes.out_write, pipes.err, pipes.err_write, *spools]

    def close(self) -> None:
        self.pipes.close()
        for spool in self.spools:
            os.close(spool.fd)


def make_spools() -> tuple[Spool, Spool]:
    """Empty spools for standard output and error. Raises `OSError`."""
    out = os.memfd_create("stdout")
    try:
        return Spool(out), Spool(os.memfd_create("stderr"))
    except OSError:
        os.close(out)
        raise
