"""Copies of a plan, for questions: a change of the copy leaves the plan alone."""

from __future__ import annotations

from copy import copy
from typing import Any, Final

import msgspec

from rota.errors import Bug
from rota.plan.planner import passes
from rota.plan.planner.planner import Planner
from rota.plan.policy.decay import Usage
from rota.plan.policy.quota_counters import QuotaCounter
from rota.plan.policy.quotas import Quotas
from rota.plan.policy.usage_history import History
from rota.plan.schedule.plan import Plan
from rota.plan.schedule.plan_entry import PlanEntry
from rota.plan.schedule.priority_class import PriorityClass
from rota.plan.schedule.suspended_job import ExactShape, SuspendedJob
from rota.plan.site.calendar import Calendar
from rota.plan.site.resources import Site
from rota.plan.timeline.ledger import Ledger
from rota.plan.timeline.search_bounds import Bounds
from rota.plan.timeline.shapes import Shape
from rota.plan.timeline.slots import CountedSlots, Slots
from rota.plan.timeline.step_function import StepFunction

#: Copied field by field.
_MUTABLE: Final = frozenset(
    (
        Planner,
        Plan,
        PriorityClass,
        Slots,
        CountedSlots,
        Bounds,
        Ledger,
        StepFunction,
        Usage,
        History,
        Quotas,
        QuotaCounter,
        SuspendedJob,
    )
)
#: Shared: they never change, except for their caches.
_SHARED: Final = frozenset((Site, Shape, ExactShape))
_PLAIN: Final = frozenset((int, float, str))
_SLOTS: Final = PlanEntry.__slots__


def copy_of(planner: Planner) -> Planner:
    """An independent copy of a planner. It costs little more than a loop over all jobs."""
    planner.finish()
    found = _Copier().copied(planner)
    assert isinstance(found, Planner)
    return found


def copy_plan(plan: Plan) -> Plan:
    """An independent copy of a plan."""
    passes.finish(plan)
    found = _Copier().copied(plan)
    assert isinstance(found, Plan)
    return found


class _Copier:
    """Copies what can change and shares the rest. What is referred to twice is one object in the copy, too."""

    def __init__(self) -> None:
        self._made: dict[int, Any] = {}

    def copied(self, value: Any) -> Any:
        kind: Any = type(value)
        new: Any
        if value is None or kind in _PLAIN or kind is bool or kind in _SHARED:
            return value
        made = self._made.get(id(value))
        if made is not None:
            return made
        if kind is PlanEntry:
            return self._entry(value)
        if kind is list:
            return self._list(value)
        if kind is dict:
            new = self._made[id(value)] = {}
            for key, each in value.items():
                new[key] = self.copied(each)
            return new
        if kind is set:
            new = self._made[id(value)] = set(value)
            return new
        if isinstance(value, tuple):
            return self._tuple(value)
        if kind is Calendar:
            new = self._made[id(value)] = copy(value)
            new._days = dict(value._days)  # quotas count by the identity of these periods
            return new
        if kind in _MUTABLE:
            return self._fields(value)
        if isinstance(value, frozenset | msgspec.Struct):
            return value  # frozen, such as asks and policies
        raise Bug(f"a plan has a {kind.__name__}, and nobody said whether it may be shared")

    def _entry(self, entry: PlanEntry) -> PlanEntry:
        new = PlanEntry.__new__(PlanEntry)
        self._made[id(entry)] = new
        for name in _SLOTS:
            setattr(new, name, getattr(entry, name))  # the lists in an entry are replaced, never changed …
        new.after = set(entry.after)  # … but for this
        if entry.counted is not None:
            new.counted = self.copied(entry.counted)
        return new

    def _list(self, value: list[Any]) -> list[Any]:
        first = value[0] if value else 0
        plain = type(first) in _PLAIN or (type(first) is tuple and all(type(each) in _PLAIN for each in first))
        if plain:
            new = value[:]
            self._made[id(value)] = new
            return new
        new = []
        self._made[id(value)] = new
        new.extend(map(self.copied, value))
        return new

    def _tuple(self, value: tuple[Any, ...]) -> tuple[Any, ...]:
        parts = [self.copied(part) for part in value]
        if all(one is other for one, other in zip(parts, value, strict=True)):
            return value
        new = type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        self._made[id(value)] = new
        return new

    def _fields(self, value: Any) -> Any:
        new = self._made[id(value)] = object.__new__(type(value))
        for name in getattr(type(value), "__slots__", None) or vars(value):
            setattr(new, name, self.copied(getattr(value, name)))
        return new
