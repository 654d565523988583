"""Containers that share a name: a job that asks for the name may lie in any of them."""

from __future__ import annotations

from typing import Any

import pytest

from rota.plan.ask import Ask
from rota.plan.explain.why_waiting import why
from rota.plan.planner.planner import Planner
from rota.plan.policy.policy import Policy
from rota.plan.schedule.plan_entry import RUNNING
from tests.plan.planner.test_planner_cases import ask, policy, site, starts


def box(number: int, length: float, **terms: Any) -> Ask:
    return ask(number, length, container=True, name="box", **terms)


def inner(number: int, length: float | None, **terms: Any) -> Ask:
    return ask(number, length, inner="box", **terms)


def two_boxes() -> Planner:
    """Two of one core that begin at 0, and end at 100 and 60."""
    planner = Planner(site(2), Policy())
    planner.submit(1, box(1, 100), 0)
    planner.submit(2, box(1, 60), 0)
    planner.begin(0)
    return planner


def homes(planner: Planner) -> dict[int, int]:
    return {entry.id: entry.home for entry in planner.plan.entries.values() if entry.ask.types.inner}


def test_every_container_of_the_name_is_filled() -> None:
    planner = two_boxes()
    for id in (3, 4, 5):
        planner.submit(id, inner(1, 30), 0)
    assert {id: start for id, start in starts(planner).items() if id > 2} == {3: 0, 4: 0, 5: 30}
    assert {homes(planner)[3], homes(planner)[4]} == {1, 2}


def test_a_job_lies_in_the_one_that_lets_it_begin_first() -> None:
    planner = two_boxes()
    planner.submit(3, inner(1, 50), 0)
    planner.submit(4, inner(1, 20), 0)
    planner.begin(0)
    planner.submit(5, inner(1, 30), 0)  # after 4, though 3's container lasts longer
    assert starts(planner)[5] == 20
    assert homes(planner) == {3: 1, 4: 2, 5: 2}


def test_a_job_too_long_for_one_of_them_lies_in_another() -> None:
    planner = two_boxes()
    planner.submit(3, inner(1, 80), 0)
    assert homes(planner) == {3: 1}
    planner.submit(4, inner(1, 80), 0)
    entry = planner.plan.entries[4]
    assert entry.start is None
    assert [(why.code, why.message) for why in why(planner.plan, entry)] == [
        ("container", "it fits in none of the 2 containers named box")
    ]
    assert why(planner.plan, entry)[0].blockers == (1, 2)


def test_a_container_that_comes_later_takes_those_who_would_wait_longer_in_another() -> None:
    planner = Planner(site(2), Policy())
    planner.submit(1, box(1, 100), 0)
    planner.begin(0)
    planner.submit(2, inner(1, 40), 0)
    planner.begin(0)
    planner.submit(3, inner(1, 40), 0)
    assert starts(planner)[3] == 40
    planner.submit(4, box(1, 50), 0)
    assert starts(planner)[3] == 0
    assert homes(planner) == {2: 1, 3: 4}


def test_whoever_waited_in_a_container_that_ends_goes_to_another_of_its_name() -> None:
    planner = two_boxes()
    planner.submit(3, inner(1, 50), 0)
    planner.submit(4, inner(1, 30), 0)
    planner.begin(0)
    planner.submit(5, inner(1, 30), 0)
    assert homes(planner) == {3: 1, 4: 2, 5: 2}
    planner.ended(2, 10)
    assert planner.plan.orphans == [(4, 2)], "only who ran in it loses it"
    assert starts(planner)[5] == 50
    assert homes(planner)[5] == 1


def test_who_is_suspended_keeps_its_own_container_when_another_ends() -> None:
    planner = two_boxes()
    planner.submit(3, inner(1, 50), 0)
    planner.submit(4, inner(1, 30), 0)
    planner.begin(0)
    assert homes(planner) == {3: 1, 4: 2}
    planner.suspend(3, 5, left_s=45)
    planner.suspend(4, 5, left_s=25)
    planner.ended(2, 10)
    assert planner.plan.orphans == [(4, 2)]
    planner.resume(3, 10, left_s=45, submitted=0, serial=3)
    planner.begin(10)
    assert planner.plan.entries[3].state == RUNNING
    assert planner.plan.entries[3].home == 1


def test_who_runs_already_is_found_in_the_container_whose_resources_it_has() -> None:
    planner = Planner(site(2), Policy())
    planner.adopt(1, box(1, 100), start=0, resources=0b01, now=10)
    planner.adopt(2, box(1, 100), start=0, resources=0b10, now=10)
    planner.adopt(3, inner(1, 50), start=5, resources=0b10, now=10)
    assert homes(planner) == {3: 2}
    planner.submit(4, inner(1, 50), 10)
    assert starts(planner)[4] == 10
    assert homes(planner)[4] == 1


def test_a_container_does_not_lie_in_itself_though_it_has_the_name_that_it_asks_for() -> None:
    planner = Planner(site(2), Policy())
    planner.submit(1, box(1, 50, inner="box"), 0)
    assert starts(planner)[1] is None
    planner.submit(2, box(2, 100), 0)
    assert starts(planner) == {1: 0, 2: 0}
    assert homes(planner) == {1: 2}


@pytest.mark.parametrize("backfill", ["none", "easy", "easy-sjbf", "conservative"])
def test_who_waits_for_a_container_that_comes_later_begins_with_it(backfill: str) -> None:
    planner = Planner(site(2), policy(backfill))
    planner.submit(1, inner(1, 10), 0)
    planner.begin(0)
    planner.submit(2, box(2, 50), 0)
    begun = [begin.entry.id for begin in planner.begin(0)]
    assert sorted(begun) == [1, 2]
