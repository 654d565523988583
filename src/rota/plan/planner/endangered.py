"""Reservations in danger: some of the resources that they were granted may be unusable when they begin."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import NamedTuple

from rota.plan.reasons import Waits
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import WAITING, PlanEntry
from rota.plan.schedule.unusable_hosts import NAMED, away_hosts, away_text, listed
from rota.plan.site.resources import Site


class Endangered(NamedTuple):
    """A granted reservation, and in words which of its resources may be missing."""

    job: int
    message: str


def endangered(plan: Plan) -> Iterator[Endangered]:
    """All reservations that are in danger."""
    for id, entry in plan.reserved.items():
        if entry.state == WAITING and (message := danger(plan, entry)):
            yield Endangered(id, message)


def danger(plan: Plan, entry: PlanEntry) -> str:
    """In words, which resources of a granted reservation may be missing when it begins; empty: none."""
    if plan.counted or not entry.fixed or entry.start is None:
        return ""
    site = plan.site
    parts = []
    if away := entry.resources & ~site.usable & ~site.asleep:
        hosts = site.hosts_of(away)
        parts.append(_few(away_text(site, hosts[:NAMED]), hosts))
    parts += closed_then(plan, entry.resources, entry.start, entry.end or inf)
    return "; ".join(parts)


def closed_then(plan: Plan, resources: int, start: float, end: float) -> list[str]:
    """In words, which hosts of these resources are closed at some time between two moments, and why."""
    site = plan.site
    over, outside = 0, 0
    for closes, opens, mask in plan.closures:
        if closes < end and opens > start and mask & resources:
            if opens == inf and site.until.get(closes, 0) & mask:
                over |= mask & resources
            else:
                outside |= mask & resources
    parts = []
    if over:
        parts.append(f"{listed(site.hosts_of(over))} may not be used any more then (--available-until)")
    if outside:
        parts.append(f"it is outside the hours of {listed(site.hosts_of(outside))}")
    return parts


def unanswered(site: Site) -> Waits | None:
    """Why a reservation cannot be granted or rejected yet: no host may be used now. None: it can."""
    if site.usable or not site.count:
        return None
    waits = away_hosts(site, sorted(site.hosts))
    named = away_text(site, sorted(site.hosts)[:NAMED])
    said = f"nothing can be reserved now, and it is decided when something can: {_few(named, sorted(site.hosts))}"
    return Waits("no_resources", said, hint=waits.hint)


def _few(named: str, hosts: list[str]) -> str:
    return f"{named} and {len(hosts) - NAMED} more" if len(hosts) > NAMED else named
