"""Reads what jobs write to their pipes into captures, unless a reader of that output is too far behind."""

from __future__ import annotations

import os

from rota.runner.current_rules import CurrentRules
from rota.runner.loop import Loop
from rota.runner.output.capture import Capture
from rota.runner.output.followers import Followers
from rota.runner.output.pipe_pool import PipePool
from rota.runner.task import Pipes, Task

_READ = 65536
_MAX_READS = 16


class Streams:
    """Reads all pipes of a runner."""

    def __init__(self, *, loop: Loop, rules: CurrentRules, pool: PipePool, followers: Followers) -> None:
        self._loop = loop
        self._rules = rules
        self._pool = pool
        self._followers = followers

    def readable(self, fd: int) -> None:
        """Take what was written to this pipe."""
        pool = self._pool
        pipes = pool.by_fd.get(fd)
        if pipes is None or fd in pool.unread:
            return
        task = pipes.task
        capture = None
        if task is not None and task.behaviours is None:
            capture = task.out if fd == pipes.out else task.err
        for _ in range(_MAX_READS):
            size = _READ
            if capture is not None and task is not None and (left := capture.keep - capture.total) < _READ:
                size = self._followers.room(task, 0 if fd == pipes.out else 1, left)
                if not size:
                    pool.pause(fd)
                    break
            try:
                data = os.read(fd, size)
            except BlockingIOError:
                break
            if task is not None:
                task.plain = False
                if task.behaviours is not None:
                    task.behaviours.stderr.add(data)
                else:
                    if capture is None:
                        capture = self._capture(task, out=fd == pipes.out)
                    capture.add(data)
            if len(data) < size:
                break
        if self._followers and task is not None:
            self._followers.wrote(task, self._loop.now)

    def _capture(self, task: Task, *, out: bool) -> Capture:
        capture = Capture(self._rules.current.keep_output)
        if out:
            task.out = capture
        else:
            task.err = capture
        return capture

    def collect(self) -> None:
        """Read everything that is in any pipe now."""
        streams = self._pool.by_fd
        for fd, _ in self._loop.poll.poll(0, max(256, 2 * len(streams))):
            if fd in streams:
                self.readable(fd)

    def drain(self, pipes: Pipes) -> None:
        """A pipe holds at most its capacity, which is less than this reads."""
        self.readable(pipes.out)
        self.readable(pipes.err)
