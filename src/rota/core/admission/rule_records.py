"""Records of admission rules: the rule and its rank, or that a built-in rule is removed."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from rota.core.admission.admission_rules import AdmissionRule
from rota.core.admission.rule_syntax import BUILT_IN, check_name, read_rule, write_rule
from rota.errors import BadInput
from rota.plan.site.records import Records


class RankedRule(Struct, frozen=True):
    """An admission rule and its rank."""

    rank: float
    rule: AdmissionRule
    built_in: bool  #: unchanged


#: Distance between the ranks of rules, so that others fit in between.
STEP: Final = 100.0
#: The built-in rules.
BUILT_IN_RULES: Final = {
    rule.name: RankedRule(STEP * place, rule, built_in=True) for place, rule in enumerate(BUILT_IN, 1)
}

REMOVED: Final = {"removed": True}


def check_rule(name: str, value: Any) -> None:
    """Raise `BadInput` unless this is a valid record of a rule."""
    read_ranked_rule(name, value)


def read_ranked_rule(name: str, value: Any) -> RankedRule | None:
    """The rule in a record; None: it removes a built-in rule. Raises `BadInput`."""
    check_name(name)
    if value == REMOVED:
        if name not in BUILT_IN_RULES:
            raise BadInput(f"rule '{name}' is not built in", hint="remove its record")
        return None
    if not isinstance(value, dict):
        raise BadInput(f"rule '{name}': must be a JSON object")
    body = dict(value)
    rank = body.pop("rank", None)
    if isinstance(rank, bool) or not isinstance(rank, int | float) or not abs(rank) < 1e15:
        raise BadInput(f"rule '{name}': 'rank' must be a number, its place among the rules")
    if body.pop("name", name) != name:
        raise BadInput(f"rule '{name}': its value has another name")
    return RankedRule(float(rank), read_rule(body, name=name), built_in=False)


def ranked_rule_record(rule: AdmissionRule, rank: float) -> dict[str, Any]:
    """The record of a rule with this rank."""
    body = write_rule(rule)
    del body["name"]
    return {"rank": rank, **body}


def placed_rules(records: Records) -> list[RankedRule]:
    """The admission rules in order, with their positions."""
    found: dict[str, RankedRule | None] = {**BUILT_IN_RULES}
    for name, value in records.get("rule", {}).items():
        found[name] = read_ranked_rule(name, value)
    return sorted(
        (each for each in found.values() if each is not None), key=lambda each: (each.rank, each.rule.name)
    )


def rules_of(records: Records) -> list[AdmissionRule]:
    """The admission rules in order."""
    return [each.rule for each in placed_rules(records)]
