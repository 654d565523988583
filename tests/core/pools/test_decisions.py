"""Which runners of delegated pools are asked for and withdrawn, whatever their engine does."""

from __future__ import annotations

import pytest

from rota.core.events import RunnerParted
from rota.core.pools.records import RunnerState
from rota.core.pools.status import pool_status
from tests.core.pools.pool_machine import LARGE, POOL, SMALL, PoolMachine


def up(number: int = 3, **options: int) -> PoolMachine:
    """A pool that has been asked for this many runners, which wait."""
    m = PoolMachine(**options)
    m.want({SMALL: number})
    m.survey()
    m.perform()
    return m


def test_nothing_is_asked_for_before_the_first_survey() -> None:
    m = PoolMachine()
    m.want({SMALL: 3})
    m.perform()
    assert m.engine.submitted == []
    m.survey()
    m.perform()
    assert [len(names) for names in m.engine.submitted] == [3], "one array for all that are missing"


def test_a_repeated_statement_changes_nothing() -> None:
    m = up()
    m.want({SMALL: 3})
    m.settle()
    assert len(m.engine.things) == 3
    assert len(m.engine.submitted) == 1


def test_a_lost_step_is_repeated_within_a_minute() -> None:
    m = PoolMachine()
    m.survey()
    m.want({SMALL: 3})
    m.queue.clear()
    m.advance(30.0)
    m.perform()
    assert m.engine.submitted == []
    m.advance(31.0)
    m.perform()
    assert len(m.engine.things) == 3


def test_numbers_follow_up_and_down_and_started_ones_stay() -> None:
    m = up(2)
    m.start_things()
    m.want({SMALL: 4})
    m.settle()
    assert len(m.engine.things) == 4
    m.want({})
    m.settle()
    assert len(m.engine.things) == 2 == len(m.runners), "those that began leave by themselves"
    for id in list(m.engine.things):
        m.end(id, goodbye=True)
    m.settle(2)
    assert not m.pool.intents
    assert m.store.load().intents == []


def test_the_bound_is_shared_by_rank() -> None:
    m = PoolMachine(max_runners=5)
    m.want({SMALL: 10})
    m.settle()
    assert len(m.engine.things) == 5
    m.want({LARGE: 3, SMALL: 10})
    m.settle()
    groups = pool_status(m.world, POOL)
    assert groups is not None
    assert {need: group.pending for need, group in groups.groups.items()} == {LARGE: 3, SMALL: 2}
    assert m.engine.most <= 5


def test_a_group_that_the_engine_refuses_waits_longer_each_time_and_the_others_go_on() -> None:
    m = PoolMachine()
    m.survey()
    m.engine.lie = "refuse"
    m.want({SMALL: 1, LARGE: 1})
    m.perform()
    status = pool_status(m.world, POOL)
    assert status is not None
    assert status.groups[SMALL].error == "cannot: refuse"
    assert status.groups[LARGE].error is None
    assert len(m.engine.things) == 1
    assert m.pool.errors[SMALL].retry_at == m.mono + 5
    m.engine.lie = "refuse"
    m.advance(6.0)
    m.perform()
    assert m.pool.errors[SMALL].retry_at == m.mono + 10
    m.advance(11.0)
    m.perform()
    assert len(m.engine.things) == 2
    assert not m.pool.errors


def test_a_submission_whose_answer_was_lost_is_found_by_name_and_not_repeated() -> None:
    m = PoolMachine(max_runners=3)
    m.survey()
    m.engine.lie = "lose"
    m.want({SMALL: 3})
    m.perform()
    assert {each.state for each in m.pool.intents.values()} == {RunnerState.UNKNOWN}
    m.settle()
    assert len(m.engine.submitted) == 1
    assert len(m.engine.things) == 3
    assert all(each.engine_id for each in m.pool.intents.values())


def test_unknown_runners_count_until_surveys_have_missed_them_long_enough() -> None:
    m = PoolMachine(max_runners=2)
    m.survey()
    m.engine.lie = "fail"
    m.want({SMALL: 2})
    m.perform()
    for _ in range(2):
        m.survey()
        m.advance(11.0)
        m.perform()
        assert len(m.engine.submitted) == 1
    m.settle()
    assert len(m.engine.things) == 2


def test_what_appears_after_it_was_given_up_is_withdrawn() -> None:
    m = PoolMachine(max_runners=2)
    m.survey()
    m.engine.lie = "late"
    m.want({SMALL: 2})
    m.perform()
    m.settle()
    assert len(m.engine.things) == 2
    for name in m.engine.late:
        assert not m.join(m.engine.make(name)), "its ticket is not valid any more"
        m.engine.make(name)
    m.settle(2)
    assert len(m.engine.things) == 2
    assert not m.names() & set(m.engine.late)


def test_an_engine_that_claims_is_asked_again() -> None:
    m = PoolMachine()
    m.survey()
    m.engine.lie = "claim"
    m.want({SMALL: 2})
    m.settle()
    assert len(m.engine.things) == 2


def test_what_the_engine_lost_is_asked_for_again() -> None:
    m = up(3)
    m.survey()
    m.engine.things.pop("e1")
    m.settle()
    assert len(m.engine.things) == 3


def test_a_connected_runner_exists_although_the_engine_forgot_it() -> None:
    m = up(3)
    m.start_things()
    m.engine.forgotten = {"e1", "e2", "e3"}
    m.settle()
    assert len(m.engine.submitted) == 1
    assert len(m.runners) == 3


def test_of_two_with_one_name_the_waiting_one_is_withdrawn_and_only_one_can_join() -> None:
    m = PoolMachine(max_runners=4)
    m.survey()
    m.engine.lie = "twice"
    m.want({SMALL: 2})
    m.perform()
    assert len(m.engine.things) == 4
    m.survey()
    m.perform()
    assert len(m.engine.things) == 2
    m.engine.make(next(iter(m.names())))
    m.start_things()
    assert len(m.runners) == 2


def test_a_surveyed_stranger_with_our_name_is_withdrawn_and_counts_until_then() -> None:
    m = PoolMachine(max_runners=2)
    m.engine.make("rota-x-old")
    m.want({SMALL: 2})
    m.survey()
    assert len(m.pool.strays) == 1
    m.perform()
    m.settle()
    assert m.engine.most == 2
    assert len(m.engine.things) == 2
    assert "rota-x-old" not in m.names()


def test_a_runner_that_is_started_and_does_not_join_is_replaced() -> None:
    m = up(1)
    m.engine.things["e1"].running = True
    m.survey()
    m.advance(601.0)
    m.survey()
    assert "did not join within 600 s" in m.pool.errors[SMALL].error
    m.perform()
    m.settle()
    assert set(m.engine.things) == {"e2"}


def test_an_allocation_that_its_runner_has_left_is_withdrawn() -> None:
    m = up(1)
    m.start_things()
    (runner,) = m.runners
    del m.runners[runner]
    m.happened(RunnerParted(runner=runner))
    m.want({})
    m.settle()
    assert not m.engine.things
    assert not m.pool.intents


def test_while_surveys_fail_nothing_is_gone() -> None:
    m = up(3)
    m.survey()
    m.engine.deaf = True
    m.settle()
    assert len(m.pool.intents) == 3
    status = pool_status(m.world, POOL)
    assert status is not None
    assert status.error == "deaf"
    m.engine.deaf = False
    m.settle()
    assert len(m.engine.submitted) == 1


@pytest.mark.parametrize("steps", range(4))
def test_a_crash_after_any_step_of_a_submission_leaves_what_is_wanted(steps: int) -> None:
    """Blanks made, intents on disk, engine asked, ids on disk."""
    m = PoolMachine(max_runners=3)
    m.survey()
    m.want({SMALL: 3})
    m.perform(most=steps)
    m.crash()
    m.settle()
    assert len(m.engine.things) == 3
    assert m.engine.most == 3
    assert len(m.store.load().intents) == 3


def test_a_crash_between_the_engine_s_answer_and_its_commit_makes_no_second_set() -> None:
    m = PoolMachine(max_runners=3)
    m.survey()
    m.want({SMALL: 3})
    m.perform(most=1)  # names and tickets
    (submit,) = [each for each in m.queue if type(each).__name__ == "SubmitRunners"]
    for name in submit.names:  # type: ignore[attr-defined]
        m.engine.make(name)
    m.crash()
    m.settle()
    assert m.engine.submitted == []
    assert len(m.engine.things) == 3
    assert all(each.engine_id for each in m.pool.intents.values())


def test_a_crash_in_a_withdrawal_is_made_good() -> None:
    m = up(3)
    m.survey()
    m.want({})
    m.crash()
    assert all(each.withdrawn for each in m.pool.intents.values())
    m.settle()
    assert not m.engine.things
    assert not m.pool.intents


def test_a_withdrawn_ticket_stays_withdrawn_over_a_crash_and_new_demand() -> None:
    m = up(2)
    m.survey()
    m.want({})
    old = set(m.pool.intents)
    m.wanted = {SMALL: 2}
    m.crash()
    assert all(m.pools.intents[name].withdrawn for name in old)
    assert not m.join("e1")
    m.settle()
    assert len(m.engine.things) == 2
    assert not m.names() & old


def test_runners_survive_a_crash_of_the_manager_and_keep_their_tickets() -> None:
    m = up(3)
    m.start_things()
    m.crash()
    assert len(m.runners) == 3
    m.settle()
    assert len(m.engine.submitted) == 1
    assert len(m.engine.things) == 3


def test_runners_of_the_original_of_a_copied_home_are_forgotten_and_not_withdrawn() -> None:
    m = up(3)
    m.survey()
    things = dict(m.engine.things)
    m.boot()
    m.pools.configure({POOL: m.rules}, prefix="rota-y-")
    m.engine.things = {}  # surveys of the copy show its own names only
    m.want({})
    assert m.store.load().intents == []
    m.engine.things = things
    m.perform()
    assert len(m.engine.things) == 3


def test_a_pool_that_is_no_longer_configured_gets_no_more_runners() -> None:
    m = up(3)
    m.pools.configure({})
    m.want({SMALL: 5})
    m.perform()
    assert len(m.engine.submitted) == 1
    assert all(each.withdrawn for each in m.pool.intents.values())
