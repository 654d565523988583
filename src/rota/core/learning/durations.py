"""The expected duration of a job: that of similar jobs, else the user's estimate.

A forecast, not a size: no margin is added and nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

#: Durations needed before they count more than the user's estimate.
LEAST_SEEN: Final = 3
#: If the upper quartile exceeds the median by more than this factor, the user's estimate counts more.
_ALIKE: Final = 4.0


def usual_s(
    seen: Sequence[float], *, estimate_s: float | None = None, limit_s: float | None = None, ran_s: float = 0.0
) -> float | None:
    """The whole duration of a job that has run for `ran_s`; None: unknown.

    `seen`: durations of similar jobs. `estimate_s`: the user's estimate. `limit_s`: its walltime.
    """
    longer = sorted(length for length in seen if length > ran_s)
    expected: float | None = None
    if len(seen) >= LEAST_SEEN and longer:
        expected = longer[len(longer) // 2]
        if estimate_s is not None and estimate_s > ran_s and not _alike(seen):
            expected = estimate_s
    elif estimate_s is not None and estimate_s > ran_s:
        expected = estimate_s
    elif longer:
        expected = longer[len(longer) // 2]
    if limit_s is not None:
        return limit_s if expected is None else min(expected, limit_s)
    return expected


def _alike(seen: Sequence[float]) -> bool:
    ordered = sorted(seen)
    return ordered[len(ordered) * 3 // 4] <= _ALIKE * max(1.0, ordered[len(ordered) // 2])
