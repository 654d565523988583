"""Replanning without some causes: they are removed from a snapshot of the plan, and all jobs are planned again.

It costs more than a trial (`plan.explain.trials`), in which all other jobs keep their places. It also shows which
jobs of better rank would take what becomes free.
"""

from __future__ import annotations

from collections.abc import Collection
from copy import copy
from typing import Any, Final

import msgspec

from rota.plan.ask import Ask
from rota.plan.language.request import Alternative
from rota.plan.planner import ending, passes, site_changes
from rota.plan.reasons import Cause
from rota.plan.schedule.plan import Plan
from rota.plan.site.resources import Site

#: Causes that concern this job alone: no other job would profit.
OWN: Final = frozenset(("postpone", "deadline", "expire", "walltime", "dependency"))
#: More units than jobs ever ask for.
_PLENTY: Final = 1 << 40


def lifted(plan: Plan, id: int, causes: Collection[Cause]) -> Plan:
    """The plan that there would be without these causes for which job `id` waits."""
    found = passes.settled_snapshot(plan)
    now = found.now
    for cause in sorted(causes):
        if cause.kind == "job":
            ending.ended(found, int(cause.name), now)
        elif cause.kind == "dependency":
            found.entries[id].after -= {int(cause.name)}
    entry = found.entries[id]
    entry.ask = msgspec.structs.replace(entry.ask, **_terms(entry.ask, causes))
    rules = {cause.name for cause in causes if cause.kind == "quota"}
    limits = {cause.name: _PLENTY for cause in causes if cause.kind == "limit"}
    # Needed even if only jobs were removed: others may have moved while they went one by one.
    site_changes.change_rules(
        found,
        _site(found.site, causes),
        now,
        policy=found.policy,
        quotas=found.quotas and found.quotas.without(rules),
        limits={**found.limits, **limits},
    )
    return found


def _terms(ask: Ask, causes: Collection[Cause]) -> dict[str, Any]:
    """What the job asks for instead."""
    gone = {cause.kind: None for cause in causes if cause.kind in ("postpone", "deadline", "expire")}
    changed: dict[str, Any] = {"types": msgspec.structs.replace(ask.types, **gone)}
    for cause in causes:
        if cause.kind == "walltime":
            changed["alternatives"] = tuple(
                Alternative(each.groups, each.walltime_s or float(cause.name)) for each in ask.alternatives
            )
    return changed


def _site(site: Site, causes: Collection[Cause]) -> Site:
    """The site with those hosts open, usable and awake that are causes."""

    def left(mask: int, kind: str) -> int:
        for cause in causes:
            if cause.kind == kind:
                mask &= ~site.hosts.get(cause.name, 0)
        return mask

    new = copy(site)
    new.until = {moment: mask for moment, old in site.until.items() if (mask := left(old, "available_until"))}
    new.hours = {text: mask for text, old in site.hours.items() if (mask := left(old, "hours"))}
    new.usable = site.everything & ~left(site.everything & ~site.usable, "away")
    new.sleeping = {since: mask for since, old in site.sleeping.items() if (mask := left(old, "asleep"))}
    new.asleep = left(site.asleep, "asleep")
    return new
