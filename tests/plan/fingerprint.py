"""All that a plan consists of, down to numbers and texts, so that two plans can be compared bit for bit."""

from __future__ import annotations

from typing import Any

from rota.plan.site.calendar import Occurrence
from rota.plan.site.clock import Clock
from rota.plan.site.resources import Site
from rota.plan.timeline.shapes import Shape

#: A site without its caches.
SITE = ("levels", "resources", "usable", "until", "hosts", "figures", "hours", "sleeping", "asleep", "away")


def everything(value: Any, *, without: tuple[str, ...] = (), seen: dict[int, int] | None = None) -> Any:
    """All that this consists of, but for fields of these names; objects by the order in which they were met."""
    seen = {} if seen is None else seen

    def inner(part: Any) -> Any:
        return everything(part, without=without, seen=seen)

    if value is None or isinstance(value, int | float | str | Shape | Occurrence | Clock):
        return value
    if isinstance(value, tuple | frozenset):
        return [inner(each) for each in value]
    if id(value) in seen:
        return f"object {seen[id(value)]}"
    seen[id(value)] = len(seen)
    if isinstance(value, dict):
        return [(inner(key), inner(each)) for key, each in value.items()]
    if isinstance(value, list):
        return [inner(each) for each in value]
    if isinstance(value, set):
        return sorted(value)
    kind = type(value)
    fields = SITE if kind is Site else getattr(value, "__struct_fields__", None) or _slots(kind) or vars(value)
    return kind.__name__, [(name, inner(getattr(value, name))) for name in fields if name not in without]


def _slots(kind: type) -> list[str]:
    return [name for each in kind.__mro__ for name in getattr(each, "__slots__", ())]
