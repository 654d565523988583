"""Reservations that would not get all of what they were granted, were they to begin as things are now."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from rota.plan.entry import WAITING
from rota.plan.hostlist import fold

if TYPE_CHECKING:
    from rota.plan.planner import Planner

#: Of many reasons why hosts are not to be used only so many are named.
_NAMED: Final = 3


class Endangered(NamedTuple):
    """A granted reservation, and what of it is not there."""

    job: int
    message: str


def endangered(planner: Planner) -> Iterator[Endangered]:
    site = planner.site
    for id, entry in planner.reserved.items():
        missing = entry.resources & ~site.usable
        if entry.state != WAITING or not missing:
            continue
        by_cause: dict[str, list[str]] = {}
        for host in site.hosts_of(missing):
            by_cause.setdefault(site.away.get(host) or "not to be used", []).append(host)
        causes = [
            f"{fold(hosts)} {'is' if len(hosts) == 1 else 'are'} {cause}" for cause, hosts in by_cause.items()
        ]
        more = f" and {len(causes) - _NAMED} more" if len(causes) > _NAMED else ""
        yield Endangered(id, f"{', '.join(causes[:_NAMED])}{more}")
