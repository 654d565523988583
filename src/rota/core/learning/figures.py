"""What a model knows of one resource at one moment: all that a recommendation depends on."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from rota.core.learning.observation import Resource
from rota.core.learning.regression import FittedLine

_MB100: Final = 100 * 10**6
_MINUTE: Final = 60.0


def with_margin(resource: Resource, value: float) -> float:
    """Add the safety margin."""
    if resource == "time":
        return value + max(value / 4, _MINUTE)
    return value + max(value / 10, _MB100 if resource == "mem" else 0)


class Figures(Struct, frozen=True, gc=False):
    """Of one resource. It does not change when the model learns more."""

    resource: Resource
    enough: bool  #: are there enough successes?
    largest: float  #: that a success used
    percentile: tuple[float, float] = (0.0, 0.0)  #: the lowest and highest value that it can have
    failures: tuple[tuple[float, int | None], ...] = ()  #: what was too small, and the input size
    line: FittedLine | None = None  #: the fitted dependence on the input size

    def recommend(self, asked: float, input_bytes: int | None = None) -> float | None:
        """How much the next job should get, not rounded; None: nothing is known.

        With too few successes it is what was asked, or more if more was seen. Upper bounds can lower it below what
        was asked, but never raise it.
        """
        resource = self.resource
        line = self.line if input_bytes is not None else None
        proven = self.proven(input_bytes if line is not None else None)
        if not self.enough:
            seen = max(proven, self.largest)
            if not seen:
                return None
            return asked if seen <= asked and proven < asked else max(asked, with_margin(resource, seen))
        if line is not None and input_bytes is not None:
            return max(proven, with_margin(resource, line.at(input_bytes)))
        least, most = self.percentile
        if least == most:
            return max(proven, with_margin(resource, most))
        # The truth lies between the two; what was asked is as good a guess as any in between.
        needed = max(asked, with_margin(resource, least) if least else 0.0)
        return max(proven, min(needed, with_margin(resource, most)))

    def at_most(self) -> float | None:
        """The recommendation for a job that asked for more than it needs, not rounded; None: too little is
        known."""
        return max(self.proven(None), with_margin(self.resource, self.percentile[1])) if self.enough else None

    def proven(self, input_bytes: int | None) -> float:
        """What recent failures proved too small. One with a larger input proves nothing for a smaller one."""
        return max(
            (small for small, size in self.failures if input_bytes is None or size is None or size <= input_bytes),
            default=0.0,
        )
