"""The expected end of a job that has overrun."""

from __future__ import annotations


def new_end(start: float, now: float) -> float:
    """A new expected end for a job that should have ended by now; in 64ths of a second: sums stay exact."""
    return round((now + max(60.0, (now - start) / 4)) * 64) / 64
