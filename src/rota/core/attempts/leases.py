"""What is said about leases between a runner and the engine.

These records travel on the wire as they are, so the hot path converts nothing. (job, attempt, token)
is the fence: nothing is done for a lease whose three numbers do not all fit.
"""

from __future__ import annotations

from msgspec import Struct

from rota.core.jobs.job import Outcome


class LeaseRef(Struct, frozen=True, array_like=True, gc=False):
    """Names one lease."""

    job: int
    attempt: int
    token: int


class HeldLease(Struct, frozen=True, array_like=True, gc=False):
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


class PartOpened(Struct, frozen=True, array_like=True, gc=False):
    """A host is ready for its part of a lease, or (not `ok`) cannot be and has nothing of it."""

    job: int
    attempt: int
    token: int
    ok: bool = True
    message: str = ""


class Phase(Struct, frozen=True, array_like=True, gc=False):
    """A lease is in a phase that takes time and is not the command: the site's prologue or epilogue."""

    job: int
    attempt: int
    token: int
    name: str


class NodeFault(Struct, frozen=True, array_like=True, gc=False):
    """A hook of the site failed at a runner's host: nothing more should begin there."""

    job: int  #: for which it ran
    attempt: int
    hook: str
    message: str


class Paused(Struct, frozen=True, array_like=True, gc=False):
    """All processes of an attempt (or of its part) at a runner stand still, or go on (again)."""

    job: int
    attempt: int
    token: int
    frozen: bool
    at: float  #: since when, wall time
    message: str = ""  #: what went wrong


class Finished(Struct, frozen=True, array_like=True, gc=False):
    """An attempt is over and nothing of it is left."""

    job: int
    attempt: int
    token: int
    seat: int
    outcome: Outcome
