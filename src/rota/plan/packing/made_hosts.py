"""Hosts that were made for jobs of one reservation group: machines of other engines. No plan knows of them."""

from __future__ import annotations

from rota.plan.packing.hosts import Host, Hosts, fits
from rota.plan.packing.job_classes import SizeClasses
from rota.plan.placement.queue import Rank


class MadeHosts:
    """Those of a packing, and what waits for them alone."""

    def __init__(self, hosts: Hosts, size_classes: SizeClasses) -> None:
        self._hosts = hosts
        self._size_classes = size_classes

    def __contains__(self, host: str) -> bool:
        return self._hosts.all[host].only is not None

    def idle(self) -> list[Host]:
        """Those that have room for a job of their group."""
        return [
            host
            for group, hosts in self._hosts.made_for.items()
            for host in hosts.values()
            if host.usable and fits(group.size, host.free)
        ]

    def first_for(self, host: Host) -> Rank | None:
        """The rank of the first waiting job that only this host, or its like, may run."""
        assert host.only is not None
        classes = self._size_classes.of(host.only.size, host.pool)
        return min((each.rank() for each in classes if each.need.group == host.only), default=None)
