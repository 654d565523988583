"""A robust line through points with outliers: Theil's method, the median of slopes."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Final, NamedTuple

from rota.core.learning.percentile import TAIL

#: With fewer points no slope is fitted.
MIN_POINTS: Final = 8
#: Only the newest points are used: more cost time and add nothing.
MAX_POINTS: Final = 128


class FittedLine(NamedTuple):
    """A value as a function of the input size, and the level that 95 % of values stay below."""

    slope: float
    intercept: float
    above: float  #: added to the line, if values scatter equally everywhere
    factor: float  #: multiplies the line, if larger values scatter more
    lowest: float  #: the lowest value seen

    def at(self, x: float) -> float:
        """The value that 95 % of observations for this input stay below; never less than the lowest value seen."""
        return max(self.lowest, (self.intercept + self.slope * x) * self.factor + self.above)


def fit(points: Sequence[tuple[float, float]]) -> FittedLine | None:
    """Fit a line through (input size, value) points; None: they do not determine a slope.

    Each point of the lower half is paired with one of the upper half, and the median slope is taken. That costs n
    log n and tolerates a quarter of outliers.
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
    # As for percentiles: the next value counts too.
    rank = max(1, (len(rests) + 1) // TAIL)
    shifted = FittedLine(slope, intercept, rests[-rank] - intercept, 1.0, lowest)
    if intercept + slope * ordered[0][0] <= 0 or intercept + slope * ordered[-1][0] <= 0:
        return shifted
    factor = sorted(y / (intercept + slope * x) for x, y in ordered)[-rank]
    scaled = FittedLine(slope, intercept, 0.0, factor, lowest)
    # Both cover as many points; the tighter one describes them better.
    return min(shifted, scaled, key=lambda line: sum(line.at(x) for x, _ in ordered))
