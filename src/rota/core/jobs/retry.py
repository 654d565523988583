"""Retries: whether and when a failed attempt is tried again.

A reservation is tried again only if the next attempt can begin before its reserved time is over.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, datetime

from rota.core.jobs.job import Job
from rota.core.jobs.outcome import Outcome
from rota.core.site.reservations import granted
from rota.core.world import World
from rota.plan.language.request_parser import parse_request

MAX_DELAY_S = 30 * 60.0
MAX_JITTER_S = 30.0


def delay_s(backoff_s: float, failures: int, random: Callable[[], float]) -> float:
    """Return the back-off after so many failures: exponential, with jitter, at most half an hour."""
    doubled = backoff_s * 2.0 ** min(failures - 1, 40)
    return min(MAX_DELAY_S, doubled + random() * min(MAX_JITTER_S, backoff_s))


def longest_delay_s(backoff_s: float, failures: int) -> float:
    """Return the longest value of `delay_s`."""
    return delay_s(backoff_s, failures, lambda: 1.0)


def may_retry(job: Job, outcome: Outcome, code: str) -> bool:
    """May another attempt follow one that ended for this reason? `job.tries` counts that one already."""
    spec = job.spec
    return is_retried(
        code=code,
        failures=job.tries,
        retries=spec.retries,
        retry_on=spec.retry_on,
        permanent=outcome.permanent,
        ran_s=None if outcome.started_at is None else outcome.ended_at - outcome.started_at,
        no_retry_over_s=spec.no_retry_over_s,
    )


def is_retried(
    *,
    code: str,
    failures: int,
    retries: int,
    retry_on: Collection[str] | None,
    permanent: bool = False,
    ran_s: float | None = None,
    no_retry_over_s: float | None = None,
) -> bool:
    """May another attempt follow one that ended for the reason `code`, and that `failures` counts already? The
    engine and the simulator decide by the same rule."""
    if failures > retries:
        return False
    if retry_on is None:
        if permanent or code == "walltime":
            return False
    elif code not in retry_on:
        return False
    return no_retry_over_s is None or ran_s is None or ran_s <= no_retry_over_s


def reservation_over(world: World, job: Job, at: float) -> bool:
    """Is this a reservation whose time is over at that moment, so that it can no longer begin?"""
    began = job.spec.at
    if began is None:
        return False
    walltime_s, request = job.spec.walltime_s, job.spec.request
    if request:
        found = granted(world, job.id)
        chosen = found.alternative if found is not None and found.alternative < len(request) else 0
        walltime_s = parse_request(request[chosen]).walltime_s or walltime_s
    return at >= began + (job.size.time_s if walltime_s is None else walltime_s)


def next_attempt_text(world: World, due_at: float, wall: float) -> str:
    """Return `tried again at 14:05:30` in local time; with the date if that is not today.

    A time of day, not a duration: the text is stored and must stay true.
    """
    due, now = (datetime.fromtimestamp(each, UTC).astimezone(world.zone) for each in (due_at, wall))
    return (
        f"tried again at {due:%H:%M:%S}" if due.date() == now.date() else f"tried again at {due:%Y-%m-%d %H:%M:%S}"
    )
