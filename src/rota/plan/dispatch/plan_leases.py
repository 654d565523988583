"""Leases as a plan sees them: those that it gave, and those from before it, which keep what they have.

A lease that no plan gave any resources (it was packed, or sent ahead of the end of another) gets some of its
host, so that nobody else is planned where it runs.
"""

from __future__ import annotations

import sys

from rota.plan.placement import Held, Terms
from rota.plan.planner.plan import Plan
from rota.plan.planner.planner import Planner
from rota.plan.planner.timesharing import WHOLE
from rota.plan.site.bitset import parse_spans
from rota.plan.site.resources import Site
from rota.plan.timeline.shapes import Shape


class PlanLeases:
    """The leases that are out while there is a plan."""

    def __init__(self, planner: Planner, terms: Terms) -> None:
        self.jobs: set[int] = set()
        self._planner = planner
        self._terms = terms
        self._roomless: dict[int, Held] = {}  #: of these, those for whose resources there was no room yet

    def adopt_all(self, wall: float) -> None:
        """Those that are out take their place in the plan."""
        # Those that were given nothing take what those leave that were.
        for held in sorted(self._terms.held(), key=lambda each: (not each.resources, each.since)):
            if held.away is not None:
                self._adopt_suspended(held, wall)
                continue
            mask = still_there(self._planner.plan.site, held.resources)
            if not mask:
                mask, enough = room_for(held, self._planner.plan, self._terms)
                if not enough:
                    self._roomless[held.job] = held
            self.jobs.add(held.job)
            ask = self._terms.ask(held.job)
            self._planner.adopt(held.job, ask, start=held.since, resources=mask, now=wall, end=held.end)

    def _adopt_suspended(self, held: Held, wall: float) -> None:
        """It comes back to what it was given or, if that was nothing, to as many cores of its host."""
        planner, away = self._planner, held.away
        assert away is not None
        ids = ids_of(held.resources)
        if not ids:
            there = planner.plan.site.hosts.get(held.host, 0)
            for alternative in self._terms.ask(held.job).alternatives:
                shape = Shape(alternative, planner.plan.site, within=planner.plan.site.everything)
                if mask := shape.choose(there):
                    ids = planner.plan.site.ids(mask)
                    break
        self.jobs.add(held.job)
        planner.adopt_suspended(
            held.job, self._terms.ask(held.job),
            ids=ids, left_s=away.left_s, hard=away.hard, since=away.since, now=wall,
        )  # fmt: skip
        if away.resuming:
            submitted = self._terms.submitted(held.job)
            planner.resume(held.job, wall, left_s=away.left_s, submitted=submitted, serial=held.job)

    def ended(self, job: int) -> None:
        self.jobs.discard(job)
        self._roomless.pop(job, None)

    def find_room(self, wall: float) -> None:
        """Leases that were sent ahead begin as soon as somebody ends, before all that wait."""
        planner = self._planner
        for job, held in list(self._roomless.items()):
            mask, enough = room_for(held, planner.plan, self._terms)
            if mask != planner.plan.entries[job].resources:
                planner.ended(job, wall)
                planner.adopt(job, self._terms.ask(job), start=wall, resources=mask, now=wall)
            if enough:
                del self._roomless[job]


def room_for(held: Held, plan: Plan, terms: Terms) -> tuple[int, bool]:
    """Resources on its host that nobody else runs on, for a lease that no plan gave any; and are they enough?

    What is left is taken in any case: it may well run there, and nobody else should.
    """
    ask = terms.ask(held.job)
    there = free = plan.site.hosts.get(held.host, 0)
    parts: dict[int, int] = {}  #: of cores that are shared, how much is taken
    for entry in plan.running.values():
        if entry.id == held.job:
            continue
        free &= ~entry.resources
        if entry.ask.share and entry.resources & there:
            parts[entry.resources] = parts.get(entry.resources, 0) + entry.ask.share
    for core, taken in parts.items() if ask.share else ():
        if taken + ask.share <= WHOLE:
            return core, True
    for alternative in ask.alternatives:
        # On what may not be used now as well: it runs there.
        mask = Shape(alternative, plan.site, within=plan.site.everything).choose(free) if free else 0
        if mask:
            return mask, True
    for core in parts:
        free |= core  # a part of a shared core may be its as well
    return (0 if ask.share else free), False


def ids_of(resources: str) -> list[int]:
    """What a lease or a reservation was given, which may be nothing."""
    return parse_spans(resources, most=sys.maxsize) if resources else []


def still_there(site: Site, resources: str) -> int:
    """Of what was given, that which the site still has."""
    return site.mask(id for id in ids_of(resources) if site.knows(id))
