"""Moves what jobs write from their pipes to the spools. Each pipe has one such reader at a time."""

from __future__ import annotations

import select
from collections.abc import Callable

from rota.launcher.descriptors import raise_limit
from rota.launcher.log import say
from rota.launcher.pipes import HeldPipes
from rota.launcher.spool import ERR, OUT, SpooledPipes, make_spools


class Pump:
    """All captured pipes of a launcher."""

    def __init__(self, poll: select.epoll, open_pipes: Callable[[], HeldPipes]) -> None:
        self._poll = poll
        self._open = open_pipes
        self.by_number: dict[int, SpooledPipes] = {}
        self.by_fd: dict[int, tuple[SpooledPipes, int]] = {}
        self._paused: set[int] = set()
        self._last = 0
        self.attended = False  #: is there an agent, so that a job waits when its spool is full?
        self.news: dict[tuple[int, int], None] = {}  #: streams of which the agent must be told

    def make(self) -> SpooledPipes:
        """New pipes with spools, read from now on. Raises `OSError`."""
        try:
            pipes = self._made()
        except OSError:
            raise_limit()
            pipes = self._made()
        self.add(pipes)
        return pipes

    def add(self, pipes: SpooledPipes) -> None:
        """Read from these pipes from now on."""
        self._last = max(self._last, pipes.number)
        self.by_number[pipes.number] = pipes
        for stream, fd in enumerate(pipes.reading):
            self._poll.register(fd, select.EPOLLIN)
            self.by_fd[fd] = pipes, stream

    def _made(self) -> SpooledPipes:
        pipes = self._open()
        try:
            spools = make_spools()
        except OSError:
            pipes.close()
            raise
        self._last += 1
        return SpooledPipes(self._last, pipes, spools)

    def close(self, pipes: SpooledPipes) -> None:
        del self.by_number[pipes.number]
        for stream in (OUT, ERR):
            self.news.pop((pipes.number, stream), None)
        for fd in pipes.reading:
            self._poll.unregister(fd)
            self._paused.discard(fd)
            del self.by_fd[fd]
        pipes.close()

    def reset(self, pipes: SpooledPipes, keep: int) -> None:
        """Another process begins to write to them. Raises `OSError`."""
        for fd, spool in zip(pipes.reading, pipes.spools, strict=True):
            spool.reset(keep)
            self._resume(fd)

    def readable(self, fd: int) -> None:
        pipes, stream = self.by_fd[fd]
        spool = pipes.spools[stream]
        if self.attended and spool.full:
            self._pause(fd)
            return
        try:
            moved = spool.move(fd)
        except OSError as error:
            say(f"output of a job cannot be kept: {error}")
            self._pause(fd)  # tried again when the agent has taken some, or there is none
            return
        if moved:
            self._moved(pipes, stream)

    def drain(self, pipes: SpooledPipes) -> None:
        """Move everything that is in these pipes now."""
        for stream, fd in enumerate(pipes.reading):
            try:
                if pipes.spools[stream].drain(fd):
                    self._moved(pipes, stream)
            except OSError as error:
                say(f"output of a job cannot be kept: {error}")

    def _moved(self, pipes: SpooledPipes, stream: int) -> None:
        if self.attended:
            self.news[pipes.number, stream] = None
        else:
            pipes.spools[stream].trim(pipes.spools[stream].total)

    def took(self, number: int, stream: int, upto: int) -> None:
        """The agent has output up to this offset."""
        pipes = self.by_number.get(number)
        if pipes is None:
            return
        spool = pipes.spools[stream]
        spool.trim(upto)
        if not spool.full:
            self._resume(pipes.reading[stream])
        if upto < spool.total:
            self.news[number, stream] = None  # it has stopped in the middle: remind it

    def collect(self) -> None:
        """Move what is in any pipe now, except those that must wait for the agent."""
        for fd, _ in self._poll.poll(0, max(64, 4 * len(self.by_fd))):
            if fd in self.by_fd:
                self.readable(fd)

    def attend(self, attended: bool) -> None:
        """An agent has attached or disconnected: without one no job waits."""
        self.attended = attended
        self.news.clear()
        for pipes in self.by_number.values():
            for stream, spool in enumerate(pipes.spools):
                if attended:
                    spool.taken = spool.trimmed  # the new agent begins with what is kept
                    if spool.total:
                        self.news[pipes.number, stream] = None
                else:
                    spool.trim(spool.total)
                self._resume(pipes.reading[stream])

    def _pause(self, fd: int) -> None:
        if fd not in self._paused:
            self._paused.add(fd)
            self._poll.modify(fd, 0)

    def _resume(self, fd: int) -> None:
        if fd in self._paused:
            self._paused.discard(fd)
            self._poll.modify(fd, select.EPOLLIN)
