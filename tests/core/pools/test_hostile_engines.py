"""An engine whose runners are of no use, or that does not do what it is told, is not asked without end."""

from __future__ import annotations

from rota.core.events import RunnerParted
from rota.core.pools.status import pool_status
from tests.core.pools.pool_machine import LARGE, POOL, SMALL, PoolMachine


def asked_within(m: PoolMachine, seconds: float, *, joins: bool) -> int:
    """How often the engine is asked while every runner leaves at once, without a job."""
    end = m.mono + seconds
    while m.mono < end:
        m.survey()
        m.perform()
        for thing in list(m.engine.things.values()):
            thing.running = True
        m.survey()
        for id in list(m.engine.things):
            if joins:
                m.join(id)
            m.end(id, goodbye=joins)
        m.advance(1.0)
    return len(m.engine.submitted)


def test_runners_that_join_and_leave_without_a_job_are_asked_for_less_and_less() -> None:
    m = PoolMachine()
    m.want({SMALL: 3})
    assert asked_within(m, 200.0, joins=True) < 9
    status = pool_status(m.world, POOL)
    assert status is not None
    assert "left without a job" in (status.groups[SMALL].error or "")
    assert not m.pool.intents or len(m.pool.intents) <= 3


def test_runners_that_end_before_they_join_are_asked_for_less_and_less() -> None:
    m = PoolMachine()
    m.want({SMALL: 3})
    assert asked_within(m, 200.0, joins=False) < 9
    status = pool_status(m.world, POOL)
    assert status is not None
    assert "ended before it joined" in (status.groups[SMALL].error or "")


def test_an_engine_that_only_claims_is_asked_less_and_less() -> None:
    m = PoolMachine()
    m.want({SMALL: 2})
    for _ in range(400):
        m.engine.lie = "claim"
        m.survey()
        m.perform()
        m.advance(1.0)
    assert len(m.engine.submitted) < 9
    m.engine.lie = ""
    for _ in range(400):
        m.survey()
        m.perform()
        m.advance(1.0)
    assert len(m.engine.things) == 2


def test_other_groups_do_not_wait_for_one_whose_runners_are_of_no_use() -> None:
    m = PoolMachine()
    m.want({SMALL: 1})
    asked_within(m, 100.0, joins=True)
    m.want({SMALL: 1, LARGE: 1})
    m.perform()
    assert len(m.engine.things) == 1


def test_a_runner_that_comes_when_its_job_has_gone_elsewhere_is_no_failure() -> None:
    m = PoolMachine()
    m.want({SMALL: 2})
    m.survey()
    m.perform()
    m.start_things()
    m.want({})
    for id in list(m.engine.things):
        m.end(id, goodbye=True)
    m.settle(2)
    m.want({SMALL: 1})
    m.perform()
    assert len(m.engine.things) == 1
    assert not m.pool.errors


def test_a_runner_that_worked_is_replaced_at_once() -> None:
    m = PoolMachine()
    m.want({SMALL: 1})
    m.survey()
    m.perform()
    m.start_things()
    (runner,) = m.runners
    m.pools.has_worked(m.world.runners[runner].host)
    (id,) = m.engine.things
    m.end(id, goodbye=True)
    m.happened(RunnerParted(runner=runner))
    m.survey()
    m.perform()
    assert len(m.engine.submitted) == 2


def test_no_other_runner_is_asked_for_at_once_when_one_leaves_without_a_job() -> None:
    m = PoolMachine()
    m.want({SMALL: 1})
    m.survey()
    m.perform()
    m.start_things()
    (id,) = m.engine.things
    m.end(id, goodbye=True)
    m.perform()
    assert len(m.engine.submitted) == 1
