"""Runners with tickets, as the engine sees them: to whom a ticket belongs, and how long its runner gets jobs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rota.core.effects import DismissRunner
from rota.core.events import TicketClaim
from rota.core.feature import Features
from rota.core.features import BUILT_IN
from rota.core.machines.allocations import Allocations
from rota.core.machines.ticket_grants import TicketGrant
from rota.core.states import State
from rota.plan.need import Need
from rota.plan.size import Capacity, Size
from tests.core.machine import GIB, Machine
from tests.core.runners import ModelRunner
from tests.pools.granting import ENGINE, Granted, GrantMade

SIZE = Size(cpus=100, mem=GIB, time_s=60.0)
HOST = "test-1"


def manager(hosts: int = 0) -> Machine:
    machine = Machine(hosts=hosts, features=Features((*BUILT_IN.all, ENGINE)))
    machine.witness._capacity = {**machine.capacity, HOST: Capacity(cpus=100, mem=GIB, disk=0)}
    grant(machine)
    return machine


def grant(m: Machine, **changes: Any) -> None:
    made = TicketGrant(**{"name": HOST, "pool": "test", "need": Need(SIZE)} | changes)
    m.happened(GrantMade(by=m.asker(), ticket="t", grant=made))
    m.pump()


def join(m: Machine, model: ModelRunner, *, key: str = "k", left_s: float | None = None) -> None:
    claim = TicketClaim(ticket="t", key=key)
    m.happened(msgspec.structs.replace(model.join(), claim=claim, left_s=left_s, machine="cn042"))


def dismissed(m: Machine) -> list[str]:
    """Runners that are sent away by the batch that waits for the disk."""
    effects = m.committing.effects if m.committing is not None else []
    return [each.runner for each in effects if isinstance(each, DismissRunner)]


def test_a_runner_gets_jobs_of_its_need_only() -> None:
    m = manager()
    fits, larger = m.add("a", size=SIZE).added[0], m.add("b", size=Size(cpus=100, mem=2 * GIB)).added[0]
    model = m.start_runner(HOST)
    join(m, model)
    m.pump()
    assert m.states(fits, larger) == [State.RUNNING, State.READY]
    runner = m.world.runners[model.id]
    assert (runner.host, runner.pool, runner.machine, runner.made_for) == (HOST, "test", "cn042", Need(SIZE))
    m.end(fits)
    assert m.state(larger) is State.READY


def test_a_ticket_of_another_runner_changes_nothing() -> None:
    m = manager()
    first, second = m.start_runner(HOST), m.start_runner(HOST)
    join(m, first)
    join(m, second, key="other")
    m.pump()
    assert [error.code for error in m.refused] == ["ticket"]
    assert list(m.world.runners) == [first.id]
    assert m.world.use(Granted).all["t"].key == "k"


def test_no_job_is_given_that_would_not_end_in_time() -> None:
    m = manager()
    first, second = (m.add(name, size=SIZE).added[0] for name in "ab")
    model = m.start_runner(HOST)
    join(m, model, left_s=100.0)
    m.pump()
    assert m.state(first) is State.RUNNING
    m.advance(30.0)  # 70 s are left, and a job takes 60
    m.end(first)
    assert m.state(second) is State.RUNNING
    third = m.add("c", size=SIZE).added[0]
    m.advance(20.0)
    m.end(second)
    assert m.state(third) is State.READY
    assert not m.running()


def test_a_job_with_a_walltime_must_have_time_for_it() -> None:
    m = manager()
    grant(m, need=Need(SIZE, walltime_s=300.0))
    job = m.add("a", size=SIZE, walltime_s=300.0).added[0]
    late, early = m.start_runner(HOST), m.start_runner(HOST)
    join(m, late, left_s=299.0)
    assert dismissed(m) == [late.id]
    m.pump()
    m.disconnect(late)
    m.pump()
    assert m.state(job) is State.READY
    join(m, early, left_s=301.0)
    m.pump()
    assert m.state(job) is State.RUNNING


def test_an_idle_runner_is_sent_away_when_its_time_is_too_short() -> None:
    m = manager()
    model = m.start_runner(HOST)
    join(m, model, left_s=100.0)
    m.pump()
    m.advance(39.0)
    assert dismissed(m) == []
    m.pump()
    m.advance(2.0)
    assert dismissed(m) == [model.id]
    m.pump()
    m.disconnect(model)
    m.advance(1.0)
    state = m.world.use(Allocations)
    assert not state.ends_at
    assert not state.closed


@pytest.mark.parametrize("left_s", [59.0, 0.0, -5.0])
def test_a_runner_that_comes_too_late_is_sent_away_at_once(left_s: float) -> None:
    m = manager()
    job = m.add("a", size=SIZE).added[0]
    model = m.start_runner(HOST)
    join(m, model, left_s=left_s)
    assert dismissed(m) == [model.id]
    m.pump()
    assert m.state(job) is State.READY


def test_a_runner_that_is_no_longer_wanted_finishes_its_job_and_gets_no_other() -> None:
    m = manager()
    first, second = (m.add(name, size=SIZE).added[0] for name in "ab")
    model = m.start_runner(HOST)
    join(m, model)
    m.pump()
    grant(m, key="k", valid=False)
    m.disconnect(model)
    m.pump()
    join(m, model)
    assert dismissed(m) == []
    m.pump()
    assert m.state(first) is State.RUNNING
    m.end(first)
    assert m.states(first, second) == [State.COMPLETE, State.READY]


def test_after_a_crash_a_job_is_where_it_was_and_not_on_the_host_of_the_manager() -> None:
    m = manager(hosts=1)
    need = Need(SIZE)
    job = m.add("a", size=SIZE).added[0]
    model = m.start_runner(HOST)
    join(m, model)
    m.pump()
    assert m.state(job) is State.RUNNING
    m.crash()
    runner = m.world.runners[model.id]
    assert (runner.host, runner.pool, runner.made_for) == (HOST, "test", need)
    join(m, model)
    m.pump()
    m.end(job)
    assert m.state(job) is State.COMPLETE
