"""Ratios of paired measurements: an estimate that outliers do not move, and its 95 % interval.

The estimate is the Hodges-Lehmann one over logarithms of the pairs' ratios: the median of the means of all pairs
of them. Its interval is that of the signed-rank test. Neither assumes a distribution but that slow moments of the
machine hit both sides alike, which interleaving sees to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

#: Fewer pairs prove nothing at 95 %.
LEAST = 6
_NORMAL = 1.959964  # 97.5 %


class Ratio(NamedTuple):
    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """How far the interval reaches from the estimate, as a part of it; infinite if nothing is known."""
        return max(self.high / self.value, self.value / self.low) - 1 if self.low > 0 else math.inf


def ratio(pairs: Sequence[tuple[float, float]]) -> Ratio:
    """Of the first of each pair to the second, both above 0; of fewer than `LEAST` its interval is unbounded."""
    logs = [math.log(one / other) for one, other in pairs]
    means = sorted((one + other) / 2 for n, one in enumerate(logs) for other in logs[n:])
    count = len(logs)
    middle = len(means) // 2
    value = means[middle] if len(means) % 2 else (means[middle - 1] + means[middle]) / 2
    spread = math.sqrt(count * (count + 1) * (2 * count + 1) / 24)
    cut = math.floor(count * (count + 1) / 4 - _NORMAL * spread)
    if count < LEAST or cut < 1:
        return Ratio(math.exp(value), 0.0, math.inf)
    return Ratio(math.exp(value), math.exp(means[cut - 1]), math.exp(means[-cut]))
