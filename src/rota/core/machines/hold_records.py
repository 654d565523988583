"""Records of the machines that jobs keep after their run."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

from rota.core.world import World
from rota.plan.ask import Ask
from rota.plan.need import Need
from rota.plan.placement.given import Given
from rota.plan.placement.leases import Held


class KeptMachines(Struct, frozen=True, array_like=True, gc=False):
    """The machines and resources that one ended job keeps."""

    job: int
    attempt: int
    host: str  #: the first
    hosts: tuple[str, ...]
    user: str
    project: str
    queue: str
    submitted_at: float
    since: float  #: wall time: the end of its run
    until: float
    need: Need  #: without limits, which it has given back
    given: Given
    ask: Ask  #: for the plan, likewise


class Holds:
    """State of the feature `holds`."""

    __slots__ = ("kept",)

    def __init__(self) -> None:
        self.kept: dict[int, KeptMachines] = {}  #: by job


def kept_machines(world: World) -> Collection[KeptMachines]:
    """The holds of all jobs."""
    found = world.find(Holds)
    return found.kept.values() if found is not None else ()


def hold_at(world: World, host: str) -> KeptMachines | None:
    """The hold on this machine, if there is one."""
    return next((each for each in kept_machines(world) if host in each.hosts), None)


def rooms_kept(world: World) -> list[Held]:
    """The holds as the plan sees them: leases with a known end."""
    return [
        Held(each.job, each.host, each.since, each.ask, each.submitted_at, each.given.resources, True, each.until)
        for each in kept_machines(world)
    ]
