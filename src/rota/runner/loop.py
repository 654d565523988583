"""What components share with the runner's loop: its `epoll`, the time of this turn, and the next deadline."""

from __future__ import annotations

import select
import time
from collections.abc import Callable


class Loop:
    """The state of the one loop of a runner. `Agent.run` turns it."""

    __slots__ = ("done", "due_at", "failed", "later", "now", "poll")

    def __init__(self) -> None:
        self.poll = select.epoll()
        self.now = time.monotonic()  #: when this turn began
        self.due_at = 0.0  #: the next tick comes no later than this
        self.later: list[Callable[[], None]] = []  #: to be called in the next turn
        self.done = False  #: is it time to exit?
        self.failed = False  #: did the manager refuse this runner?

    def due(self, at: float) -> None:
        """Tick no later than at this (monotonic) time."""
        if at < self.due_at:
            self.due_at = at
