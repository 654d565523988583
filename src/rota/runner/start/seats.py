"""Seats, the pipes they keep, and the leases that wait for a seat of their size.

Data structures only: nothing is started or reported here.
"""

from __future__ import annotations

import os
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from rota.plan.size import Size
from rota.runner import libc
from rota.runner.report.journal import Key

if TYPE_CHECKING:
    from rota.runner.start.cores import Share
    from rota.runner.task import Task


class Pipes:
    """Both ends of a stdout and a stderr pipe, used by one job after the other.

    The runner keeps the writing ends open, so a pipe never reports its end: that all processes of a
    job are gone is known otherwise, and then whatever it wrote can be read without waiting.
    """

    __slots__ = ("_actions", "actions_at", "err", "err_write", "out", "out_write", "task")

    def __init__(self, null: int) -> None:
        self.out, self.out_write = os.pipe()
        try:
            self.err, self.err_write = os.pipe()
        except OSError:
            os.close(self.out)
            os.close(self.out_write)
            raise
        os.set_blocking(self.out, False)
        os.set_blocking(self.err, False)
        self._actions = libc.FileActions([(null, 0), (self.out_write, 1), (self.err_write, 2)])
        self.actions_at = self._actions.address
        self.task: Task | None = None

    def close(self) -> None:
        for fd in (self.out, self.out_write, self.err, self.err_write):
            os.close(fd)
        self._actions.close()


class Seat:
    """Room for one job at a time."""

    __slots__ = ("id", "line", "pipes", "share")

    def __init__(self, id: int, line: Line) -> None:
        self.id = id
        self.line = line
        self.share: Share | None = None  #: of the host's cores, picked for its first job without an allocation
        self.pipes: Pipes | None = None


class Line:
    """The leases of one size that wait, lowest rank first, and the free seats of that size."""

    __slots__ = ("free", "heap", "size", "waiting")

    def __init__(self, size: Size) -> None:
        self.size = size
        self.free: list[Seat] = []
        self.heap: list[tuple[int, Key]] = []
        self.waiting = 0  #: fewer than in the heap if some were recalled


class Seating:
    """All seats and all waiting leases of a runner."""

    def __init__(self) -> None:
        self.seats: dict[int, Seat] = {}
        self.lines: dict[Size, Line] = {}
        self.waiting: dict[Key, Task] = {}

    def line(self, size: Size) -> Line:
        line = self.lines.get(size)
        if line is None:
            line = self.lines[size] = Line(size)
        return line

    def open(self, id: int, size: Size) -> Line | None:
        """The line in which there is now a free seat, or None if that seat is open already."""
        if id in self.seats:
            return None
        seat = self.seats[id] = Seat(id, self.line(size))
        seat.line.free.append(seat)
        return seat.line

    def wait(self, task: Task) -> Line:
        """Let a task wait for a seat of its size; the line in which it stands."""
        line = task.line = self.line(task.env.size)
        heappush(line.heap, (task.grant.rank, task.key))
        line.waiting += 1
        self.waiting[task.key] = task
        return line

    def take(self, line: Line) -> Task | None:
        """The task of the lowest rank, which then waits no more."""
        heap, waiting = line.heap, self.waiting
        while heap:
            task = waiting.pop(heappop(heap)[1], None)
            if task is not None:  # else it was recalled
                line.waiting -= 1
                return task
        return None

    def drop(self, key: Key) -> bool:
        """Remove a waiting lease; False if it does not wait."""
        task = self.waiting.pop(key, None)
        if task is None:
            return False
        task.line.waiting -= 1
        return True

    def close(self, line: Line) -> list[Seat]:
        """Forget the free seats of a line."""
        closed, line.free = line.free, []
        for seat in closed:
            del self.seats[seat.id]
        self._forget_if_unused(line)
        return closed

    def remove(self, seat: Seat) -> None:
        """Forget a seat that is taken."""
        del self.seats[seat.id]
        self._forget_if_unused(seat.line)

    def _forget_if_unused(self, line: Line) -> None:
        if not line.waiting and all(seat.line is not line for seat in self.seats.values()):
            self.lines.pop(line.size, None)
