"""Which resources satisfy an expression, as a set: parts of it are tried once per value, not per resource."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rota.plan.language.expression import Value, matches
from rota.plan.language.expression_tree import (
    Both,
    Comparison,
    Constant,
    Either,
    Expression,
    Membership,
    Negation,
    Presence,
)


class MatchingSets:
    """The resources of a site, given as their values, by these. They never change."""

    def __init__(self, resources: Sequence[Mapping[str, Value]]) -> None:
        self._resources = resources
        self._everything = (1 << len(resources)) - 1
        self._by_value: dict[str, list[tuple[Value | None, int]]] = {}

    def of(self, expression: Expression) -> int:
        """The resources that satisfy it, as `matches` says of each."""
        match expression:
            case Both(parts):
                found = self._everything
                for part in parts:
                    found &= self.of(part)
                return found
            case Either(parts):
                found = 0
                for part in parts:
                    found |= self.of(part)
                return found
            case Negation(part):
                return self._everything & ~self.of(part)
            case Comparison(left, _, Constant()) | Membership(left) | Presence(left):
                found = 0
                for value, mask in self._values(left.name):
                    if matches(expression, {} if value is None else {left.name: value}):
                        found |= mask
                return found
        found = 0
        for bit, values in enumerate(self._resources):
            if matches(expression, values):
                found |= 1 << bit
        return found

    def _values(self, name: str) -> list[tuple[Value | None, int]]:
        """The values of a property and the resources that have each; None: those that have none."""
        found = self._by_value.get(name)
        if found is None:
            # By type as well: `True` and 1 are equal.
            masks: dict[tuple[type, Value | None], int] = {}
            for bit, values in enumerate(self._resources):
                value = values.get(name)
                key = (type(value), value)
                masks[key] = masks.get(key, 0) | 1 << bit
            found = self._by_value[name] = [(value, mask) for (_type, value), mask in masks.items()]
        return found
