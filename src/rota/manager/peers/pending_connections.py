"""Connections of which nobody knows yet whose they are: how many there may be, and who leaves when there are more.

A newcomer is never refused: somebody who is there already leaves, from the most crowded address first. So a flood
pushes out itself, and whoever logs in at once is not kept waiting by those who never do. Pure.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable


class PendingConnection:
    """One of them."""

    __slots__ = ("leave", "network", "silent", "since")

    def __init__(self, network: str, leave: Callable[[], None], *, since: float) -> None:
        self.network = network
        self.leave = leave  #: ends the connection
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

    def came(self, stranger: PendingConnection) -> None:
        """One more; another one leaves if they are too many."""
        crowd = self._by_network.setdefault(stranger.network, {})
        crowd[stranger] = None
        self._count += 1
        if len(crowd) > self._most_each or self._count > self._most:
            largest = crowd if len(crowd) > self._most_each else self._largest()
            self.send_away(_weakest(largest, newest=stranger))

    def gone(self, stranger: PendingConnection) -> None:
        """It has left, or shown who it is. May be said twice."""
        crowd = self._by_network.get(stranger.network, {})
        if stranger in crowd:
            del crowd[stranger]
            self._count -= 1
            if not crowd:
                del self._by_network[stranger.network]

    def send_away(self, stranger: PendingConnection) -> None:
        self.gone(stranger)
        stranger.leave()

    def oldest_of_largest(self) -> PendingConnection | None:
        """Who has been there for longest, among those from the network with most."""
        return next(iter(self._largest()), None) if self._by_network else None

    def _largest(self) -> dict[PendingConnection, None]:
        return max(self._by_network.values(), key=len)


def _weakest(crowd: dict[PendingConnection, None], *, newest: PendingConnection) -> PendingConnection:
    """Who leaves: the oldest that has said nothing, or else the oldest."""
    others = [each for each in crowd if each is not newest]
    return next((each for each in others if each.silent), next(iter(others), newest))


def network_of(address: str) -> str:
    """Those who are counted together: an IPv4 address; of IPv6 a /64, which is what one host may choose from."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        mapped = found.ipv4_mapped
        return str(mapped) if mapped is not None else str(ipaddress.IPv6Network((int(found) >> 64 << 64, 64)))
    return str(found)
