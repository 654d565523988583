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

    def __init__(self, now: float) -> None:
        self.seats: dict[int, Seat] = {}
        self.lines: dict[Size, Line] = {}
        self.waiting: dict[Key, Task] = {}
        self.fillable: dict[Line, None] = {}  #: lines with a free seat, which may have a lease for it
        self.worked_at = now  #: when a seat was last vacated

    def line(self, size: Size) -> Line:
        line = self.lines.get(size)
        if line is None:
            line = self.lines[size] = Line(size)
        return line

    def open(self, id: int, size: Size) -> None:
        """Add a free seat, unless it is open already."""
        if id not in self.seats:
            seat = self.seats[id] = Seat(id, self.line(size))
            seat.line.free.append(seat)
            self.fillable[seat.line] = None

    def vacate(self, seat: Seat, now: float) -> None:
        """The task of a seat has ended: the next one may take it."""
        self.worked_at = now
        seat.line.free.append(seat)
        self.fillable[seat.line] = None

    def reconsider(self) -> None:
        """Look at all free seats again: those without a lease are given back."""
        for line in self.lines.values():
            if line.free:
                self.fillable[line] = None

    def wait(self, task: Task) -> None:
        """Let a task wait for a seat of its size."""
        line = task.line = self.line(task.env.size)
        heappush(line.heap, (task.grant.rank, task.key))
        line.waiting += 1
        self.waiting[task.key] = task
        if line.free:
            self.fillable[line] = None

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

    def remove(self, seat: Seat, now: float) -> None:
        """Forget the seat of a task that has just ended."""
        self.worked_at = now
        del self.seats[seat.id]
        self._forget_if_unused(seat.line)

    def _forget_if_unused(self, line: Line) -> None:
        if not line.waiting and all(seat.line is not line for seat in self.seats.values()):
            self.lines.pop(line.size, None)
