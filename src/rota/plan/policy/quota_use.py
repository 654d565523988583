"""What jobs hold under each quota rule now. For display only: nothing is decided by it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from rota.plan.policy.quota_counters import QuotaCounter
from rota.plan.policy.quota_rules import EACH, NO_LIMIT, Pattern, QuotaRule
from rota.plan.site.calendar import Occurrence


class RuleHolder(NamedTuple):
    """What the jobs hold that a rule counts together."""

    names: Pattern  #: the rule's pattern; each `/` is followed by the name it stands for
    resources: int
    jobs: int
    #: resources × microseconds of the present period (what ended jobs used, and running ones up to their planned
    #: end), or of all that runs if the rule applies always; None: the rule does not limit them
    area: int | None


class RuleUse(NamedTuple):
    """A rule and what is held under it."""

    rule: QuotaRule
    applies: bool
    holders: list[RuleHolder]  #: if the rule counts each separately, only holders of something


def use_of(
    rule: QuotaRule,
    cells: Iterable[tuple[Pattern, QuotaCounter]],
    running: AbstractSet[int],
    present: Sequence[Occurrence],
) -> RuleUse:
    """What running jobs hold under one rule. `present`: the current periods."""
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
        # The counter includes jobs that are only planned.
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
