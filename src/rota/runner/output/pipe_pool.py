"""The pipes that jobs write to: made, lent to seats, paused and resumed, and kept for the next seat."""

from __future__ import annotations

import resource
import select

from rota.runner.task import Pipes, Task

_SPARE_PIPES = 64


class PipePool:
    """All pipes of a runner."""

    def __init__(self, poll: select.epoll, null: int) -> None:
        self._poll = poll
        self._null = null
        self.by_fd: dict[int, Pipes] = {}
        self._spare: list[Pipes] = []
        self.unread: set[int] = set()  #: not read, since a reader of the output must catch up first

    def pause(self, fd: int) -> None:
        """Read no more from this pipe: when it is full, its writers wait."""
        self.unread.add(fd)
        self._poll.modify(fd, 0)

    def resume(self, fd: int) -> bool:
        """Read from this pipe again; False if it was not paused."""
        if fd not in self.unread:
            return False
        self.unread.discard(fd)
        self._poll.modify(fd, select.EPOLLIN)
        return True

    def paused(self, pipes: Pipes) -> bool:
        return pipes.out in self.unread or pipes.err in self.unread

    def lend(self) -> Pipes:
        """Pipes without a writer. Raises `OSError`."""
        if self._spare:
            return self._spare.pop()
        try:
            pipes = Pipes(self._null)
        except OSError:
            _raise_file_limit()
            pipes = Pipes(self._null)
        for fd in (pipes.out, pipes.err):
            self._poll.register(fd, select.EPOLLIN)
            self.by_fd[fd] = pipes
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
        """Pipes to which only the next process of this task can write. Raises `OSError`."""
        if task.doubtful:
            fresh = self.lend()
            self.discard(task.pipes)
            task.pipes = task.seat.pipes = fresh
            task.doubtful = False
        return task.pipes

    def discard(self, pipes: Pipes) -> None:
        """Close them: a stray process may still hold their writing ends."""
        for fd in (pipes.out, pipes.err):
            self._poll.unregister(fd)
            self.unread.discard(fd)
            del self.by_fd[fd]
        pipes.close()


def _raise_file_limit() -> None:
    """Four descriptors a seat: many seats need more than the usual soft limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, soft * 4), hard))
