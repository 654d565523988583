"""All seats of a runner, and the leases that wait for a seat of their size.

A data structure only: nothing is started or reported here.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from rota.plan.size import Size
from rota.runner.report.journal import Key
from rota.runner.task import LeaseQueue, Seat, Task


class Seating:
    """All seats and all waiting leases of a runner."""

    def __init__(self, now: float) -> None:
        self.seats: dict[int, Seat] = {}
        self.queues: dict[Size, LeaseQueue] = {}
        self.waiting: dict[Key, Task] = {}
        self.fillable: dict[LeaseQueue, None] = {}  #: queues with a free seat, which may have a lease for it
        self.worked_at = now  #: when a seat was last vacated
        #: Takes a task back that its launcher was to start by itself: it waits again. False: it has begun.
        self.recall: Callable[[Task], bool] = lambda task: True

    def queue(self, size: Size) -> LeaseQueue:
        queue = self.queues.get(size)
        if queue is None:
            queue = self.queues[size] = LeaseQueue(size)
        return queue

    def open(self, id: int, size: Size) -> None:
        """Add a free seat, unless it is open already."""
        if id not in self.seats:
            seat = self.seats[id] = Seat(id, self.queue(size))
            seat.queue.free.append(seat)
            self.fillable[seat.queue] = None

    def vacate(self, seat: Seat, now: float) -> None:
        """The task of a seat has ended: the next one may take it."""
        self.worked_at = now
        seat.queue.free.append(seat)
        self.fillable[seat.queue] = None

    def reconsider(self) -> None:
        """Look at all free seats again: seats without a lease are given back."""
        for queue in self.queues.values():
            if queue.free:
                self.fillable[queue] = None

    def wait(self, task: Task) -> None:
        """Let a task wait for a seat of its size."""
        queue = task.queue = self.queue(task.env.size)
        heappush(queue.heap, (task.grant.rank, task.key))
        queue.waiting += 1
        self.waiting[task.key] = task
        if queue.free:
            self.fillable[queue] = None

    def take(self, queue: LeaseQueue) -> Task | None:
        """Remove and return the waiting task of the lowest rank."""
        heap, waiting = queue.heap, self.waiting
        while heap:
            task = waiting.pop(heappop(heap)[1], None)
            if task is not None:  # else it was recalled
                queue.waiting -= 1
                return task
        return None

    def pick(self, queue: LeaseQueue) -> Task | None:
        """The waiting task of the lowest rank, which waits on but is not returned again."""
        heap, waiting = queue.heap, self.waiting
        while heap:
            task = waiting.get(heappop(heap)[1])
            if task is not None:  # else it was recalled
                return task
        return None

    def wait_again(self, task: Task) -> None:
        """A task that was picked may be returned again."""
        queue = task.queue
        heappush(queue.heap, (task.grant.rank, task.key))
        if queue.free:
            self.fillable[queue] = None

    def drop(self, key: Key) -> bool:
        """Remove a waiting lease; False if it does not wait, or has begun in this moment."""
        task = self.waiting.get(key)
        if task is None or not self.recall(task):
            return False
        self.leave(task)
        return True

    def leave(self, task: Task) -> None:
        """A task waits no longer."""
        del self.waiting[task.key]
        task.queue.waiting -= 1

    def unbind(self, seat: Seat) -> None:
        """Let nothing begin in this seat by itself."""
        while seat.ahead and self.recall(seat.ahead[0]):
            pass

    def close(self, queue: LeaseQueue) -> list[Seat]:
        """Forget the free seats of a queue."""
        closed, queue.free = queue.free, []
        for seat in closed:
            del self.seats[seat.id]
        self._forget_if_unused(queue)
        return closed

    def remove(self, seat: Seat, now: float) -> None:
        """Forget the seat of a task that has just ended."""
        self.worked_at = now
        del self.seats[seat.id]
        self._forget_if_unused(seat.queue)

    def _forget_if_unused(self, queue: LeaseQueue) -> None:
        if not queue.waiting and all(seat.queue is not queue for seat in self.seats.values()):
            self.queues.pop(queue.size, None)
