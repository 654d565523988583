"""Trials: where would a waiting job be placed without one of its causes? All other jobs keep their places.

A trial works on a snapshot of the plan. One snapshot serves all questions about a job.
"""

from __future__ import annotations

from copy import copy
from math import inf
from typing import Final, NamedTuple

import msgspec

from rota.plan.planner import passes, search
from rota.plan.policy.quota_rules import QuotaRule
from rota.plan.reasons import Waits
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import SUSPENDED, Option, PlanEntry
from rota.plan.site.availability import closing, closures
from rota.plan.site.resources import Site
from rota.plan.timeline.ledger import Ledger
from rota.plan.timeline.slots import Slots

#: What can be removed. Quotas and limits are removed by name.
DEPENDENCY: Final = "dependency"
POSTPONE: Final = "postpone"
DEADLINE: Final = "deadline"
EXPIRE: Final = "expire"
WALLTIME: Final = "walltime"  #: that none was given
UNTIL: Final = "available_until"
HOURS: Final = "hours"
AWAY: Final = "away"
ASLEEP: Final = "asleep"
JOBS: Final = "jobs"

_TERMS: Final = (POSTPONE, DEADLINE, EXPIRE)


class TrialResult(NamedTuple):
    """Where it would be placed; a start of inf: nowhere, for this reason."""

    start: float
    resources: int
    reason: Waits | None


class CauseTrial:
    """One waiting job, and a snapshot of the plan in which it has no place."""

    def __init__(self, plan: Plan, id: int) -> None:
        self.plan = passes.settled_snapshot(plan)
        self.entry = self.plan.entries[id]
        self.plan.unplan(self.entry)
        self._ask, self._after = self.entry.ask, self.entry.after
        self._site, self._ledger = self.plan.site, self.plan.ledger
        self._shapes, self._quotas = self.plan.shapes, self.plan.quotas
        self._others = [other for other in self.plan.entries.values() if self._holds(other)]
        self._reserved = {other.id: other for other in self._others if other.id in self.plan.reserved}
        self._close()
        self._slots = self._held(self._others)  #: of all trials in which they keep their places

    def _holds(self, other: PlanEntry) -> bool:
        """Does the other job hold resources that this one could have, or get them first?"""
        if other is self.entry or other.home or other.start is None or other.state == SUSPENDED:
            return False
        if not other.ask.types.besteffort:
            return True
        low = self.entry.ask.types.besteffort
        return low and (other.id in self.plan.running_besteffort or other.rank < self.entry.rank)

    # -- what can be removed

    def rules(self) -> list[QuotaRule]:
        """The quotas that count this job."""
        quotas, counted = self._quotas, self.entry.counted
        return [] if quotas is None or counted is None else quotas.rules_of(counted)

    def limits(self) -> list[str]:
        """The limits of the site that it takes."""
        return list(self.entry.everywhere)

    def place(
        self,
        *gone: str,
        rules: tuple[QuotaRule, ...] = (),
        limits: tuple[str, ...] = (),
        jobs: frozenset[int] | None = None,
        length: float | None = None,
    ) -> TrialResult:
        """Where it would be placed without these.

        `jobs`: only these of the others are gone. `length`: of the walltime that it is given.
        """
        plan, entry = self.plan, self.entry
        types = self._ask.types
        if terms := {name: None for name in _TERMS if name in gone}:
            types = msgspec.structs.replace(types, **terms)
        entry.ask = self._ask if types is self._ask.types else msgspec.structs.replace(self._ask, types=types)
        entry.after = frozenset() if DEPENDENCY in gone else self._after
        plan.site = site = self._without(gone)
        plan.shapes = self._shapes if site is self._site else {}
        self._close()
        left, plan.reserved = self._others, self._reserved
        if JOBS in gone:
            left = [other for other in left if jobs is not None and other.id not in jobs]
            plan.reserved = {other.id: other for other in left if other.id in self._reserved}
        plan.slots, plan.ledger = self._slots, self._ledger
        if len(left) < len(self._others) or site is not self._site:
            plan.slots, plan.ledger = self._held(left), self._kept(left)
        plan.bounds = {}
        plan.quotas = self._quotas
        search.ready(plan, entry)
        entry.everywhere = {name: units for name, units in entry.everywhere.items() if name not in limits}
        if self._quotas is not None and entry.counted is not None and rules:
            plan.quotas = self._quotas.lifting(entry.counted, rules)
        if WALLTIME in gone:
            entry.options = tuple(
                Option(shape, its if hard or length is None else length, True)
                for shape, its, hard in entry.options
            )
        entry.home = 0
        found = search.find(plan, entry, plan.now, before=inf, since=None)
        return (
            TrialResult(inf, 0, entry.reason) if found is None else TrialResult(found[0], found[1], entry.reason)
        )

    def _without(self, gone: tuple[str, ...]) -> Site:
        site = self._site
        if not {UNTIL, HOURS, AWAY, ASLEEP}.isdisjoint(gone):
            site = copy(site)
            if UNTIL in gone:
                site.until = {}
            if HOURS in gone:
                site.hours = {}
            if AWAY in gone:
                site.usable = site.everything
            if ASLEEP in gone:
                site.asleep, site.sleeping = 0, {}
        return site

    def _close(self) -> None:
        plan = self.plan
        plan.closures = closures(plan.site, plan.now)
        plan.closing = closing(plan.closures, plan.now)

    def _held(self, left: list[PlanEntry]) -> Slots:
        """The resources that closures and the other jobs leave free."""
        plan = self.plan
        jobs = ((other.start or 0.0, other.end or inf, other.resources) for other in left)
        return Slots.holding(plan.site.everything, plan.now, (*plan.closures, *jobs))

    def _kept(self, left: list[PlanEntry]) -> Ledger:
        """What the other jobs take of memory, disk, GPUs and limits."""
        ledger = self._ledger.emptied()
        inner = [other for other in self.plan.entries.values() if other.home and other is not self.entry]
        for other in (*left, *inner):
            ledger.taking(other.ask)
            if (other.taking or other.everywhere) and other.start is not None and other.end is not None:
                span, low = (other.start, other.end), other.ask.types.besteffort
                ledger.take(other.id, other.taking, other.everywhere, other.resources, span, low=low)
        return ledger
