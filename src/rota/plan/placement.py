"""The interface between the engine and whoever decides which job runs where.

The engine tells a `Placement` what waits, what room there is and what ended; it answers with seats
to open and jobs to lease. `plan.packing` is the first implementation; the full planner will be the
other. A placement knows sizes, ranks and times, never commands, users or processes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from msgspec import Struct

from rota.plan.limits import Limits
from rota.plan.need import Need
from rota.plan.size import Size


class Capacity(Struct, frozen=True, gc=False):
    """What a host has to give."""

    cpus: int  #: hundredths of a core
    mem: int
    disk: int
    gpus: int = 0

    @property
    def zero_cpu_jobs(self) -> int:
        """How many jobs that ask for no processor may run at once."""
        return max(4, 4 * self.cpus // 100)


class Opened(NamedTuple):
    """A seat: this much of this host, until it is closed."""

    seat: int
    host: str
    size: Size


class Chosen(NamedTuple):
    """A job to be leased to the runner of this host."""

    job: int
    host: str


class Waits(NamedTuple):
    """Why a job waits: code, sentence, and the limit concerned, if one is."""

    code: str
    message: str
    limit: str = ""
    ahead: int | None = None  #: a job that waits as well and goes first
    hint: str = ""  #: a command that would change it


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

    needs: Callable[[int], Need] | None  #: what a waiting job needs now; asked before it is chosen

    def sizes_changed(self) -> None:
        """What jobs need may have changed since they were offered."""

    def limit_changed(self, name: str) -> None:
        """A limit in `limits` was declared anew, or its hours began or ended."""

    def wanting(self) -> dict[str, int]:
        """Limit → how many of the waiting jobs use it."""

    def demand(self) -> dict[Need, int]:
        """How many of the waiting jobs of each need could begin at once, were there room for all."""

    def place(self, now: float) -> tuple[list[Opened], list[Chosen]]:
        """What should begin now: seats to open, and jobs to lease, in order of rank."""

    def seat(self, host: str, size: Size, now: float) -> Opened | None:
        """A seat for a lease that is out already and has none, if there is room now."""

    def started(self, seat: int, now: float) -> None:
        """A job began to run in this seat."""

    def released(self, host: str, need: Need, *, ended_at: float | None) -> None:
        """A lease is over: its job ended then, or (None) it was never executed."""

    def adopt(self, seat: int, host: str, size: Size) -> None:
        """After a restart: this seat is open."""

    def adopt_lease(self, host: str, need: Need) -> None:
        """After a restart: a lease with this need is out."""

    def close(self, seat: int) -> None:
        """The seat is gone and its room is free. Unknown seats are ignored."""

    def why(self, need: Need, *, priority: int, job: int) -> list[Waits]:
        """All that keeps this waiting job from being chosen, the strongest first."""
