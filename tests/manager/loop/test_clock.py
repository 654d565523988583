"""Clock steps: the manager's own time, which no step moves until a second reading an hour later agrees."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.manager.loop.clock import (
    CONFIRMED_AFTER_S,
    FAR_S,
    FOLLOWED_S,
    Reading,
    SteadyClock,
    reading_of,
    starting_time,
)

YEAR = 366 * 86_400.0
NOW = 1_800_000_000.0


class Clocks:
    """A wall clock that can be set, and the time that really passes."""

    def __init__(self) -> None:
        self.off, self.passed = NOW, 1000.0
        self.clock = SteadyClock(wall=lambda: self.off + self.passed, steady=lambda: self.passed)

    def wait(self, seconds: float) -> None:
        self.passed += seconds
        self.clock.look()


@pytest.mark.parametrize("by", [-2 * YEAR, -3600.0, 3600.0, 2 * YEAR])
def test_a_step_is_followed_when_a_second_reading_an_hour_later_agrees(by: float) -> None:
    clocks = Clocks()
    before = clocks.clock.now()
    clocks.off += by
    for _ in range(10):
        clocks.wait(CONFIRMED_AFTER_S / 11)
        assert not clocks.clock.confirmed
    passed = clocks.clock.now() - before
    assert passed == pytest.approx(CONFIRMED_AFTER_S / 11 * 10)
    clocks.wait(CONFIRMED_AFTER_S / 5)
    assert clocks.clock.confirmed
    assert clocks.clock.follow() == pytest.approx(by)
    assert clocks.clock.now() == pytest.approx(clocks.off + clocks.passed)
    assert not clocks.clock.confirmed


def test_a_step_that_is_taken_back_never_was_one() -> None:
    clocks = Clocks()
    clocks.off += 2 * YEAR
    clocks.wait(CONFIRMED_AFTER_S - 10)
    clocks.off -= 2 * YEAR
    clocks.wait(20)
    assert not clocks.clock.confirmed
    assert clocks.clock.now() == NOW + clocks.passed


def test_of_several_steps_each_begins_the_hour_anew() -> None:
    clocks = Clocks()
    for _ in range(5):
        clocks.off += YEAR
        clocks.wait(CONFIRMED_AFTER_S - 10)
        assert not clocks.clock.confirmed
    assert clocks.clock.now() == NOW + clocks.passed


def test_small_corrections_are_followed_at_once() -> None:
    clocks = Clocks()
    for by in (-50.0, 59.0, -1.0):
        clocks.off += by
        clocks.wait(1)
        assert clocks.clock.step is None
        assert clocks.clock.now() == pytest.approx(clocks.off + clocks.passed)


@given(st.lists(st.tuples(st.floats(-3 * YEAR, 3 * YEAR), st.floats(0, CONFIRMED_AFTER_S - 1)), max_size=8))
def test_no_steps_within_an_hour_move_the_manager_by_more_than_small_corrections(
    steps: list[tuple[float, float]],
) -> None:
    clocks = Clocks()
    left = CONFIRMED_AFTER_S - 1
    for by, seconds in steps:
        clocks.off += by
        clocks.wait(min(seconds, left))
        left -= min(seconds, left)
        assert not clocks.clock.confirmed
        small = (len(steps) + 1) * FOLLOWED_S
        assert abs(clocks.clock.now() - (NOW + clocks.passed)) <= small


def reading(at: float, *, boot: str = "b", since: float = 5000.0) -> Reading:
    return Reading(boot, since, at)


@pytest.mark.parametrize("by", [-2 * YEAR, -3600.0, 0.0, 3600.0, 2 * YEAR])
def test_a_manager_that_starts_in_the_same_life_of_the_machine_knows_what_passed(by: float) -> None:
    known = reading(NOW, since=1000.0)
    found = starting_time(known, newest=NOW, at_stake=True, now=reading(NOW + 4000 + by, since=5000.0))
    assert found == NOW + 4000


def test_after_a_restart_of_the_machine_time_has_not_gone_back() -> None:
    known = reading(NOW, boot="other")
    assert starting_time(known, newest=NOW + 50, at_stake=False, now=reading(NOW - YEAR)) == NOW + 50
    assert starting_time(None, newest=NOW + 50, at_stake=False, now=reading(NOW - YEAR)) == NOW + 50
    assert starting_time(known, newest=NOW, at_stake=True, now=reading(NOW + FAR_S / 2)) == NOW + FAR_S / 2


def test_after_a_restart_of_the_machine_years_are_believed_at_once_only_if_nobody_waits() -> None:
    known, later = reading(NOW, boot="other"), reading(NOW + YEAR)
    assert starting_time(known, newest=NOW, at_stake=True, now=later) == NOW
    assert starting_time(known, newest=NOW, at_stake=False, now=later) == NOW + YEAR
    assert starting_time(None, newest=0.0, at_stake=True, now=later) == NOW + YEAR, (
        "there is nothing to compare with"
    )


def test_what_is_written_down_is_read_again() -> None:
    made = reading(NOW + 0.25, since=1234.5)
    assert reading_of(made.text()) == made
    for text in (None, "", "x", "a b c", "a 1 2 3"):
        assert reading_of(text) is None
