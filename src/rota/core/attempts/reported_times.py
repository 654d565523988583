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


def in_lease(lease: Lease, said: float, now: float) -> float:
    """A moment at which something happened to an attempt, within its lease."""
    if lease.leased_at - SLACK_S <= said <= now + SLACK_S:
        return said
    return max(lease.leased_at, min(said, now))


def timed(lease: Lease, outcome: Outcome, now: float) -> Outcome:
    """How an attempt ended, with times that can be true: it began when that was told, and took as long as its
    runner measured, but no longer than its lease is old."""
    told, ended = outcome.started_at, outcome.ended_at
    known = lease.started_at
    earliest, latest = lease.leased_at - SLACK_S, now + SLACK_S
    if told is not None and (known is None or known == told) and earliest <= told <= ended <= latest:
        return outcome  # as nearly always
    began = known if known is not None else told
    if began is None:
        return replace(outcome, ended_at=in_lease(lease, ended, now))
    began = in_lease(lease, began, now)
    took = max(0.0, ended - (told if told is not None else began))
    took = min(took, max(0.0, now - lease.leased_at) + SLACK_S)
    return replace(outcome, started_at=began, ended_at=max(began, min(began + took, latest)))
