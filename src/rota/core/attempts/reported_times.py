"""The times of an attempt as its runner reported them, corrected where they cannot be true.

Nothing of an attempt happens before its lease or after its report. The runner measures durations with a monotonic
clock, so a duration is kept even if the attempt has to be shifted.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from rota.core.jobs.job import Lease
from rota.core.jobs.outcome import Outcome

#: Clocks of hosts differ a little: times outside the bounds by no more than this are accepted.
SLACK_S: Final = 60.0


def in_lease(lease: Lease, at: float, now: float) -> float:
    """Clamp a reported time to the life of the lease."""
    if lease.leased_at - SLACK_S <= at <= now + SLACK_S:
        return at
    return max(lease.leased_at, min(at, now))


def timed(lease: Lease, outcome: Outcome, now: float) -> Outcome:
    """Correct the times of an outcome.

    The attempt began when its start was reported and took as long as its runner measured, but no longer than its
    lease is old.
    """
    reported, ended = outcome.started_at, outcome.ended_at
    known = lease.started_at
    earliest, latest = lease.leased_at - SLACK_S, now + SLACK_S
    if reported is not None and (known is None or known == reported) and earliest <= reported <= ended <= latest:
        return outcome  # the usual case
    began = known if known is not None else reported
    if began is None:
        return replace(outcome, ended_at=in_lease(lease, ended, now))
    began = in_lease(lease, began, now)
    took = max(0.0, ended - (reported if reported is not None else began))
    took = min(took, max(0.0, now - lease.leased_at) + SLACK_S)
    return replace(outcome, started_at=began, ended_at=max(began, min(began + took, latest)))
