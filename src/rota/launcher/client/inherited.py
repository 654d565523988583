"""The processes of a dead launcher, taken over by the runner that started it: the runner is their sub-reaper and
has their pipes and spools. New leases need another launcher."""

from __future__ import annotations

import os
import select
from collections import deque
from collections.abc import Iterable, Mapping

import msgspec

from rota.launcher import procfs
from rota.launcher.base import Begun, Captured, Ended, StartOrder
from rota.launcher.client.spooled import SpoolReader
from rota.launcher.inside import InsideLauncher
from rota.launcher.journal import Story
from rota.launcher.messages import Spent
from rota.launcher.pump import Pump
from rota.launcher.spool import OUT, SpooledPipes

#: Children of this process that are launchers: not to be reaped here.
launchers: set[int] = set()
_heirs: list[Inheritance] = []
#: The status of a process that was reaped and not recorded, because the disk was full: as if it was killed.
_UNKNOWN = 9


class Inheritance:
    """The processes and pipes of a dead launcher."""

    def __init__(self, poll: select.epoll, running: Mapping[int, int], pipes: Iterable[SpooledPipes]) -> None:
        """`poll`: empty; it becomes readable when a process ends or writes. `running`: the pids of what runs, with
        the number of the pipes to which each writes, or 0."""
        self._poll = poll
        self._inside = inside = InsideLauncher()
        self._children = procfs.OwnChildren()
        self.pump = Pump(poll, inside.output_pipes)
        self.pump.attended = True
        self._handles: dict[int, int] = {}  #: pid -> its pidfd, of all that run
        self._writes_to = dict(running)
        self._ended: deque[Ended] = deque()
        for each in pipes:
            self.pump.add(each)
        for pid in running:
            self._watch(pid)
        _heirs.append(self)

    def recall(self, story: Story) -> None:
        """Take exits from the journal: of processes that the launcher had reaped, but not reported."""
        exits: dict[int, int] = {}
        for task in story.tasks.values():
            exits |= task.exits
        for pid, handle in list(self._handles.items()):
            if pid in exits or handle < 0:
                self._unwatch(pid)
                self._ended.append((pid, exits.get(pid, _UNKNOWN), Spent()))

    def take_on(self, pid: int, number: int) -> None:
        """Look after this child, too; it writes to the pipes of this number."""
        self._writes_to[pid] = number
        self._watch(pid)

    def _watch(self, pid: int) -> None:
        try:
            handle = os.pidfd_open(pid)
        except OSError:
            self._handles[pid] = -1  # reaped: its exit is in the journal
            return
        self._handles[pid] = handle
        self._poll.register(handle, select.EPOLLIN)

    def _unwatch(self, pid: int) -> None:
        handle = self._handles.pop(pid)
        if handle >= 0:
            self._poll.unregister(handle)
            os.close(handle)

    def receive(self) -> list[tuple[int, int]]:
        """Move output to the spools: (number of the pipes, stream) of what is new."""
        for fd, _ in self._poll.poll(0, max(64, 4 * len(self.pump.by_fd))):
            if fd in self.pump.by_fd:
                self.pump.readable(fd)
        news = list(self.pump.news)
        self.pump.news.clear()
        return news

    def start(self, order: StartOrder) -> Begun:
        stdio, number = order.stdio, 0
        if isinstance(stdio, Captured) and isinstance(stdio.pipes, SpoolReader):
            pipes = stdio.pipes.pipes
            number = stdio.pipes.began(pipes.spools[OUT].keep)
            self.pump.reset(pipes, pipes.spools[OUT].keep)
            order = msgspec.structs.replace(order, stdio=Captured(pipes.pipes, stdio.out, stdio.err))
        begun = self._inside.start(order)
        self.take_on(begun.pid, number)
        return begun

    def reap(self, pid: int = -1) -> Ended | None:
        for ended in self._ended:
            if pid in (-1, ended[0]):
                self._ended.remove(ended)
                return ended
        if pid > 0:
            return self._reaped(pid)
        for child in [*self._handles, *self._strays()]:
            found = self._reaped(child)
            if found is not None:
                return found
        return None

    def _reaped(self, pid: int) -> Ended | None:
        found = self._inside.reap(pid)
        if found is not None and pid in self._handles:
            self._unwatch(pid)
            # What it wrote must be in the spools before its end is told.
            pipes = self.pump.by_number.get(self._writes_to.pop(pid, 0))
            if pipes is not None:
                self.pump.drain(pipes)
        return found

    def _strays(self) -> list[int]:
        """Orphans of what was started. The first heir looks after those of all."""
        if _heirs[0] is not self:
            return []
        others = launchers.union(*(heir._handles for heir in _heirs))
        strays = [pid for pid in self._children.pids() if pid not in others]
        # Children of another launcher that has just died are not known yet; its heir must reap them.
        return strays if not strays or all(map(_lives, launchers)) else []

    def children(self) -> int:
        self.pump.collect()
        busy = set(self._writes_to.values())
        for number, pipes in self.pump.by_number.items():
            if number not in busy:
                self.pump.drain(pipes)
        own = self._children.pids()
        return sum(pid in own for pid in self._handles) + len(self._strays()) + len(self._ended)

    def signal(self, pid: int, number: int, *, group: int) -> None:
        if pid not in self._handles:
            raise ProcessLookupError
        self._inside.signal(pid, number, group=group)

    def run(self, order: StartOrder, limit_s: float) -> int | None:
        return self._inside.run(order, limit_s)

    def close(self) -> None:
        """Nothing is left of it."""
        _heirs.remove(self)


def _lives(pid: int) -> bool:
    seen = procfs.process(pid)
    return seen is not None and seen.alive
