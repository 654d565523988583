"""Leases that are out, and reservations that were granted."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from rota.plan.ask import Ask


class Away(NamedTuple):
    """A suspended job that has given up its cores."""

    since: float  #: wall time
    left_s: float  #: so long it will run when it goes on
    hard: bool  #: a walltime ends it by then
    resuming: bool = False  #: it waits for its cores


class Held(NamedTuple):
    """A lease that is out."""

    job: int
    host: str
    since: float  #: wall time
    ask: Ask
    submitted: float  #: wall time
    resources: str  #: as given by the planner; empty: it was not asked
    on_terms: bool = False  #: does it need a plan?
    end: float | None = None  #: until when, where that is not what it asked for
    away: Away | None = None  #: it is suspended, and has given up its cores
    gang: int = 0  #: the gang that it is a member of; 0: none


class Reserved(Struct, frozen=True, array_like=True, gc=False):
    """What a granted reservation will have."""

    resources: str
    alternative: int = 0  #: which of those that were asked for
