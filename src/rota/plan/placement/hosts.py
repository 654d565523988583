"""The part of a placement that knows the room there is, and what is in it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Protocol

from msgspec import Struct

from rota.plan.need import Need
from rota.plan.placement.decisions import Opened
from rota.plan.placement.leases import Away
from rota.plan.size import Capacity, Size


class Condition(Struct, frozen=True, gc=False):
    """The condition of a machine, apart from what runs there."""

    alive: bool = True  #: it answers, is awake and within its hours
    automated: bool = True  #: False: people use it by hand
    draining: bool = False  #: what runs there may end; nothing new begins

    @property
    def schedulable(self) -> bool:
        """May new work be placed there?"""
        return self.alive and self.automated and not self.draining

    @property
    def forceable(self) -> bool:
        """May a job be placed there that forces this host?"""
        return self.alive and not self.draining


#: Nothing was heard of the machine yet, or nothing more.
AWAY: Final = Condition(alive=False)


class Hosts(Protocol):
    """Hosts with their conditions, seats and leases."""

    def host_known(self, host: str, capacity: Capacity, only: Need | None = None) -> None:
        """This host exists (again), with this capacity; `only`: for jobs of this reservation group alone."""

    def host_gone(self, host: str) -> None:
        """This host, on which nothing runs, does not exist any more."""

    def host_condition(self, host: str, condition: Condition) -> None:
        """The condition of this host has changed. Until the first call it is `AWAY`."""

    def host_provisioned(self, hosts: Collection[str], on: bool) -> None:
        """These hosts are made ready for a job that has them, or are not any more: no other job begins there."""

    def refusal(self, size: Size, pool: str = "") -> str | None:
        """Why no host of the planned pools, or of the named one, could ever run this, or None. With no host known
        nothing is refused."""

    def usable_in(self, pools: Collection[str]) -> bool:
        """May new work be placed on a host of one of these pools?"""

    def capacities(self) -> list[Capacity]:
        """Of the hosts that new work may be placed on."""

    def seat(self, host: str, size: Size, now: float, *, kept: bool = False) -> Opened | None:
        """A seat for a lease that is out already and has none, if there is room now. `kept`: it replaces one that
        the lease had, whatever the condition of the host is now."""

    def started(self, seat: int, now: float) -> None:
        """A job began to run in this seat."""

    def released(self, host: str, need: Need, *, job: int, ended_at: float | None) -> None:
        """A lease is over: its job ended then, or (None) it was never executed."""

    def kept(self, host: str, need: Need, *, ended_at: float) -> None:
        """A job ended then, and keeps what it has but for its limits, until `released` with a need without
        limits."""

    def adopt(self, seat: int, host: str, size: Size) -> None:
        """After a restart: this seat is open."""

    def adopt_lease(self, host: str, need: Need) -> None:
        """After a restart: a lease with this need is out."""

    def close(self, seat: int) -> None:
        """The seat is gone and its room is free. Unknown seats are ignored."""

    def suspended(self, job: int, away: Away) -> None:
        """A job with a lease gives up its cores; or it was in line for them, and is not any more."""

    def resumes(self, job: int, away: Away) -> None:
        """A suspended job is in line for its cores; `News.resumed` tells when it has them."""

    def move_end(self, job: int, end: float, wall: float, *, force: bool = False) -> float:
        """Let a job with a lease end then, or as late as no promise to others is broken; until when it may."""
