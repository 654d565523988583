"""One job in the plan: what it asks for, prepared for the site, and what has been decided about it."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from msgspec import Struct

from rota.plan.ask import Ask
from rota.plan.policy.quotas import QuotaCounters
from rota.plan.reasons import Waits
from rota.plan.timeline.ledger import NOTHING, Taking
from rota.plan.timeline.shapes import Shape

WAITING = "waiting"
RUNNING = "running"
SUSPENDED = "suspended"  #: it has begun, and has given up its cores for now
BLOCKED = "blocked"  #: a parent failed, so it will never run

#: Queue priority, priority, order, submission: smaller goes first.
Rank = tuple[float, ...]


class Option(NamedTuple):
    """One alternative on the present site."""

    shape: Shape
    length: float  #: planned seconds
    hard: bool  #: a walltime ends it by then


class PlanEntry(Struct, eq=False, gc=False):
    """One job in the plan. Only the planner changes it.

    It refers to nothing that refers to it, so reference counts are enough to free it.
    """

    id: int
    ask: Ask
    submitted: float
    special: bool = False  #: may it share resources with other jobs?
    state: str = WAITING
    rank: Rank = ()
    serial: int = 0  #: in order of submission
    options: tuple[Option, ...] = ()
    kind: Option | tuple[Option, ...] | None = None  #: equal for jobs with the same options; None: no job is equal
    trouble: Waits | None = None  #: why it could not run even on an empty site
    least: int = 0  #: the fewest resources that an alternative needs
    shortest: float = 0.0  #: the length of the shortest alternative
    charged: float = -inf  #: its use up to then is already counted in fair share
    counted: QuotaCounters | None = None  #: the quotas that count it
    taking: Taking | None = None  #: what it takes of each host
    everywhere: Taking = NOTHING  #: what it takes of the limits of the site
    after: frozenset[int] = frozenset()  #: jobs that must complete first
    fixed: bool = False  #: a granted reservation: never moved
    home: int = 0  #: the id of the container that it is planned in; 0: none
    start: float | None = None  #: planned or real
    end: float | None = None  #: expected
    resources: int = 0
    alternative: int = 0
    reason: Waits | None = None
    blamed: bool = False  #: not only resources keep it waiting: try it again after every event

    def __post_init__(self) -> None:
        types = self.ask.types
        shares = types.placeholder or types.allowed or self.ask.share
        self.special = types.timesharing is not None or bool(shares)

    def __repr__(self) -> str:
        return f"<{self.id} {self.state} {self.start}-{self.end}>"


class Begin(NamedTuple):
    """A job begins now; these besteffort jobs must end first."""

    entry: PlanEntry
    victims: list[int]


def by_rank(entry: PlanEntry) -> Rank:
    return entry.rank
