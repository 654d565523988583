"""The interface between the engine and whoever decides which job runs where.

The engine tells a `Placement` what waits, what room there is and what ended; it answers with seats
to open and jobs to lease. `plan.packing.packing` decides about now and is fast; `plan.dispatch.planning` uses it
until somebody asks for more than that, and the planner from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

from msgspec import Struct

from rota.plan.need import Need
from rota.plan.policy.limits import Limits
from rota.plan.reasons import Moved, Waits
from rota.plan.size import Capacity, Size

if TYPE_CHECKING:
    from rota.plan.ask import Ask
    from rota.plan.packing.job_classes import JobClass
    from rota.plan.planner.planner import Planner
    from rota.plan.policy.decay import Usage
    from rota.plan.policy.policy import Policy
    from rota.plan.policy.quotas import Quotas, Spent
    from rota.plan.site.resources import Site


class Opened(NamedTuple):
    """A seat: this much of this host, until it is closed."""

    seat: int
    host: str
    size: Size


class Pause(Struct, frozen=True, array_like=True, gc=False):
    """Where an attempt is on its way from running to suspended and back, and how long it has been suspended."""

    phase: str = ""  #: freezing, frozen, queued (for its cores), thawing; empty: it runs
    keeps: bool = False  #: it gives up nothing meanwhile
    since: float | None = None  #: wall time; None: it is not suspended now
    before_s: float = 0.0  #: it was suspended for so long before that


class Promised(Struct, frozen=True, array_like=True, gc=False):
    """What a reservation was granted and did not get: it began with fewer resources."""

    cores: int
    nodes: tuple[str, ...]
    missing: str = ""  #: in words, what was missing and why


class Given(Struct, frozen=True, array_like=True, gc=False):
    """What the planner gave to one attempt."""

    size: Size  #: what it takes of the host that it begins on
    resources: str = ""  #: ids, like ``1-8,17``
    cpu_list: str = ""  #: of that host's cores, counted from 0
    nodes: tuple[tuple[str, int], ...] = ()  #: hosts, and how many cores of each
    walltime_s: float | None = None
    cpu_lists: tuple[str, ...] = ()  #: of the cores of each of these hosts, likewise
    runners: tuple[str, ...] = ()  #: those of these hosts to which it was leased, where there are several
    elsewhere: bool = False  #: it only holds these: its command, if it has one, runs on another host
    pause: Pause | None = None  #: has it ever been suspended?
    more_s: float = 0.0  #: of walltime: asked for, and not granted yet
    changed: bool = False  #: was its walltime changed while it ran?
    promised: Promised | None = None  #: more than it has, where it is a reservation that began with fewer

    @property
    def fewer(self) -> str:
        """In words, that it has less than it was promised; empty: it has all of it."""
        if self.promised is None:
            return ""
        cores, nodes = sum(number for _host, number in self.nodes), len(self.promised.nodes)
        of_nodes = f" on {len(self.nodes)} of {nodes} nodes" if nodes > 1 else ""
        return f"began with {cores} of {self.promised.cores} cores{of_nodes}: {self.promised.missing}"


class Chosen(NamedTuple):
    """A job to be leased to the runner of this host."""

    job: int
    host: str
    given: Given | None = None


class Preempted(NamedTuple):
    """A besteffort job that must end, because another job begins on its resources."""

    job: int
    by: int
    code: str = "preempted"  #: or "container": the one that it ran in is gone
    at: float | None = None  #: when that job, a reservation, will begin (wall time); None: now


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
    resources: str  #: as given by the planner; empty: it was not asked
    on_terms: bool = False  #: does it need a plan?
    end: float | None = None  #: until when, where that is not what it asked for
    away: Away | None = None  #: it is suspended, and has given up its cores


class Reserved(Struct, frozen=True, array_like=True, gc=False):
    """What a granted reservation will have."""

    resources: str
    alternative: int = 0  #: which of those that were asked for


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


class News(NamedTuple):
    """What a planner decided besides who begins."""

    preempted: list[Preempted]
    ended: list[tuple[int, str, str]]  #: waiting jobs that will never begin: code and message
    moved: list[Moved]
    reserved: dict[int, Reserved | None]  #: reservations that were granted, or (None) given up
    spent: dict[Spent, int]  #: all that ended jobs used of periods that are not over, if some of it is new
    resumed: list[int]  #: suspended jobs that may go on: their cores are free


class Terms(Protocol):
    """What a planner must ask the engine about jobs and the site."""

    def ask(self, job: int) -> Ask:
        """What this waiting or leased job asks of the planner."""

    def submitted(self, job: int) -> float:
        """When it was submitted."""

    def group(self, job: int) -> int:
        """Waiting jobs of one group and need ask for the same."""

    def held(self) -> list[Held]:
        """All leases that are out."""

    def away(self, job: int) -> Away | None:
        """How long this lease will run when it goes on, if it is suspended and has given up its cores."""

    def reserved(self, job: int) -> Reserved | None:
        """What this reservation was granted before; None: it was not."""

    def runs_at(self, job: int) -> str | None:
        """The host that its command runs on though its resources are elsewhere; empty: it has none to run. None:
        it runs on its resources. Raises `NotFound` if nobody said which host that is."""

    def patience_s(self) -> float:
        """How long a reservation waits for resources that are missing at its start."""

    def wanted(self) -> bool:
        """Has the site rules that only the planner knows how to keep?"""

    def site(self) -> Site:
        """The resources as they are now."""

    def policy(self) -> Policy:
        """In which order jobs are planned."""

    def usage(self, wall: float) -> Usage:
        """What users and projects have used, but for what runs."""

    def quotas(self, site: Site) -> Quotas | None:
        """Who may hold how much."""


class Placement(Protocol):
    """What the engine asks of a planner."""

    limits: Limits

    def host_known(self, host: str, capacity: Capacity, only: Need | None = None) -> None:
        """This host exists (again), with this capacity; `only`: for jobs of this need alone."""

    def host_gone(self, host: str) -> None:
        """This host, on which nothing runs, does not exist any more."""

    def host_usable(self, host: str, usable: bool) -> None:
        """May new work be placed there now?"""

    def refusal(self, size: Size) -> str | None:
        """Why no host could ever run this, or None. With no host known nothing is refused."""

    def offer(self, need: Need, *, priority: int, jobs: list[int]) -> None:
        """These jobs (ids ascending) wait for room."""

    def withdraw(self, need: Need, *, priority: int, job: int) -> None:
        """This job no longer waits."""

    ahead: bool  #: may jobs be leased before there is a seat for them, to take over that of another?

    needs: Callable[[int], Need] | None  #: what a waiting job needs now; asked before it is chosen

    def sizes_changed(self) -> None:
        """What jobs need may have changed since they were offered."""

    def limit_changed(self, name: str) -> None:
        """A limit in `limits` was declared anew, or its hours began or ended."""

    def wanting(self) -> dict[str, int]:
        """Limit → how many of the waiting jobs use it."""

    def demand(self) -> dict[Need, int]:
        """How many of the waiting jobs of each need could begin at once, were there room for all."""

    def place(self, now: float, wall: float) -> tuple[list[Opened], list[Chosen]]:
        """What should begin now: seats to open, and jobs to lease, in order of rank."""

    def seat(self, host: str, size: Size, now: float) -> Opened | None:
        """A seat for a lease that is out already and has none, if there is room now."""

    def started(self, seat: int, now: float) -> None:
        """A job began to run in this seat."""

    def released(self, host: str, need: Need, *, job: int, ended_at: float | None) -> None:
        """A lease is over: its job ended then, or (None) it was never executed."""

    def clock_moved(self, wall: float) -> None:
        """It is another time now than before and a little more: whatever was planned is planned anew."""

    def suspended(self, job: int) -> None:
        """A job with a lease gives up its cores; or it was in line for them, and is not any more."""

    def resumes(self, job: int) -> None:
        """A suspended job is in line for its cores; `News.resumed` tells when it has them."""

    def move_end(self, job: int, end: float, wall: float, *, force: bool = False) -> float:
        """Let a job with a lease end then, or as late as no promise to others is broken; until when it may."""

    def adopt(self, seat: int, host: str, size: Size) -> None:
        """After a restart: this seat is open."""

    def adopt_lease(self, host: str, need: Need) -> None:
        """After a restart: a lease with this need is out."""

    def close(self, seat: int) -> None:
        """The seat is gone and its room is free. Unknown seats are ignored."""

    terms: Terms | None  #: whom to ask about jobs and the site

    def site_changed(self) -> None:
        """Resources, queues or quotas were changed."""

    @property
    def has_news(self) -> bool:
        """Has something been decided besides who begins?"""

    def take_news(self) -> News:
        """What was decided since the last time."""

    def rejection(self, ask: Ask, wall: float) -> str | None:
        """Why a reservation that is asked for now would not be granted, or None."""

    def next_event(self) -> float | None:
        """When something should be decided though nothing happens (wall time)."""

    def next_starts(self, hosts: Collection[str]) -> dict[str, float]:
        """Of these hosts those on which a waiting job is planned: when the first will begin (wall time)."""

    def never_fit(self) -> Iterator[tuple[JobClass, str]]:
        """Job classes that fit on nothing that there is, not even when it is free; and what they lack."""

    def planned(self, job: int) -> Planned | None:
        """What is planned for a job; None: it is in no plan."""

    def waiting(self) -> list[Waiting]:
        """All that wait for room, to be looked at later. Costs no more than to copy their ids."""

    def capacities(self) -> list[Capacity]:
        """Of the hosts that new work may be placed on."""

    def broken(self) -> list[str]:
        """A sentence for everything that does not agree with itself; empty when all is well."""

    @property
    def planner(self) -> Planner | None:
        """The plan, to look at; None while nobody needs one."""

    def outlook(self, wall: float) -> Outlook:
        """A plan of its own to ask: a copy of this one or, where there is none, the one that there would be."""

    def why(self, need: Need, *, priority: int, job: int) -> list[Waits]:
        """All that keeps this waiting job from being chosen, the strongest first."""
