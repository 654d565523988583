"""Queues and admission rules as the API lists them: those of the site and those that come with Rota, in order."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, to_builtins

from rota.core.site.policy import placed_rules, queues_of
from rota.plan.policy.policy import DEFAULT_QUEUES
from rota.plan.policy.policy_records import BUILT_IN_RULES, RankedRule
from rota.plan.policy.rule_syntax import write_rule
from rota.wire.views import SiteView


class QueueView(Struct, kw_only=True):
    """A queue with every value that holds for it, and what of it was written down."""

    name: str
    priority: int
    order: str
    backfill: str
    walltime_s: float | None  #: for jobs that give none
    max_wait_s: float
    shares: dict[str, float]
    max_priority: int | None  #: jobs of users have no higher one
    admins_only: bool  #: only administrators may name it
    built_in: bool
    record: dict[str, Any] | None  #: null: nothing was
    closed: bool = False  #: takes no new jobs
    closed_reason: str = ""


class QueuesView(Struct):
    """The queues, the one that is planned first at the top."""

    version: int  #: changes made from this are refused if others came first
    queues: list[QueueView]


class RuleView(Struct, kw_only=True):
    """An admission rule: whom it concerns, and the one thing of default, cap, set and reject that it does."""

    name: str
    position: int  #: from 1
    rank: float  #: what its record has for a place, between those of its neighbours
    built_in: bool  #: as every site has it
    replaces: bool  #: it stands in for the built-in rule of its name
    match: dict[str, Any] = {}
    default: dict[str, Any] | None = None
    cap: dict[str, Any] | None = None
    set: dict[str, Any] | None = None
    reject: str | None = None


class RulesView(Struct):
    """The rules in their order, and built-in ones that this site does not want."""

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
