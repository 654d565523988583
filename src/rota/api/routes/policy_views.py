"""Queues and admission rules as the API lists them: the site's own and the built-in ones, in order."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, to_builtins

from rota.core.admission.rule_records import BUILT_IN_RULES, RankedRule, placed_rules
from rota.core.admission.rule_syntax import write_rule
from rota.core.site.policy import queues_of
from rota.plan.policy.policy import DEFAULT_QUEUES
from rota.wire.views import SiteView


class QueueView(Struct, kw_only=True):
    """A queue with all its effective values, and its record."""

    name: str
    priority: int
    order: str
    backfill: str
    walltime_s: float | None  #: for jobs that give none
    max_wait_s: float
    shares: dict[str, float]
    max_priority: int | None  #: the highest priority for jobs of users
    admins_only: bool  #: only administrators may submit to it
    built_in: bool
    record: dict[str, Any] | None  #: null: no record
    closed: bool = False  #: accepts no new jobs
    closed_reason: str = ""


class QueuesView(Struct):
    """The queues in the order of planning."""

    version: int  #: a change based on an older version is refused
    queues: list[QueueView]


class RuleView(Struct, kw_only=True):
    """An admission rule: the jobs it applies to, and its single action: default, cap, set or reject."""

    name: str
    position: int  #: from 1
    rank: float  #: the position in its record, between those of its neighbours
    built_in: bool  #: built in, as at every site
    replaces: bool  #: it replaces the built-in rule of the same name
    match: dict[str, Any] = {}
    default: dict[str, Any] | None = None
    cap: dict[str, Any] | None = None
    set: dict[str, Any] | None = None
    reject: str | None = None


class RulesView(Struct):
    """The rules in order, and the built-in ones that this site has disabled."""

    version: int
    rules: list[RuleView]
    removed: list[str]


def queues_view(site: SiteView) -> QueuesView:
    """Every queue. Raises `BadInput` if a record cannot be read."""
    written = site.of("queue")
    return QueuesView(
        site.version,
        [
            QueueView(name=name, **to_builtins(each), built_in=name in DEFAULT_QUEUES, record=written.get(name))
            for name, each in queues_of(site.site()).items()
        ],
    )


def rules_view(site: SiteView) -> RulesView:
    """Every rule. Raises `BadInput` if a record cannot be read."""
    found = placed_rules(site.site())
    here = {each.rule.name for each in found}
    return RulesView(
        site.version,
        [_rule(place, each) for place, each in enumerate(found, 1)],
        [name for name in BUILT_IN_RULES if name not in here],
    )


def _rule(place: int, each: RankedRule) -> RuleView:
    replaces = not each.built_in and each.rule.name in BUILT_IN_RULES
    return RuleView(
        position=place, rank=each.rank, built_in=each.built_in, replaces=replaces, **write_rule(each.rule)
    )
