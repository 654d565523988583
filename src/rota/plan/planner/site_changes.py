"""The site or its rules change: what runs stays, everything else is planned again in order of rank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from typing import TYPE_CHECKING

from rota.plan.planner import backfill, suspension
from rota.plan.planner.entry import WAITING, Entry
from rota.plan.policy.decay import Usage
from rota.plan.policy.policy import Policy
from rota.plan.policy.quotas import Quotas
from rota.plan.site.resources import Site

if TYPE_CHECKING:
    from rota.plan.planner.planner import Planner


def change_site(planner: Planner, site: Site, now: float) -> None:
    """Resources came, went or changed: what runs stays, everything else is planned again in order of rank."""
    planner.finish()
    planner.now = now
    staying = [*planner.running.values(), *planner.reserved.values()]
    staying.sort(key=lambda entry: _depth(planner, entry))  # containers before what lies in them
    ids = {entry.id: planner.site.ids(entry.resources) for entry in staying} if not planner.counted else {}
    counted: list[Entry] = []
    for entry in planner.entries.values():
        if entry.counted is not None and entry.start is not None and planner.quotas is not None:
            counted.append(entry)
        if entry.state == WAITING and not entry.fixed:
            if entry.start is not None and entry.end is not None and not entry.ask.types.besteffort:
                planner.was.setdefault(entry.id, entry.start)
            entry.start = entry.end = None
            entry.resources = entry.home = 0
    planner.site = site
    _unchoose(planner)
    planner.empty()
    if planner.quotas is not None:
        kept = {entry.id for entry in staying}
        for entry in counted:
            if entry.id in kept and entry.counted is not None:
                planner.quotas.give(entry.counted, entry.id)
        counted = [entry for entry in counted if entry.id not in kept]
    for entry in staying:
        if not planner.counted:
            entry.resources = site.mask(id for id in ids[entry.id] if site.knows(id))
        planner.ready(entry)
        if entry.start is not None and entry.end is not None:
            planner.hold(entry, since=max(entry.start, now))
            if entry.ask.types.container and not planner.counted:
                planner.open_inside(entry)
    suspension.site_changed(planner)
    for pinned in planner.suspended.values():
        planner.ready(pinned.entry)
        suspension.ballast(planner, pinned.entry)
    planner.go_through(_all_again(planner, counted, now), now, "the resources changed")


def _all_again(planner: Planner, counted: list[Entry], now: float) -> Iterator[None]:
    """Plan everybody who waits anew on a new site; so far they are counted in their quotas as they were."""
    waiting = [entry for entry in planner.entries.values() if entry.state == WAITING and not entry.fixed]
    for number, entry in enumerate(counted, 1):
        if planner.quotas is not None and entry.counted is not None:
            planner.quotas.give(entry.counted, entry.id)
        if number % 16 == 0:
            yield
    for number, entry in enumerate(waiting, 1):
        planner.ready(entry)
        if number % 16 == 0:
            yield
    yield from backfill.replan(planner, now)


def _depth(planner: Planner, entry: Entry) -> int:
    """In how many containers it lies."""
    depth = 0
    while entry.home:
        entry, depth = planner.entries[entry.home], depth + 1
    return depth


def _unchoose(planner: Planner) -> None:
    """Those that were about to begin wait again."""
    for entry in planner.starting:
        klass = planner.low if entry.ask.types.besteffort else planner.class_of(entry.ask)
        if entry not in klass.line:
            klass.add(entry)
    planner.starting = []


def change_rules(
    planner: Planner,
    site: Site,
    now: float,
    *,
    policy: Policy,
    quotas: Quotas | None,
    limits: Mapping[str, int],
    usage: Usage | None = None,
) -> None:
    """Queues, quotas, limits or resources changed: what runs stays, all others are planned again.

    `usage`: what has ended comes to, if that may be something else than before.
    """
    planner.finish()
    _unchoose(planner)
    waiting = [entry for klass in (*planner.classes, planner.low) for entry in klass.line]
    for entry in planner.entries.values():
        entry.counted = None  # the old quotas are gone with all that they counted
    if quotas is not None and planner.quotas is not None:
        quotas.remember(planner.quotas.spent)
    planner.policy, planner.quotas, planner.limits = policy, quotas, dict(limits)
    planner.classes, planner.low.line = [], []
    if usage is not None:
        planner.usage = usage
        for entry in planner.running.values():
            entry.charged = -inf
    planner.charge_running(now)
    targets = planner.targets()
    for entry in waiting:
        entry.rank = planner.rank_of(entry, now, targets)
        (planner.low if entry.ask.types.besteffort else planner.class_of(entry.ask)).add(entry)
    change_site(planner, site, now)
