"""Connections that have not logged in yet: how many there may be, and which is closed when there are more.

A newcomer is never refused. Instead an older connection is evicted, from the network with the most of them. So a
flood evicts itself, and a client that logs in at once is not kept waiting by others that never do. Pure.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable


class PendingConnection:
    """One connection that has not logged in."""

    __slots__ = ("close", "network", "silent", "since")

    def __init__(self, network: str, close: Callable[[], None], *, since: float) -> None:
        self.network = network
        self.close = close
        self.since = since
        self.silent = True  #: has sent nothing at all


class PendingConnections:
    """All of them, by network, the oldest first."""

    def __init__(self, *, most: int, most_each: int) -> None:
        self._most = most
        self._most_each = most_each
        self._by_network: dict[str, dict[PendingConnection, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, pending: PendingConnection) -> None:
        """One more; another one is evicted if there are too many."""
        crowd = self._by_network.setdefault(pending.network, {})
        crowd[pending] = None
        self._count += 1
        if len(crowd) > self._most_each or self._count > self._most:
            largest = crowd if len(crowd) > self._most_each else self._largest()
            self.evict(_weakest(largest, newest=pending))

    def discard(self, pending: PendingConnection) -> None:
        """It was closed, or has logged in. May be called twice."""
        crowd = self._by_network.get(pending.network, {})
        if pending in crowd:
            del crowd[pending]
            self._count -= 1
            if not crowd:
                del self._by_network[pending.network]

    def evict(self, pending: PendingConnection) -> None:
        self.discard(pending)
        pending.close()

    def oldest_of_largest(self) -> PendingConnection | None:
        """The oldest connection of the network with the most of them."""
        return next(iter(self._largest()), None) if self._by_network else None

    def _largest(self) -> dict[PendingConnection, None]:
        return max(self._by_network.values(), key=len)


def _weakest(crowd: dict[PendingConnection, None], *, newest: PendingConnection) -> PendingConnection:
    """The one to evict: the oldest that has sent nothing, or else the oldest."""
    others = [each for each in crowd if each is not newest]
    return next((each for each in others if each.silent), next(iter(others), newest))


def network_of(address: str) -> str:
    """Addresses that are counted together: one of IPv4; of IPv6 a /64, since one host may choose freely in it."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        mapped = found.ipv4_mapped
        return str(mapped) if mapped is not None else str(ipaddress.IPv6Network((int(found) >> 64 << 64, 64)))
    return str(found)
