"""From the records of a site to its admission rules."""

from __future__ import annotations

from typing import Any

import pytest

from rota.core.admission.rule_records import BUILT_IN_RULES, check_rule, placed_rules, ranked_rule_record, rules_of
from rota.core.admission.rule_syntax import read_rule
from rota.errors import BadInput


def test_a_site_without_records_has_the_built_in_rules() -> None:
    assert rules_of({}) == [each.rule for each in BUILT_IN_RULES.values()]


def test_rules_of_the_site_stand_among_the_built_in_ones_by_their_rank() -> None:
    first = ranked_rule_record(read_rule({"name": "first", "reject": "x"}), 1.0)
    changed = ranked_rule_record(read_rule({"name": "default-queue", "default": {"queue": "night"}}), 100.0)
    records = {"rule": {"first": first, "default-queue": changed, "no-root": {"removed": True}}}
    found = placed_rules(records)
    assert [each.rule.name for each in found] == [
        "first", "default-queue", "nodes-walltime", "interactive-walltime", "reservations",
    ]  # fmt: skip
    assert [each.built_in for each in found] == [False, False, True, True, True]
    assert found[1].rule.values == {"queue": "night"}


@pytest.mark.parametrize(
    "value",
    [{"reject": "x"}, {"rank": "1", "reject": "x"}, {"rank": True, "reject": "x"}, {"rank": 1}, {"removed": True},
     {"rank": 1, "name": "other", "reject": "x"}, {"rank": float("nan"), "reject": "x"}, []],
)  # fmt: skip
def test_a_record_of_a_rule_that_cannot_be_is_refused(value: Any) -> None:
    with pytest.raises(BadInput, match="rule 'mine'"):
        check_rule("mine", value)
