"""Single facts about a job as text: how it ended, how long it ran, its types. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rota.wire.views import JobView


def exit_text(job: JobView) -> str:
    """Its signal or exit code; a dash if there is none."""
    if job.signal:
        return job.signal
    if job.exit_code is not None:
        return str(job.exit_code)
    return "-"


def ran_s(job: JobView, now: datetime) -> float | None:
    """How long its attempt has run, in seconds, without the time that it was suspended; None if it never ran."""
    if job.wall_s is not None:
        return job.wall_s
    if job.started_at is None or job.ended_at is not None:
        return None
    return max(0.0, (now - job.started_at).total_seconds() - (job.suspended_s or 0.0))


def types_text(words: Sequence[str]) -> str:
    """Job types in one line, with times in the local zone."""
    from rota.plan.language.type_parser import MOMENTS

    shown = []
    for word in words:
        name, _, value = word.partition("=")
        if name in MOMENTS:
            word = f"{name}={datetime.fromtimestamp(float(value)):%Y-%m-%d %H:%M:%S}"
        shown.append(word)
    return ", ".join(shown)
