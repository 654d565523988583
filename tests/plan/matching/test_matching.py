"""Matchings of seats to machines agree with trying all of them, and a shortage is a proof."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from rota.plan.matching.assignment import assign
from rota.plan.matching.best_matching import best
from rota.plan.matching.hopcroft_karp import match, shortage

sets = st.lists(st.integers(0, 63), min_size=1, max_size=5)


def all_ways(candidates: list[int]) -> list[tuple[int, ...]]:
    return [
        way
        for way in permutations(range(6), len(candidates))
        if all(candidates[seat] >> machine & 1 for seat, machine in enumerate(way))
    ]


@given(candidates=sets)
def test_all_seats_are_filled_exactly_when_that_is_possible(candidates: list[int]) -> None:
    found, ways = match(candidates), all_ways(candidates)
    assert (found is not None) == bool(ways)
    assert found is None or tuple(found) in ways


@given(candidates=sets)
def test_a_shortage_names_seats_that_have_too_few_machines_and_of_which_none_can_be_left_out(
    candidates: list[int],
) -> None:
    found = shortage(candidates)
    assert (found is None) == bool(all_ways(candidates))
    if found is None:
        return
    machines = 0
    for seat in found.seats:
        machines |= candidates[seat]
    assert machines == found.machines
    assert machines.bit_count() < len(found.seats)
    for left_out in found.seats:
        assert all_ways([candidates[seat] for seat in found.seats if seat != left_out])


@given(st.lists(st.tuples(st.integers(0, 63), st.integers(0, 63)), min_size=1, max_size=5))
def test_the_best_way_meets_most_preferences_and_then_gives_each_in_turn_the_lowest(
    seats: list[tuple[int, int]],
) -> None:
    candidates = [seat[0] for seat in seats]
    preferred = [seat[0] & seat[1] for seat in seats]

    def key(way: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
        return -sum(preferred[seat] >> machine & 1 for seat, machine in enumerate(way)), way

    ways, found = all_ways(candidates), best(candidates, preferred)
    if not ways:
        assert found is None
    else:
        assert found is not None
        assert tuple(found) == min(ways, key=key)


@given(st.lists(st.tuples(st.integers(0, 63), st.integers(0, 63)), min_size=1, max_size=5))
def test_the_prices_of_an_assignment_tell_all_ways_that_meet_most_preferences(
    seats: list[tuple[int, int]],
) -> None:
    candidates, preferred = [seat[0] for seat in seats], [seat[1] for seat in seats]
    ways = all_ways(candidates)
    if not ways:
        return

    def met(way: Sequence[int]) -> int:
        return sum(preferred[seat] >> machine & 1 for seat, machine in enumerate(way))

    found = assign(candidates, preferred)
    assert tuple(found.held) in ways
    most = max(map(met, ways))
    assert met(found.held) == most
    for way in ways:
        told = all(found.tight[seat] >> machine & 1 for seat, machine in enumerate(way))
        whole = not found.needed & ~sum(1 << machine for machine in way)
        assert (told and whole) == (met(way) == most)


def test_seats_that_push_each_other_along_may_be_many() -> None:
    chain = [3 << at for at in range(3000)] + [1]
    assert match(chain) == [*range(1, 3001), 0]
    assert shortage([*chain, 1]) is not None


def test_one_seat_that_wants_what_all_others_could_have_is_no_trouble_among_many() -> None:
    everything = (1 << 300) - 1
    assert best([everything] * 299 + [1], [everything] * 299 + [1]) == [*range(1, 300), 0]
