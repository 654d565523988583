"""Whether and when a failed attempt is tried again."""

from __future__ import annotations

from collections.abc import Callable

from rota.core.job import Job, Outcome

MAX_DELAY_S = 30 * 60.0
MAX_JITTER_S = 30.0


def delay_s(backoff_s: float, failures: int, random: Callable[[], float]) -> float:
    """How long to wait after this many failures: exponential, with jitter, at most half an hour."""
    doubled = backoff_s * 2.0 ** min(failures - 1, 40)
    return min(MAX_DELAY_S, doubled + random() * min(MAX_JITTER_S, backoff_s))


def may_retry(job: Job, outcome: Outcome) -> bool:
    """Is another attempt allowed, `job.tries` already counting this failure?"""
    if job.tries > job.spec.retries or outcome.permanent:
        return False
    limit = job.spec.no_retry_over_s
    if limit is not None and outcome.started_at is not None:
        return outcome.ended_at - outcome.started_at <= limit
    return True
