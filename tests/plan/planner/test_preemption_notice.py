"""Besteffort jobs make room for a reservation in time: none is there any more when it begins."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from rota.plan.planner.planner import Planner
from rota.plan.policy.policy import Policy
from tests.plan.planner.test_planner_cases import ask, site, starts

LATE = -1.0  #: it would begin, but somebody must leave first


def low(number: int, length: float | None = None, *, leave_s: float = 30.0, **terms: Any) -> Any:
    return ask(number, length, queue="besteffort", besteffort=True, leave_s=leave_s, **terms)


def run_until(planner: Planner, end: float, *, then: Callable[[], object]) -> dict[int, float]:
    """Let time pass from event to event, and something happen after all began that could.

    Who is told to leave takes all the time it has. When did each begin?
    """
    begun: dict[int, float] = {}
    leaving: dict[int, float] = {}
    now = 0.0
    happened = False
    while now <= end:
        for job in [job for job, moment in leaving.items() if moment <= now]:
            del leaving[job]
            planner.ended(job, now)
        planner.tick(now)
        told = [job for job, _by, _at in planner.plan.noticed]
        planner.plan.noticed.clear()
        for begin in planner.begin(now):
            walltime = begin.entry.ask.alternatives[0].walltime_s
            if walltime is not None:
                leaving[begin.entry.id] = now + walltime
            slow = [each for each in begin.victims if planner.plan.entries[each].ask.leave_s]
            begun[begin.entry.id] = LATE if slow else now
            told += begin.victims
        for job in told:
            leaving[job] = min(leaving.get(job, inf), now + planner.plan.entries[job].ask.leave_s)
        if not happened:
            then()
            happened = True
            continue  # whoever it moved to this moment begins at once
        moments = [moment for moment in (planner.next_event(), *leaving.values()) if moment is not None]
        now = min((moment for moment in moments if moment > now), default=end + 1)
    return begun


def test_who_is_in_the_way_is_told_as_early_as_it_needs_and_no_earlier() -> None:
    planner = Planner(site(2), Policy())
    planner.submit(1, low(2, 1000), 0)
    planner.begin(0)
    planner.submit(2, ask(2, 50, at=100.0), 0)
    assert planner.next_event() == 70
    planner.tick(69)
    assert planner.plan.noticed == []
    planner.tick(70)
    assert planner.plan.noticed == [(1, 2, 100.0)]
    planner.ended(1, 95)
    (begin,) = planner.begin(100)
    assert (begin.entry.id, begin.victims) == (2, [])


def test_each_is_told_at_its_own_time() -> None:
    planner = Planner(site(3), Policy())
    for id, leave_s in ((1, 10.0), (2, 40.0), (3, 0.0)):
        planner.submit(id, low(1, 1000, leave_s=leave_s), 0)
    planner.begin(0)
    planner.submit(4, ask(3, 50, at=100.0), 0)
    told = {}
    for now in (59, 60, 89, 90, 99):
        planner.tick(now)
        told.update({job: now for job, _by, _at in planner.plan.noticed if job not in told})
        planner.plan.noticed.clear()
    assert told[2] == 60
    assert told[1] == 90
    assert 3 not in told, "it leaves at once"


def test_whoever_its_walltime_ends_before_the_reservation_is_left_alone() -> None:
    planner = Planner(site(1), Policy())
    planner.submit(1, low(1, 90), 0)
    planner.begin(0)
    planner.submit(2, ask(1, 50, at=100.0), 0)
    planner.tick(85)
    assert planner.plan.noticed == []


def test_a_reservation_takes_in_time_what_the_fewest_must_leave() -> None:
    planner = Planner(site(4), Policy())
    planner.submit(1, low(2, 1000), 0)
    planner.begin(0)
    planner.submit(2, ask(2, 50), 0)
    planner.begin(0)  # on the two others
    planner.submit(3, ask(2, 50, at=100.0), 0)
    assert planner.plan.site.ids(planner.plan.entries[3].resources) == [1, 2]
    planner.ended(2, 50)
    planner.tick(70)
    assert planner.plan.noticed == [], "two cores are free by then"
    assert planner.plan.site.ids(planner.plan.entries[3].resources) == [3, 4]
    assert planner.plan.exchanged == [3]


def test_what_a_reservation_leaves_when_it_moves_aside_is_the_next_jobs_at_once() -> None:
    planner = Planner(site(2), Policy())
    planner.submit(1, low(1, 1000, where="x = 1"), 0)
    planner.submit(2, ask(1, 50, "x = 2"), 0)
    planner.begin(0)
    planner.submit(3, ask(1, 50, at=100.0), 0)
    planner.submit(4, ask(1, 120, "x = 1"), 0)
    planner.ended(2, 50)
    assert starts(planner)[4] == 150
    planner.tick(70)
    assert planner.plan.exchanged == [3]
    assert starts(planner)[4] == 70


def test_whoever_holds_only_the_memory_of_a_reservation_leaves_in_time_too() -> None:
    planner = Planner(site(2, mem=100), Policy())
    planner.submit(1, low(1, 1000, mem=80), 0)
    planner.begin(0)
    planner.submit(2, ask(1, 50, at=100.0, mem=50), 0)
    planner.tick(70)
    assert planner.plan.noticed == [(1, 2, 100.0)]


def test_whoever_begins_after_the_reservation_was_granted_leaves_in_time_as_well() -> None:
    """What it was placed on may be reserved by another after it was moved there."""
    planner = Planner(site(1), Policy())
    planner.submit(2, ask(1, 50, at=100.0), 0)
    planner.adopt(1, low(1, 1000), start=0, resources=1, now=0)
    assert planner.next_event() == 70
    planner.tick(70)
    assert planner.plan.noticed == [(1, 2, 100.0)]


def test_nobody_is_told_for_a_reservation_that_was_given_up() -> None:
    planner = Planner(site(1), Policy())
    planner.submit(1, low(1, 1000), 0)
    planner.begin(0)
    planner.submit(2, ask(1, 50, at=100.0), 0)
    planner.ended(2, 10, complete=False)
    planner.tick(70)
    assert planner.plan.noticed == []
    assert starts(planner) == {1: 0}


@given(
    guests=st.lists(st.tuples(st.integers(1, 3), st.sampled_from([None, 40.0, 100.0, 500.0]), st.integers(0, 60)),
                    max_size=5),
    width=st.integers(1, 6),
    at=st.integers(61, 200),
)  # fmt: skip
@example(guests=[(1, None, 0), (1, 40.0, 0), (3, None, 22), (2, None, 0), (1, 100.0, 0)], width=4, at=61)
def test_a_reservation_begins_on_time_whoever_runs_there(
    guests: list[tuple[int, float | None, int]], width: int, at: int
) -> None:
    planner = Planner(site(6, hosts=2), Policy())
    for id, (number, length, leave_s) in enumerate(guests, 1):
        planner.submit(id, low(number, length, leave_s=float(leave_s)), 0)
    reserve = partial(planner.submit, 100, ask(width, 50, at=float(at)), 0.0)
    assert run_until(planner, at + 1.0, then=reserve)[100] == at
