"""Quotas as clients see them: the records, and how much each holder uses."""

from __future__ import annotations

from heapq import nlargest
from typing import Final

from rota.core.machines.hosts import site_now
from rota.core.site.plan_facts import quotas_now
from rota.core.world import World
from rota.plan.policy.quota_records import read_quota
from rota.plan.policy.quota_rules import EACH, FIELDS, NO_LIMIT, QuotaRule
from rota.plan.policy.quota_use import RuleHolder, RuleUse
from rota.plan.site.clock import SECOND
from rota.wire.views import QuotaHolder, QuotasView, QuotaUse

#: Holders of a rule that are listed, the nearest to its limits first.
_HOLDERS: Final = 20
_HOUR: Final = 3600 * SECOND


def view(world: World, wall: float) -> QuotasView:
    """All quotas and their use; without a plan nothing is held."""
    records = world.site["quota"]
    uses: dict[tuple[str, str], QuotaUse] = {}
    if records:
        planner = world.placement.planner
        quotas = planner.plan.quotas if planner is not None else quotas_now(world, site_now(world))
        if quotas is not None:
            running = planner.plan.running.keys() if planner is not None else frozenset[int]()
            uses = {(use.rule.set, ",".join(use.rule.pattern)): _use(use) for use in quotas.uses(running, wall)}
    found = {}
    for name, value in records.items():
        record = read_quota(value)
        found[name] = uses.get((record.set, record.rule)) or _nothing(applies=not record.set)
    return QuotasView(version=world.site_version, records=dict(records), use=found)


def _nothing(*, applies: bool) -> QuotaUse:
    """The use of a rule that limits nothing, or belongs to a set without a period."""
    return QuotaUse(applies=applies, resources=None, jobs=None, resource_hours=None, holders=[], more=0)


def _use(use: RuleUse) -> QuotaUse:
    rule = use.rule
    first = nlargest(_HOLDERS, use.holders, key=lambda each: (_fullness(rule, each), each.resources, each.jobs))
    return QuotaUse(
        applies=use.applies,
        resources=None if rule.resources == NO_LIMIT else rule.resources,
        jobs=None if rule.jobs == NO_LIMIT else rule.jobs,
        resource_hours=None if rule.area == NO_LIMIT else rule.hours,
        holders=[_holder(rule, each) for each in first],
        more=len(use.holders) - len(first),
    )


def _fullness(rule: QuotaRule, holder: RuleHolder) -> float:
    """The largest fraction held of any limit. Holding anything of a limit of 0 counts as far above it."""
    limits = ((holder.resources, rule.resources), (holder.jobs, rule.jobs), (holder.area or 0, rule.area))
    return max(held / limit if limit else held * 1e9 for held, limit in limits if limit != NO_LIMIT)


def _holder(rule: QuotaRule, holder: RuleHolder) -> QuotaHolder:
    names = zip(FIELDS, rule.pattern, holder.names, strict=True)
    return QuotaHolder(
        who={field: name.removeprefix(EACH) for field, part, name in names if part == EACH},
        resources=holder.resources,
        jobs=holder.jobs,
        resource_hours=None if holder.area is None else round(holder.area / _HOUR, 6),
    )
