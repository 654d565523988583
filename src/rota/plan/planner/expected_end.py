"""When a job that has overrun its expected end will end."""

from __future__ import annotations


def new_end(start: float, now: float) -> float:
    """When a job that should have ended by now is expected to; in 64ths, so that sums stay exact."""
    return round((now + max(60.0, (now - start) / 4)) * 64) / 64
