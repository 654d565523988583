"""Caps on the priority that jobs of outsiders have on the machines of a group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rota.plan.site.resources import Site


class Cap(NamedTuple):
    """A limit on the priority that jobs of outsiders have on the machines of a group."""

    hosts: frozenset[str]
    priority: int
    users: frozenset[str]  #: the members of the group, whose jobs are not limited
    group: str = ""

    def limits(self, user: str, priority: int) -> bool:
        """Have jobs of this user and priority a lower one on its machines?"""
        return self.priority < priority and user not in self.users


def priority_on(caps: Iterable[Cap], host: str, user: str, priority: int) -> int:
    """The priority that a job has on one machine."""
    return min(
        (cap.priority for cap in caps if host in cap.hosts and cap.limits(user, priority)), default=priority
    )


def priorities_of(caps: Iterable[Cap], site: Site, user: str, priority: int) -> list[tuple[int, int]]:
    """The priorities that a job has, highest first, and the resources on which it has at least that; -1, which
    stands for all, with the last."""
    own = sorted((cap for cap in caps if cap.limits(user, priority)), key=_by_priority)
    if not own:
        return [(priority, -1)]
    found: list[tuple[int, int]] = []
    left = site.everything  #: on which it has more than the priorities so far
    for at, cap in enumerate(own):
        if not at or cap.priority > own[at - 1].priority:
            found.append((cap.priority, left if found else -1))
        for host in cap.hosts:
            left &= ~site.hosts.get(host, 0)
    return [(priority, left), *reversed(found)]


def _by_priority(cap: Cap) -> int:
    return cap.priority
