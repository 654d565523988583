"""Hosts that are closed: outside their hours or past `available_until` (`core.machines.host_hours`)."""

from __future__ import annotations

from collections.abc import Set

from rota.core.world import World


class ClosedHosts:
    """State of the feature `host hours`."""

    __slots__ = ("hosts", "hours_now")

    def __init__(self) -> None:
        self.hosts: set[str] = set()
        #: hours expression → (open now?, valid from, valid until)
        self.hours_now: dict[str, tuple[bool, float, float]] = {}


def closed_hosts(world: World) -> Set[str]:
    """The hosts that are closed now."""
    found = world.find(ClosedHosts)
    return found.hosts if found is not None else frozenset()
