"""The pipes that jobs write to: made, lent to seats, paused and resumed, and kept for the next seat."""

from __future__ import annotations

import resource
import select

from rota.launcher.base import Launcher
from rota.runner.task import Pipes, Seat, Task

_SPARE_PIPES = 64


class PipePool:
    """All pipes of a runner."""

    def __init__(self, poll: select.epoll) -> None:
        self._poll = poll
        self.by_fd: dict[int, Pipes] = {}
        self._spare: list[Pipes] = []
        self.unread: set[int] = set()  #: not read, since a reader of the output must catch up first
        self.resumed: set[int] = set()  #: not polled, and may have more to read than was read

    def pause(self, fd: int) -> None:
        """Read no more from this pipe: when it is full, its writers wait."""
        self.unread.add(fd)
        if self.by_fd[fd].polled:
            self._poll.modify(fd, 0)

    def resume(self, fd: int) -> bool:
        """Read from this pipe again; False if it was not paused."""
        if fd not in self.unread:
            return False
        self.unread.discard(fd)
        if self.by_fd[fd].polled:
            self._poll.modify(fd, select.EPOLLIN)
        else:
            self.resumed.add(fd)
        return True

    def paused(self, pipes: Pipes) -> bool:
        return pipes.out in self.unread or pipes.err in self.unread

    def lend(self, launcher: Launcher) -> Pipes:
        """Pipes of this launcher, without a writer. Raises `OSError`."""
        while self._spare:
            pipes = self._spare.pop()
            if pipes.launcher is launcher:
                return pipes
            self.discard(pipes)
        try:
            pipes = Pipes(launcher)
        except OSError:
            _raise_file_limit()
            pipes = Pipes(launcher)
        self.adopt(pipes)
        return pipes

    def adopt(self, pipes: Pipes) -> None:
        """Read from these pipes from now on."""
        for fd in (pipes.out, pipes.err):
            if pipes.polled:
                self._poll.register(fd, select.EPOLLIN)
            self.by_fd[fd] = pipes

    def exchange(self, seat: Seat, launcher: Launcher) -> Pipes:
        """Pipes of this launcher for a seat that has none, or those of another. Raises `OSError`."""
        before, seat.pipes = seat.pipes, None
        if before is not None:
            self.discard(before)
        seat.pipes = self.lend(launcher)
        return seat.pipes

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
        """Pipes to which only the next process of this task can write. Raises `OSError`."""
        if task.doubtful:
            fresh = self.lend(task.launcher)
            self.discard(task.pipes)
            task.pipes = task.seat.pipes = fresh
            task.doubtful = False
        return task.pipes

    def forget(self, launcher: Launcher) -> None:
        """This launcher is about to go, and nothing of it writes any more."""
        self._spare = [pipes for pipes in self._spare if pipes.launcher is not launcher]
        for pipes in [pipes for fd, pipes in self.by_fd.items() if fd == pipes.out]:
            if pipes.launcher is launcher:
                self.discard(pipes)

    def discard(self, pipes: Pipes) -> None:
        """Close them: a stray process may still hold their writing ends."""
        if self.by_fd.get(pipes.out) is not pipes:
            return  # with their launcher
        for fd in (pipes.out, pipes.err):
            if pipes.polled:
                self._poll.unregister(fd)
            self.unread.discard(fd)
            self.resumed.discard(fd)
            del self.by_fd[fd]
        pipes.held.close()


def _raise_file_limit() -> None:
    """Four descriptors a seat: many seats need more than the usual soft limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, soft * 4), hard))
