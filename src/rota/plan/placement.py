"""The interface between the engine and whoever decides which job runs where.

The engine tells a `Placement` what waits, what room there is and what ended; it answers with seats
to open and jobs to lease. `plan.packing` is the first implementation; the full planner will be the
other. A placement knows sizes, ranks and times, never commands, users or processes.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from msgspec import Struct

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


class Placement(Protocol):
    """What the engine asks of a planner."""

    def host_known(self, host: str, capacity: Capacity) -> None:
        """This host exists (again), with this capacity."""

    def host_usable(self, host: str, usable: bool) -> None:
        """May new work be placed there now?"""

    def refusal(self, size: Size) -> str | None:
        """Why no host could ever run this, or None. With no host known nothing is refused."""

    def offer(self, size: Size, *, priority: int, jobs: list[int]) -> None:
        """These jobs (ids ascending) wait for room."""

    def withdraw(self, size: Size, *, priority: int, job: int) -> None:
        """This job no longer waits."""

    def place(self, now: float) -> tuple[list[Opened], list[Chosen]]:
        """What should begin now: seats to open, and jobs to lease, in order of rank."""

    def seat(self, host: str, size: Size, now: float) -> Opened | None:
        """A seat for a lease that is out already and has none, if there is room now."""

    def started(self, seat: int, now: float) -> None:
        """A job began to run in this seat."""

    def released(self, host: str, size: Size, *, ended_at: float | None) -> None:
        """A lease of this size is over: its job ended then, or (None) it was never executed."""

    def adopt(self, seat: int, host: str, size: Size, *, leases: int) -> None:
        """After a restart: this seat is open and this many leases of its size are out."""

    def close(self, seat: int) -> None:
        """The seat is gone and its room is free. Unknown seats are ignored."""

    def why(self, size: Size, *, priority: int, job: int) -> tuple[str, str]:
        """Code and sentence: why this waiting job has not been chosen."""
