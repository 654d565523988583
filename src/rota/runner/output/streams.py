"""The pipes that jobs write to: made, lent to seats, read unless a reader is behind, and kept for later."""

from __future__ import annotations

import os
import resource
import select
from typing import TYPE_CHECKING

from rota.runner.output.capture import Capture
from rota.runner.task import Pipes, Task

if TYPE_CHECKING:
    from rota.runner.agent import Agent

_READ = 65536
_MAX_READS = 16
_SPARE_PIPES = 64


class Streams:
    """All pipes of an agent."""

    def __init__(self, agent: Agent, poll: select.epoll, null: int) -> None:
        self._agent = agent
        self._poll = poll
        self._null = null
        self._by_fd: dict[int, Pipes] = {}
        self._spare: list[Pipes] = []
        self._paused: set[int] = set()  #: not read: their job waits for whoever reads its output

    def readable(self, fd: int) -> None:
        """Take what was written to this pipe."""
        pipes = self._by_fd.get(fd)
        if pipes is None or fd in self._paused:
            return
        agent = self._agent
        task = pipes.task
        capture = None
        if task is not None and task.afterwards is None:
            capture = task.out if fd == pipes.out else task.err
        for _ in range(_MAX_READS):
            size = _READ
            if capture is not None and task is not None and (left := capture.keep - capture.total) < _READ:
                size = agent.followers.room(task, 0 if fd == pipes.out else 1, left)
                if not size:
                    self._pause(fd)
                    break
            try:
                data = os.read(fd, size)
            except BlockingIOError:
                break
            if task is not None:
                task.plain = False
                if task.afterwards is not None:
                    task.afterwards.said.add(data)
                else:
                    if capture is None:
                        capture = self._capture(task, out=fd == pipes.out)
                    capture.add(data)
            if len(data) < size:
                break
        if agent.followers and task is not None:
            agent.followers.wrote(task, agent.now)

    def _capture(self, task: Task, *, out: bool) -> Capture:
        capture = Capture(self._agent.rules.keep_output)
        if out:
            task.out = capture
        else:
            task.err = capture
        return capture

    def _pause(self, fd: int) -> None:
        """Read no more from this pipe: when it is full, whoever writes to it waits."""
        self._paused.add(fd)
        self._poll.modify(fd, 0)

    def resume(self, fd: int) -> bool:
        """Read from this pipe again; False if it was not paused."""
        if fd not in self._paused:
            return False
        self._paused.discard(fd)
        self._poll.modify(fd, select.EPOLLIN)
        return True

    def paused(self, pipes: Pipes) -> bool:
        return pipes.out in self._paused or pipes.err in self._paused

    def collect(self) -> None:
        """Read whatever is in any pipe now."""
        streams = self._by_fd
        for fd, _ in self._poll.poll(0, max(256, 2 * len(streams))):
            if fd in streams:
                self.readable(fd)

    def drain(self, pipes: Pipes) -> None:
        """A pipe holds at most its capacity, which is less than this reads."""
        self.readable(pipes.out)
        self.readable(pipes.err)

    def lend(self) -> Pipes:
        """Pipes that nobody writes to. Raises `OSError`."""
        if self._spare:
            return self._spare.pop()
        try:
            pipes = Pipes(self._null)
        except OSError:
            _raise_file_limit()
            pipes = Pipes(self._null)
        for fd in (pipes.out, pipes.err):
            self._poll.register(fd, select.EPOLLIN)
            self._by_fd[fd] = pipes
        return pipes

    def give_back(self, pipes: Pipes) -> None:
        """Their seat was closed: a few are kept for the next."""
        pipes.task = None
        self.resume(pipes.out)
        self.resume(pipes.err)
        if len(self._spare) < _SPARE_PIPES:
            self._spare.append(pipes)
        else:
            self.discard(pipes)

    def clean(self, task: Task) -> Pipes:
        """Pipes that nobody but the next process of this task can write to. Raises `OSError`."""
        if task.doubtful:
            fresh = self.lend()
            self.discard(task.pipes)
            task.pipes = task.seat.pipes = fresh
            task.doubtful = False
        return task.pipes

    def discard(self, pipes: Pipes) -> None:
        """Somebody may write to them for ever: close them."""
        for fd in (pipes.out, pipes.err):
            self._poll.unregister(fd)
            self._paused.discard(fd)
            del self._by_fd[fd]
        pipes.close()


def _raise_file_limit() -> None:
    """Four descriptors a seat: many seats need more than the usual soft limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, soft * 4), hard))
