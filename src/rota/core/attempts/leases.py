"""Messages about leases between runners and the engine.

These records go onto the wire as they are, so the hot path converts nothing. (job, attempt, token) is the fence: a
message counts only if all three match the valid lease.
"""

from __future__ import annotations

from msgspec import Struct

from rota.core.jobs.outcome import Outcome


class LeaseRef(Struct, frozen=True, array_like=True, gc=False):
    """The name of a lease."""

    job: int
    attempt: int
    token: int


class HeldLease(Struct, frozen=True, array_like=True, gc=False):
    """A lease that a runner holds when it joins: waiting, running, or ended and not yet acknowledged."""

    job: int
    attempt: int
    token: int
    seat: int  #: 0: not started
    started_at: float | None = None
    pid: int = 0
    over: bool = False  #: it has ended, and its report is not acknowledged yet


class Started(Struct, frozen=True, array_like=True, gc=False):
    """An attempt began to execute."""

    job: int
    attempt: int
    token: int
    seat: int
    started_at: float
    pid: int


class PartOpened(Struct, frozen=True, array_like=True, gc=False):
    """A host is ready for its part of a lease; if not `ok`, it cannot be and has nothing of it."""

    job: int
    attempt: int
    token: int
    ok: bool = True
    message: str = ""


class Phase(Struct, frozen=True, array_like=True, gc=False):
    """A lease entered a phase besides its command: the site's prologue or epilogue."""

    job: int
    attempt: int
    token: int
    name: str


class NodeFault(Struct, frozen=True, array_like=True, gc=False):
    """A hook of the site failed on a host, so nothing more should begin there."""

    job: int  #: the job for which the hook ran
    attempt: int
    hook: str
    message: str


class JobProgress(Struct, frozen=True, array_like=True, gc=False):
    """How far an attempt says that it has come."""

    job: int
    attempt: int
    token: int
    done: float
    of: float | None = None  #: how much there is to do; None: not known
    text: str = ""


class Paused(Struct, frozen=True, array_like=True, gc=False):
    """All processes of an attempt at a runner are frozen, or run (again)."""

    job: int
    attempt: int
    token: int
    frozen: bool
    at: float  #: wall time of the change
    message: str = ""  #: what failed


class Finished(Struct, frozen=True, array_like=True, gc=False):
    """An attempt has ended and nothing of it is left."""

    job: int
    attempt: int
    token: int
    seat: int
    outcome: Outcome
