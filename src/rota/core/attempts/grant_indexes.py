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
