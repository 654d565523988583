"""The set of resources that satisfy an expression has exactly those that satisfy it one by one."""

from __future__ import annotations

from random import Random

import pytest

from rota.plan.language.expression import matches, parse
from rota.plan.site.matching_sets import MatchingSets

PARTS = [
    "a='x'", "a != 'x'", "a like 'x%'", "n > 1", "n between 1 and 2", "n not between 1 and 2", "a in ('x', 'y')",
    "a not in ('x')", "a is null", "a is not null", "flag = yes", "n = m", "not a='x'", "mixed = 1",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_a_set_is_that_of_the_resources_one_by_one(seed: int) -> None:
    rng = Random(seed)
    some = {"a": ["x", "y", "xy"], "n": [0, 1, 2, 3], "m": [1, 2], "flag": [True, False], "mixed": [1, True, "1"]}
    resources = [
        {name: rng.choice(values) for name, values in some.items() if rng.random() < 0.7} for _ in range(12)
    ]
    text = rng.choice(PARTS)
    for _ in range(rng.randint(0, 3)):
        text = f"{rng.choice(['', 'not '])}({text}) {rng.choice(['and', 'or'])} ({rng.choice(PARTS)})"
    expression = parse(text)
    found = MatchingSets(resources).of(expression)
    one_by_one = [bit for bit, each in enumerate(resources) if matches(expression, each)]
    assert [bit for bit in range(len(resources)) if found >> bit & 1] == one_by_one, text
