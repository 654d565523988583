"""What is said about leases between a runner and the engine.

These records travel on the wire as they are, so the hot path converts nothing. (job, attempt, token)
is the fence: nothing is done for a lease whose three numbers do not all fit.
"""

from __future__ import annotations

from msgspec import Struct

from rota.core.job import Outcome


class LeaseRef(Struct, frozen=True, array_like=True, gc=False):
    """Names one lease."""

    job: int
    attempt: int
    token: int


class Held(Struct, frozen=True, array_like=True, gc=False):
    """A lease that a runner still has when it (re)joins: waiting, running, or ended but unacknowledged."""

    job: int
    attempt: int
    token: int
    seat: int  #: 0: not started
    started_at: float | None = None
    pid: int = 0
    over: bool = False  #: it has ended, and the report that says so is still to be acknowledged


class Started(Struct, frozen=True, array_like=True, gc=False):
    """An attempt began to execute."""

    job: int
    attempt: int
    token: int
    seat: int
    started_at: float
    pid: int


class Finished(Struct, frozen=True, array_like=True, gc=False):
    """An attempt is over and nothing of it is left."""

    job: int
    attempt: int
    token: int
    seat: int
    outcome: Outcome
