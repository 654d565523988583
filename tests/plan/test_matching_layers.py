"""Matchings whose exchanges lead over machines of several layers are found, and the search for them ends."""

from __future__ import annotations

import random
from itertools import permutations

import pytest

from rota.plan.matching.hopcroft_karp import match


def _exists(candidates: list[int], machines: int) -> bool:
    chosen = permutations(range(machines), len(candidates))
    return any(all(own >> at & 1 for own, at in zip(candidates, each, strict=True)) for each in chosen)


@pytest.mark.parametrize("candidates", [[3, 6, 3], [34, 3, 3], [3, 20, 5, 7]])
def test_a_machine_that_one_seat_cannot_use_is_left_to_the_others(candidates: list[int]) -> None:
    found = match(candidates)
    assert found is not None
    assert len(set(found)) == len(found)
    assert all(own >> at & 1 for own, at in zip(candidates, found, strict=True))


def test_a_matching_is_found_exactly_where_there_is_one() -> None:
    rng = random.Random(3)
    for _ in range(300):
        machines = rng.randint(2, 6)
        candidates = [rng.getrandbits(machines) & rng.getrandbits(machines) for _ in range(rng.randint(2, 5))]
        if len(candidates) <= machines:
            assert (match(candidates) is not None) == _exists(candidates, machines), candidates
