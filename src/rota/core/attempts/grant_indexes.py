"""Which attempts have a grant that must be looked at again. Data only."""

from __future__ import annotations


class Suspensions:
    """State of the feature `suspension`."""

    __slots__ = ("jobs",)

    def __init__(self) -> None:
        self.jobs: set[int] = set()  #: suspended, being suspended or being resumed


class Extensions:
    """State of the feature `walltimes`."""

    __slots__ = ("jobs",)

    def __init__(self) -> None:
        self.jobs: set[int] = set()  #: asked for more walltime than could be granted so far


class Expiries:
    """State of the feature `expiry hook`: the site decides whether a job that is about to end gets more time."""

    __slots__ = ("asked", "asking", "changed", "due", "notice_s")

    def __init__(self) -> None:
        self.notice_s = 0.0  #: the hook is asked so long before the end
        self.changed: set[int] = set()  #: jobs that have begun, or whose end may have moved
        self.due: list[tuple[float, int, int]] = []  #: heap of (wall time, job, attempt); some are outdated
        self.asked: dict[int, tuple[int, float]] = {}  #: job → (attempt, walltime) that the hook was asked about
        self.asking: set[int] = set()  #: jobs that the hook has not answered for yet
