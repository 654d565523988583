"""Reads what jobs write to their pipes into captures, unless a reader of that output is too far behind."""

from __future__ import annotations

from rota.launcher.base import Launcher
from rota.runner.current_rules import CurrentRules
from rota.runner.launch.launchers import Launchers
from rota.runner.loop import Loop
from rota.runner.output.capture import Capture, Captured
from rota.runner.output.followers import Followers
from rota.runner.output.pipe_pool import PipePool
from rota.runner.task import Pipes, Task

_READ = 65536
_MAX_READS = 16
_MAX_ROUNDS = 4


class Streams:
    """Reads all pipes of a runner."""

    def __init__(
        self, *, loop: Loop, launchers: Launchers, rules: CurrentRules, pool: PipePool, followers: Followers
    ) -> None:
        self._loop = loop
        self._launchers = launchers
        self._rules = rules
        self._pool = pool
        self._followers = followers

    def readable(self, fd: int) -> bool:
        """Take what was written to this pipe; True if there may be more."""
        pool = self._pool
        pipes = pool.by_fd.get(fd)
        if pipes is None or fd in pool.unread:
            return False
        more = False
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
                data = pipes.read(fd, size)
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
        else:
            more = True
        if self._followers and task is not None:
            self._followers.wrote(task, self._loop.now)
        return more

    def _capture(self, task: Task, *, out: bool) -> Captured:
        """Where the output of a command is kept. A launcher that keeps it itself needs another kind here."""
        capture = Capture(self._rules.current.keep_output)
        if out:
            task.out = capture
        else:
            task.err = capture
        return capture

    def catch_up(self) -> None:
        """Read the streams that were resumed and of which no poll will tell."""
        resumed, self._pool.resumed = self._pool.resumed, set()
        for stream in resumed:
            self.readable(stream)

    def collect(self) -> None:
        """Read everything that is in any pipe now."""
        streams = self._pool.by_fd
        for fd, _ in self._loop.poll.poll(0, max(256, 2 * len(streams))):
            if fd in streams:
                self.readable(fd)
        for launcher in list(self._launchers.by_fd.values()):
            found = launcher.receive()
            self._launchers.when_told(launcher)
            for stream in found:
                self._exhaust(stream)

    def received(self, launcher: Launcher) -> None:
        """Take what a launcher of its own process has read from pipes."""
        streams = launcher.receive()
        self._launchers.when_told(launcher)  # first: the next task may own the pipes
        for stream in streams:
            self.readable(stream)

    def drain(self, pipes: Pipes) -> None:
        """Read everything that is in these pipes now."""
        self._exhaust(pipes.out)
        self._exhaust(pipes.err)

    def _exhaust(self, fd: int) -> None:
        """A pipe holds at most its capacity, which is less than this reads; and what a launcher has put aside is
        bounded too. There is a limit all the same: a process that was left behind may never stop writing."""
        for _ in range(_MAX_ROUNDS):
            if not self.readable(fd):
                break
