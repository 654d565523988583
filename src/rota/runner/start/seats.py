"""All seats of a runner, and the leases that wait for a seat of their size.

A data structure only: nothing is started or reported here.
"""

from __future__ import annotations

from heapq import heappop, heappush

from rota.plan.size import Size
from rota.runner.report.journal import Key
from rota.runner.task import Line, Seat, Task


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
