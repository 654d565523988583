"""One job in the plan: what it asks for, prepared for the site, and what has been decided about it."""

from __future__ import annotations

from math import inf
from typing import Final, NamedTuple

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

NO_JOBS: Final[frozenset[int]] = frozenset()

#: Queue priority, priority, order, submission: smaller goes first.
Rank = tuple[float, ...]


class CappedRank(NamedTuple):
    """A rank that a job has where its priority is capped."""

    rank: Rank
    within: int  #: the resources on which it has this rank or a better one


class Option(NamedTuple):
    """One alternative on the present site."""

    shape: Shape
    length: float  #: planned seconds
    hard: bool  #: a walltime ends it by then


class Team(NamedTuple):
    """What the members of a waiting gang take, each by its place in the input."""

    takings: tuple[Taking | None, ...]
    counted: tuple[tuple[QuotaCounters, tuple[int, ...]], ...]  #: quotas, and the members that each counts


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
    #: from best to worst, if machines with a cap give it several; the first is `rank`, the last holds everywhere
    ranks: tuple[CappedRank, ...] = ()
    within: int = -1  #: the resources that it may have while it is planned by one of these ranks
    serial: int = 0  #: in order of submission
    session_place: tuple[int, ...] = ()  #: its place in its session of a pipeline; empty: it is in none
    options: tuple[Option, ...] = ()
    even: bool = False  #: does each option always take the same number of resources?
    trouble: Waits | None = None  #: why it could not run even on an empty site
    least: int = 0  #: the fewest resources that an alternative needs
    shortest: float = 0.0  #: the length of the shortest alternative
    charged: float = -inf  #: its use up to then is already counted in fair share
    counted: QuotaCounters | None = None  #: the quotas that count it
    taking: Taking | None = None  #: what it takes of each host
    everywhere: Taking = NOTHING  #: what it takes of the limits of the site
    after: frozenset[int] = NO_JOBS  #: jobs that must complete first
    fixed: bool = False  #: a granted reservation: never moved
    home: int = 0  #: the id of the container that it is planned in; 0: none
    start: float | None = None  #: planned or real
    end: float | None = None  #: expected
    resources: int = 0
    alternative: int = 0
    reason: Waits | None = None
    blamed: bool = False  #: not only resources keep it waiting: try it again after every event
    team: Team | None = None  #: it is a gang that waits
    parts: tuple[int, ...] = ()  #: of a gang with a place: the resources of each member
    gang: int = 0  #: the gang that this running job is a member of

    def __post_init__(self) -> None:
        types = self.ask.types
        shares = types.placeholder or types.allowed or self.ask.share
        self.special = types.timesharing is not None or bool(shares)

    @property
    def jobs(self) -> tuple[int, ...]:
        """Its id, or those of all members of a gang that waits."""
        gang = self.ask.gang
        return (self.id,) if gang is None else tuple(member.job for member in gang.members)

    def __repr__(self) -> str:
        return f"<{self.id} {self.state} {self.start}-{self.end}>"


class Begin(NamedTuple):
    """A job, or all members of a gang, begin now; these besteffort jobs must end first."""

    entry: PlanEntry
    victims: list[int]
    members: tuple[PlanEntry, ...] = ()  #: of a gang, in input order; `entry` is the one whose id the gang had

    @property
    def entries(self) -> tuple[PlanEntry, ...]:
        """All that begin together."""
        return self.members or (self.entry,)


def by_rank(entry: PlanEntry) -> Rank:
    return entry.rank
