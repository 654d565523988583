"""How often something took how long, in the buckets of a Prometheus histogram."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

from rota.wire.views import HistogramView

#: Of turns of the engine and commits.
QUICK: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
#: Of jobs that wait.
SLOW: Final = (0.1, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0, 604_800.0)


class Histogram:
    """Counted since the manager started."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, seconds: float) -> None:
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._sum += seconds

    def view(self) -> HistogramView:
        return HistogramView(list(self._bounds), self._counts[:], self._sum)
