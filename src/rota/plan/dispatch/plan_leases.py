"""The leases in a plan: its own, and older ones, which keep their resources.

A lease without allocated resources (its job was packed, or sent ahead of the end of another) gets some of its
host, so that no other job is planned where it runs.
"""

from __future__ import annotations

import sys

from rota.plan.placement.leases import Held
from rota.plan.planner.planner import Planner
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.timesharing import WHOLE
from rota.plan.site.bitset import parse_spans
from rota.plan.site.resources import Site
from rota.plan.timeline.shapes import Shape


class PlanLeases:
    """The current leases, while there is a plan."""

    def __init__(self, planner: Planner) -> None:
        self.jobs: set[int] = set()
        self._planner = planner
        self._roomless: dict[int, Held] = {}  #: leases for which too few resources were free

    def adopt_all(self, leases: list[Held], wall: float) -> None:
        """Put the current leases into the plan."""
        # Leases without an allocation share what the allocated ones leave free.
        for held in sorted(leases, key=lambda each: (not each.resources, each.since)):
            if held.away is not None:
                self._adopt_suspended(held, wall)
                continue
            mask = still_there(self._planner.plan.site, held.resources)
            if not mask:
                mask, enough = room_for(held, self._planner.plan)
                if not enough:
                    self._roomless[held.job] = held
            self.jobs.add(held.job)
            self._planner.adopt(
                held.job, held.ask, start=held.since, resources=mask, now=wall, end=held.end, gang=held.gang
            )

    def _adopt_suspended(self, held: Held, wall: float) -> None:
        """A suspended job resumes on its allocation or, without one, on as many cores of its host."""
        planner, away = self._planner, held.away
        assert away is not None
        ids = ids_of(held.resources)
        if not ids:
            there = planner.plan.site.hosts.get(held.host, 0)
            for alternative in held.ask.alternatives:
                shape = Shape(alternative, planner.plan.site, within=planner.plan.site.everything)
                if mask := shape.choose(there):
                    ids = planner.plan.site.ids(mask)
                    break
        self.jobs.add(held.job)
        planner.adopt_suspended(
            held.job, held.ask,
            ids=ids, left_s=away.left_s, hard=away.hard, since=away.since, now=wall,
        )  # fmt: skip
        if away.resuming:
            planner.resume(held.job, wall, left_s=away.left_s, submitted=held.submitted, serial=held.job)

    def ended(self, job: int) -> None:
        self.jobs.discard(job)
        self._roomless.pop(job, None)

    def find_room(self, wall: float) -> None:
        """Give leases that were sent ahead the resources that became free, before all waiting jobs."""
        planner = self._planner
        for job, held in list(self._roomless.items()):
            if job not in planner.plan.running:  # suspended: it comes back to cores of its own
                del self._roomless[job]
                continue
            mask, enough = room_for(held, planner.plan)
            if mask != planner.plan.entries[job].resources:
                planner.ended(job, wall)
                planner.adopt(job, held.ask, start=wall, resources=mask, now=wall, gang=held.gang)
            if enough:
                del self._roomless[job]


def room_for(held: Held, plan: Plan) -> tuple[int, bool]:
    """Resources of its host for a lease without an allocation, on which no other job runs; and are they enough?

    It takes what is left in any case: it may run there, and no other job should.
    """
    ask = held.ask
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
        # Also on resources that may not be used now: it runs there already.
        mask = Shape(alternative, plan.site, within=plan.site.everything).choose(free) if free else 0
        if mask:
            return mask, True
    for core in parts:
        free |= core  # it may have a part of a shared core
    return (0 if ask.share else free), False


def ids_of(resources: str) -> list[int]:
    """The ids of allocated or reserved resources; empty for an empty text."""
    return parse_spans(resources, most=sys.maxsize) if resources else []


def still_there(site: Site, resources: str) -> int:
    """The allocated resources that the site still has."""
    return site.mask(id for id in ids_of(resources) if site.knows(id))
