"""One job in the plan: what it asks for, prepared for the site, and what has been decided about it."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from rota.plan.ask import Ask
from rota.plan.policy.quotas import QuotaCounters
from rota.plan.reasons import Waits
from rota.plan.timeline.ledger import Taking
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


class PlanEntry:
    """One job in the plan. Only the planner changes it."""

    __slots__ = ("after", "alternative", "ask", "blamed", "charged", "counted", "end", "everywhere", "fixed",
                 "home", "id", "kind", "least", "options", "rank", "reason", "resources", "serial", "shortest",
                 "special", "start", "state", "submitted", "taking", "trouble")  # fmt: skip

    def __init__(self, id: int, ask: Ask, submitted: float) -> None:
        self.id = id
        self.ask = ask
        types = ask.types
        #: may it share resources with other jobs?
        self.special = types.timesharing is not None or bool(types.placeholder or types.allowed or ask.share)
        self.submitted = submitted
        self.state = WAITING
        self.rank: Rank = ()
        self.serial = 0  #: in order of submission
        self.options: list[Option] = []
        self.kind: object = None  #: equal for jobs with the same options; None: no job is equal
        self.trouble: Waits | None = None  #: why it could not run even on an empty site
        self.least = 0  #: the fewest resources that an alternative needs
        self.shortest = 0.0  #: the length of the shortest alternative
        self.charged = -inf  #: its use up to then is already counted in fair share
        self.counted: QuotaCounters | None = None  #: the quotas that count it
        self.taking: Taking | None = None  #: what it takes of each host
        self.everywhere: Taking = {}  #: what it takes of the limits of the site
        self.after: set[int] = set()  #: jobs that must complete first
        self.fixed = False  #: a granted reservation: never moved
        self.home = 0  #: the id of the container that it is planned in; 0: none
        self.start: float | None = None  #: planned or real
        self.end: float | None = None  #: expected
        self.resources = 0
        self.alternative = 0
        self.reason: Waits | None = None
        self.blamed = False  #: not only resources keep it waiting: try it again after every event

    def __repr__(self) -> str:
        return f"<{self.id} {self.state} {self.start}-{self.end}>"


class Begin(NamedTuple):
    """A job begins now; these besteffort jobs must end first."""

    entry: PlanEntry
    victims: list[int]


def by_rank(entry: PlanEntry) -> Rank:
    return entry.rank
