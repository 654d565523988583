"""How long a job is expected to run: what such jobs took, else what its user said.

A forecast, not a size: nothing is added for safety, and nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

#: So many have to have been seen before they say more than the user.
LEAST_SEEN: Final = 3
#: What is seen of jobs that differ more than this (the largest quarter from the middle) says less than their user.
_ALIKE: Final = 4.0


def usual_s(
    seen: Sequence[float], *, estimate_s: float | None = None, limit_s: float | None = None, ran_s: float = 0.0
) -> float | None:
    """The whole length of a job that has run for `ran_s`; None: nobody can say.

    `seen`: what such jobs took. `estimate_s`: what its user said. `limit_s`: a walltime that ends it.
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
