"""The part of a placement that decides what begins now, and what else must happen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from msgspec import Struct

from rota.plan.placement.given import Given
from rota.plan.placement.leases import Held, Reserved
from rota.plan.reasons import Moved
from rota.plan.size import Size

if TYPE_CHECKING:
    from rota.plan.ask import Ask
    from rota.plan.placement.facts import Lacks, Rules
    from rota.plan.policy.quotas import Spent


class Opened(NamedTuple):
    """A seat: this much of this host, until it is closed."""

    seat: int
    host: str
    size: Size


class Placed(Struct, frozen=True, gc=False):
    """A job that begins now, and where."""

    job: int
    host: str  #: that it begins on: its lease goes to the runner there
    seat: Opened | None = None  #: opened for it; None: it takes over that of another, or executes nothing
    given: Given | None = None  #: None: a seat of its size, and nothing else

    @property
    def hosts(self) -> tuple[str, ...]:
        """All hosts of which it holds something, the one that it begins on first."""
        nodes = self.given.nodes if self.given is not None else ()
        return (self.host, *(host for host, _cores in nodes if host != self.host))


#: Jobs that begin together: all of them, or none.
Decision = tuple[Placed, ...]


class Preempted(NamedTuple):
    """A besteffort job that must end, because another job begins on its resources."""

    job: int
    by: int
    code: str = "preempted"  #: or "container": the one that it ran in is gone
    at: float | None = None  #: when that job, a reservation, will begin (wall time); None: now


class News(NamedTuple):
    """What a planner decided besides who begins."""

    preempted: list[Preempted]
    ended: list[tuple[int, str, str]]  #: waiting jobs that will never begin: code and message
    moved: list[Moved]
    reserved: dict[int, Reserved | None]  #: reservations that were granted, or (None) given up
    spent: dict[Spent, int]  #: all that ended jobs used of periods that are not over, if some of it is new
    resumed: list[int]  #: suspended jobs that may go on: their cores are free


class Decisions(Protocol):
    """What begins now."""

    ahead: bool  #: may jobs be leased before there is a seat for them, to take over that of another?

    def site_changed(self) -> None:
        """Resources, queues or quotas were changed."""

    def lacks(self, wall: float, *, anew: bool = False) -> Lacks:
        """What must be told before the next decision. `anew`: before `clock_moved`, `rejection` or `outlook`."""

    def tell_verdict(self, plan: bool) -> None:
        """Has the site rules that only a plan can keep?"""

    def tell_rules(self, rules: Rules) -> None:
        """The site as it is now."""

    def tell_leases(self, leases: list[Held]) -> None:
        """All leases that are out."""

    def tell_reservations(self, granted: Mapping[int, Reserved]) -> None:
        """All reservations that were granted so far."""

    def clock_moved(self, wall: float) -> None:
        """It is another time now than before and a little more: whatever was planned is planned anew."""

    def place(self, now: float, wall: float) -> list[Decision]:
        """What begins now, in order of rank."""

    @property
    def resized(self) -> dict[int, Size]:
        """Waiting jobs that were found to have other sizes, by what their group has learned."""

    def take_resized(self) -> dict[int, Size]:
        """The same, since the last call."""

    def rejection(self, ask: Ask, wall: float) -> str | None:
        """Why a reservation that is asked for now would not be granted, or None."""

    @property
    def has_news(self) -> bool:
        """Has something been decided besides who begins?"""

    def take_news(self) -> News:
        """What was decided since the last time."""

    def next_event(self) -> float | None:
        """When something should be decided though nothing happens (wall time)."""
