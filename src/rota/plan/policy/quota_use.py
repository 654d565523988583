"""What jobs hold now under each rule of quotas: for people who look, nothing is decided by it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from rota.plan.policy.quota_counters import QuotaCounter
from rota.plan.policy.quota_rules import EACH, NO_LIMIT, Pattern, QuotaRule
from rota.plan.site.calendar import Occurrence


class RuleHolder(NamedTuple):
    """Those whose jobs a rule counts together, and what they hold."""

    names: Pattern  #: as the rule has it; in place of each `/` a `/` and the name of this one
    resources: int
    jobs: int
    #: resources × microseconds of the present period (what ended jobs used, and running ones up to their planned
    #: end), or of all that runs if the rule applies always; None: the rule does not limit them
    area: int | None


class RuleUse(NamedTuple):
    """A rule, and who holds what it counts."""

    rule: QuotaRule
    applies: bool
    holders: list[RuleHolder]  #: where the rule counts each separately, only those who hold something


def use_of(
    rule: QuotaRule,
    cells: Iterable[tuple[Pattern, QuotaCounter]],
    running: AbstractSet[int],
    present: Sequence[Occurrence],
) -> RuleUse:
    """The use of one rule by jobs that run. `present`: the periods in which we are."""
    periods = [each for each in present if each.set == rule.set]
    found = [_holder(rule, names, counter, running, periods) for names, counter in cells]
    if EACH in rule.pattern:
        found = [each for each in found if each.jobs or each.area]
    elif not found:
        found = [RuleHolder(rule.pattern, 0, 0, None if rule.area == NO_LIMIT else 0)]
    return RuleUse(rule, not rule.set or bool(periods), found)


def _holder(
    rule: QuotaRule, names: Pattern, counter: QuotaCounter, running: AbstractSet[int], periods: list[Occurrence]
) -> RuleHolder:
    there = [counter.jobs[job] for job in counter.jobs.keys() & running]
    area: int | None = None
    if rule.area != NO_LIMIT and not rule.set:
        area = sum(held.resources * (held.end - held.start) for held in there)
    elif rule.area != NO_LIMIT:
        # The counter knows of those that are only planned as well.
        later = [counter.jobs[job] for job in counter.jobs.keys() - running] if periods else []
        area = max(
            (
                counter.areas.get(period, 0)
                - sum(held.resources * period.overlap(held.start, held.end) for held in later)
                for period in periods
            ),
            default=0,
        )
    return RuleHolder(names, sum(held.resources for held in there), len(there), area)
