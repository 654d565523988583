"""How fast jobs end, by group: counted as they end, so that asking costs nothing per job.

Time is an argument, in seconds of any steady clock.
"""

from __future__ import annotations

from collections import deque
from typing import Final

#: Length of the window of the rates.
WINDOW_S: Final = 60
#: The weight of the newest job in the mean time that jobs take.
_NEWEST: Final = 0.1
#: Shorter pauses between ends say nothing.
_PAUSE_S: Final = 2.0


class Ends:
    """The ends of one kind of job."""

    __slots__ = ("_lately", "_seconds", "ended", "last", "wall_s")

    def __init__(self) -> None:
        self._seconds: deque[list[int]] = deque()  #: [second, ends in it]
        self._lately = 0
        self.last = 0.0  #: when the newest was
        self.ended = 0
        self.wall_s = 0.0  #: what they took, on average, the newest counting most

    def add(self, wall_s: float | None, now: float) -> bool:
        """One more; was it the first of this second?"""
        self._lately += 1
        self.last = now
        if wall_s is not None:
            self.ended += 1
            self.wall_s += (wall_s - self.wall_s) * max(_NEWEST, 1 / self.ended)
        second = int(now)
        if self._seconds and self._seconds[-1][0] == second:
            self._seconds[-1][1] += 1
            return False
        self._seconds.append([second, 1])
        return True

    def rate(self, now: float) -> float | None:
        """Ends a second; None unless ends of at least two different seconds are known.

        Counted from the first end on: when the work before that began is not known.
        """
        self.forget(now)
        if len(self._seconds) < 2:
            return None
        second, first = self._seconds[0]
        return (self._lately - first) / (now - second)

    def forget(self, now: float) -> None:
        """Forget ends before the window."""
        while self._seconds and self._seconds[0][0] < now - WINDOW_S:
            self._lately -= self._seconds.popleft()[1]


class Rates:
    """The ends of the jobs of each group."""

    def __init__(self) -> None:
        self._groups: dict[str, Ends] = {}
        #: groups with ends to forget, by time, so that idle groups take no memory
        self._dated: deque[tuple[int, Ends]] = deque()

    def ended(self, group: str, wall_s: float | None, now: float) -> None:
        """A job of this group ended after having run for so long (None: not known)."""
        ends = self._groups.get(group)
        if ends is None:
            ends = self._groups[group] = Ends()
        if ends.add(wall_s, now):
            self._dated.append((int(now), ends))
        while self._dated and self._dated[0][0] < now - WINDOW_S:
            self._dated.popleft()[1].forget(now)

    def group_rate(self, group: str, now: float) -> float | None:
        """Recent rate of a group, in ends a second."""
        ends = self._groups.get(group)
        return ends.rate(now) if ends else None

    def stalled(self, group: str, now: float, *, at_once: int) -> bool:
        """Has no job of a group ended for so long that its rate no longer holds?

        Jobs that start together end together: of so many at once, as many ends may fail to appear for a while.
        """
        ends = self._groups.get(group)
        if ends is None:
            return True
        pause = now - ends.last
        return pause > _PAUSE_S and pause * (ends.rate(now) or 0.0) > 2 * at_once + 1

    def wall_s(self, group: str) -> float | None:
        """Mean wall time of the jobs of a group; None: none was seen."""
        ends = self._groups.get(group)
        return ends.wall_s if ends and ends.ended else None
