"""How a site shares its resources: queues and their order, and the constants of fair share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

ORDERS: Final = ("fifo", "fairshare", "multifactor")
BACKFILLS: Final = ("none", "easy", "easy-sjbf", "conservative")

#: A queue and a type: a job has both or neither.
BESTEFFORT: Final = "besteffort"

#: Prefix of a project's name among the shares of a queue.
PROJECT: Final = "project:"

#: A reservation waits so long for missing resources, then starts with fewer.
PATIENCE_S: Final = 300.0


class Queue(Struct, frozen=True, kw_only=True):
    """A queue. Queues of higher priority are planned first, queues of equal priority together."""

    priority: int = 2
    order: str = "fifo"
    backfill: str = "conservative"
    walltime_s: float | None = None  #: for jobs without one
    max_wait_s: float = 7 * 86400.0  #: a job that waited this long goes to the front
    shares: Mapping[str, float] = {}  #: user, or "project:NAME" → target share
    max_priority: int | None = None  #: the highest priority that users may give; None: any
    admins_only: bool = False  #: only administrators may submit to it; rules may put any job there
    closed: bool = False  #: takes no new jobs; jobs in it stay
    closed_reason: str = ""


#: The largest weight of fair share.
MOST_WEIGHT: Final = 1000


class FairShare(Struct, frozen=True, kw_only=True):
    """Weights of the three parts of karma, and how fast use is forgotten."""

    project: float | None = None  #: None: 1 in queues where projects have shares, 0 in others
    used: float = 1.0
    asked: float = 1.0
    half_life_s: float = 7 * 86400.0
    window_s: float | None = None  #: older use does not count; None: it only decays


DEFAULT_QUEUES: Final = {
    "admin": Queue(priority=10, admins_only=True),
    "default": Queue(priority=2),
    BESTEFFORT: Queue(priority=0),
}


class Policy(Struct, frozen=True, kw_only=True):
    """Everything that decides in which order jobs are planned."""

    queues: Mapping[str, Queue] = field(default_factory=lambda: dict(DEFAULT_QUEUES))
    fair_share: FairShare = FairShare()
    depth: int = 10_000  #: at most so many jobs have planned starts
