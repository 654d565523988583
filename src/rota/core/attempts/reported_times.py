"""When an attempt ran: what its runner says, as far as it can be true.

Nothing of an attempt happens before its lease or after the report of it. A runner measures how long it took, which
no clock that is set can change: that is kept wherever the attempt is put.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from rota.core.jobs.job import Lease, Outcome

#: Clocks of hosts differ by a little; what lies beyond the bounds by no more is left as it was told.
SLACK_S: Final = 60.0


def in_lease(lease: Lease, at: float, now: float) -> float:
    """A moment at which something happened to an attempt, within its lease."""
    if lease.leased_at - SLACK_S <= at <= now + SLACK_S:
        return at
    return max(lease.leased_at, min(at, now))


def timed(lease: Lease, outcome: Outcome, now: float) -> Outcome:
    """How an attempt ended, with times that can be true: it began when that was reported, and took as long as its
    runner measured, but no longer than its lease is old."""
    reported, ended = outcome.started_at, outcome.ended_at
    known = lease.started_at
    earliest, latest = lease.leased_at - SLACK_S, now + SLACK_S
    if reported is not None and (known is None or known == reported) and earliest <= reported <= ended <= latest:
        return outcome  # as nearly always
    began = known if known is not None else reported
    if began is None:
        return replace(outcome, ended_at=in_lease(lease, ended, now))
    began = in_lease(lease, began, now)
    took = max(0.0, ended - (reported if reported is not None else began))
    took = min(took, max(0.0, now - lease.leased_at) + SLACK_S)
    return replace(outcome, started_at=began, ended_at=max(began, min(began + took, latest)))
