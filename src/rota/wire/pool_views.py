"""Pools as clients see them: the objects behind `rota pool list --json`."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from rota.wire.job_parts import SizeView


class PoolGroupView(Struct, kw_only=True, gc=False):
    """Jobs of one size and the same limits, and the runners that a pool was asked for because of them."""

    size: SizeView
    limits: list[str]
    walltime_s: float | None
    ready: int  #: jobs that wait for runners of this pool
    wanted: int  #: runners that it should have, those that run jobs included
    pending: int  #: runners that were asked for and have not started, as far as is known
    running: int
    error: str | None
    retry_at: datetime | None  #: after an error nothing is asked for until then


class PoolRunnerView(Struct, kw_only=True, gc=False):
    """A runner of a pool, or one that was asked for."""

    id: str
    engine_id: str  #: what the engine calls it; empty: not known, or there is no other engine
    host: str
    state: str


class PoolView(Struct, kw_only=True, gc=False):
    """One pool."""

    name: str
    engine: str
    state: str  #: ok, error, off
    error: str | None
    groups: list[PoolGroupView]
    runners: list[PoolRunnerView]
    max_runners: int | None = None  #: null: as many as it has hosts


class PoolsView(Struct, kw_only=True, gc=False):
    """`rota pool list` and `rota pool status`: pools in the order in which they are tried."""

    pools: list[PoolView]
