"""Jobs that force a host: its condition does not matter, people who use it and a missing agent do."""

from __future__ import annotations

import pytest

from rota.core.states import State
from tests.core.machine import Entry, Machine, spec
from tests.core.machines.test_machine_conditions import give_back, lab, put, reserve
from tests.core.test_planned import add


def state(m: Machine, job: int) -> State:
    return m.world.jobs[job].state


@pytest.mark.parametrize("condition", ["automated", "manual", "broken"])
def test_a_forced_machine_is_taken_whatever_its_condition(condition: str) -> None:
    m = lab(2)
    put(m, condition=condition)
    job = add(m, force_host="h1")
    m.pump()
    assert state(m, job) is State.RUNNING
    lease = m.world.jobs[job].lease
    assert lease is not None
    assert m.world.runners[lease.runner].host == "h1"


def test_a_removed_machine_is_never_forced() -> None:
    m = lab(2)
    put(m, condition="removed")
    job = add(m, force_host="h1", allow_unsatisfiable=True)
    m.pump()
    assert state(m, job) is State.READY


def test_a_forced_job_waits_for_a_manual_user() -> None:
    m = lab(2)
    reserve(m)
    job = add(m, force_host="h1")
    m.pump()
    assert state(m, job) is State.READY
    give_back(m)
    assert state(m, job) is State.RUNNING


def test_a_member_of_a_gang_may_force_a_broken_machine() -> None:
    m = lab(2)
    put(m, condition="broken")
    entries = [
        Entry("run a", spec(gang="g", name="a", force_host="h1")),
        Entry("run b", spec(gang="g", name="b")),
    ]
    jobs = m.answer(m.send_chunk(entries, fresh=True)).added
    m.pump()
    assert [state(m, job) for job in jobs] == [State.RUNNING] * 2
