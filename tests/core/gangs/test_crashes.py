"""A gang after kill -9 of the manager, before and after every commit: whole or nothing."""

from __future__ import annotations

import pytest

from rota.core.jobs.outcome import Outcome
from rota.core.states import LEASED, State
from tests.core.gangs.lab import add, lab, send
from tests.core.machine import Machine

ENDS = (State.COMPLETE, State.FAILED, State.CANCELLED)


def whole(m: Machine, *ids: int) -> None:
    """All members hold something, or none does."""
    held = [id for id in ids if m.state(id) in LEASED]
    assert len(held) in (0, len(ids)), m.states(*ids)


def deliver_in_turn(m: Machine, steps: int) -> None:
    """Commit, and let one runner after the other hear one message and answer."""
    for step in range(steps):
        m.commit()
        runner = list(m.runners.values())[step % 2]
        runner.deliver(1)
        runner.report()
        m.hear(runner, 1)


@pytest.mark.parametrize("steps", range(8))
@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("retries", [0, 2])
def test_a_crash_while_a_gang_is_placed(steps: int, durable: bool, retries: int) -> None:
    m = lab(2)
    send(m, "web", "db", retries=retries)
    runners = list(m.runners.values())
    for step in range(steps):  # one message or commit at a time
        runner = runners[step % 2]
        if step % 3 == 0:
            m.commit()
        elif runner.incoming:
            runner.deliver(1)
        else:
            runner.report()
            m.hear(runner, 1)
    if durable:
        m.commit(perform=False)
    m.crash()
    m.heal()
    if m.world.next_job > 1:
        whole(m, 1, 2)
        m.run_out()
        assert all(state in ENDS for state in m.states(1, 2))
        assert len(set(m.states(1, 2))) == 1, "one outcome for all"


@pytest.mark.parametrize("policy", ["kill", "retry"])
@pytest.mark.parametrize("steps", range(6))
def test_a_crash_while_a_gang_is_released(policy: str, steps: int) -> None:
    m = lab(2)
    web, db = add(m, "web", "db", on_member_failure=policy, retries=1)
    model, seat = m.running()[web]
    started = model.busy[seat].started_at
    model.end(seat, Outcome(exit_code=1, started_at=started, ended_at=m.wall), m.wall)
    model.report()
    m.hear(model)
    deliver_in_turn(m, steps)
    m.crash()
    m.heal()
    m.run_out()
    assert m.states(web, db) == [State.FAILED if policy == "kill" else State.COMPLETE] * 2


def test_abba_one_of_two_gangs_starts_whole_and_then_the_other() -> None:
    m = lab(2)
    (other,) = m.add("other", where="host = 'h1'").added
    first = add(m, "a", "b", gang="g1")
    second = add(m, "a", "b", gang="g2", priority=9)
    m.end(other)
    assert m.states(*second) == [State.RUNNING] * 2
    assert m.states(*first) == [State.READY] * 2
    for id in second:
        m.end(id)
    assert m.states(*first) == [State.RUNNING] * 2


@pytest.mark.parametrize("steps", range(6))
def test_a_cancel_racing_with_placement_leaves_nothing_held(steps: int) -> None:
    m = lab(2)
    send(m, "web", "db")
    deliver_in_turn(m, steps)
    m.do("kill", 2)
    assert m.state(2) is State.CANCELLED
    assert m.state(1) in (State.CANCELLED, State.FAILED)
    assert not m.running()
    assert not [job for job in m.world.jobs.values() if job.lease is not None]
