"""A line through points some of which may be far off: Theil's, from the median of slopes."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Final, NamedTuple

from rota.core.learning.percentile import TAIL

#: Fewer points than this say too little about a slope.
MIN_POINTS: Final = 8
#: More cost time and tell nothing new; the newest are taken.
MAX_POINTS: Final = 128


class FittedLine(NamedTuple):
    """How a value depends on the size of the input, and what 95 % of the values are below."""

    slope: float
    intercept: float
    above: float  #: to be added to the line, when values scatter equally everywhere
    factor: float  #: or the line is multiplied, when larger ones scatter more
    lowest: float  #: the least value that was seen

    def at(self, x: float) -> float:
        """What 95 % of the values for this input are below; never less than was ever seen."""
        return max(self.lowest, (self.intercept + self.slope * x) * self.factor + self.above)


def fit(points: Sequence[tuple[float, float]]) -> FittedLine | None:
    """The line through (input size, value) points; None if they cannot tell a slope.

    Each point of the lower half is joined to its partner in the upper half, and the median of these
    slopes is taken: n log n, and a quarter of the points may be anything.
    """
    if len(points) < MIN_POINTS:
        return None
    ordered = sorted(points)
    half = len(ordered) // 2
    slopes = [
        (y2 - y1) / (x2 - x1)
        for (x1, y1), (x2, y2) in zip(ordered[:half], ordered[-half:], strict=True)
        if x2 > x1
    ]
    if len(slopes) * 2 < half:
        return None
    slope = median(slopes)
    rests = sorted(y - slope * x for x, y in ordered)
    intercept = median(rests)
    lowest = min(y for _, y in ordered)
    # The same rule as for the percentile of values: the next one is one more of them.
    rank = max(1, (len(rests) + 1) // TAIL)
    shifted = FittedLine(slope, intercept, rests[-rank] - intercept, 1.0, lowest)
    if intercept + slope * ordered[0][0] <= 0 or intercept + slope * ordered[-1][0] <= 0:
        return shifted
    factor = sorted(y / (intercept + slope * x) for x, y in ordered)[-rank]
    scaled = FittedLine(slope, intercept, 0.0, factor, lowest)
    # Both cover the same part of the points; the one that needs less describes them better.
    return min(shifted, scaled, key=lambda line: sum(line.at(x) for x, _ in ordered))
