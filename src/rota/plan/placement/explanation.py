"""The part of a placement that explains: why a job waits, and when it will begin."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rota.plan.need import Need
from rota.plan.placement.leases import Held
from rota.plan.placement.queue import RankKey
from rota.plan.reasons import Waits

if TYPE_CHECKING:
    from rota.plan.packing.job_classes import JobClass
    from rota.plan.planner.planner import Planner


class Planned(NamedTuple):
    """What the planner means to do with a job."""

    start: float | None
    end: float | None
    resources: str


class Outlook(NamedTuple):
    """A plan to ask questions, which decides nothing."""

    planner: Planner
    behind: int  #: waiting jobs that are not in it: they ask for the same as others that are


class Waiting(NamedTuple):
    """Waiting jobs of one priority and need, in no order; the plan may have a place for some of them."""

    priority: int
    need: Need
    jobs: list[int]
    gone: frozenset[int]  #: of these, those that wait no more
    width: int  #: resources that each takes of a plan; 0: they are packed


class Explanation(Protocol):
    """Why, and when."""

    def why(self, need: Need, rank: RankKey, job: int) -> list[Waits]:
        """All that keeps this waiting job from being chosen, the strongest first."""

    def never_fit(self) -> Iterator[tuple[JobClass, str]]:
        """Job classes that fit on nothing that there is, not even when it is free; and what they lack."""

    def planned(self, job: int) -> Planned | None:
        """What is planned for a job; None: it is in no plan."""

    def waiting(self) -> list[Waiting]:
        """All that wait for room, to be looked at later. Costs no more than to copy their ids."""

    def next_starts(self, hosts: Collection[str]) -> dict[str, float]:
        """Of these hosts those on which a waiting job is planned: when the first will begin (wall time)."""

    @property
    def planner(self) -> Planner | None:
        """The plan, to look at; None while nobody needs one."""

    def outlook(self, wall: float) -> Outlook:
        """A plan of its own to ask: a snapshot of this one or, if there is none, the one that there would be."""

    def broken(self, leases: list[Held]) -> list[str]:
        """A sentence for everything that does not agree with itself, or with these leases, which are all that are
        out; empty when all is well."""
