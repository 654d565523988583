"""Jobs that begin at a moment at the earliest: what waits for them on idle cores, and that they begin then."""

from __future__ import annotations

from typing import Any

import pytest

from rota.core.jobs.explain import why
from rota.core.states import State
from rota.plan.size import Size
from tests.core.jobs.test_modification import modify
from tests.core.machine import Machine

DELAY_S = 200.0


@pytest.fixture
def m() -> Machine:
    """Two hosts of two cores, and their runners."""
    machine = Machine(cpus=200, hosts=2)
    for host in machine.capacity:
        machine.join(machine.start_runner(host))
    machine.pump()
    return machine


def whole_site_later(m: Machine) -> int:
    (job,) = m.add("everywhere", fresh=True, **terms(m)).added
    return job


def terms(m: Machine) -> dict[str, Any]:
    """A request for all cores, not before a moment, and before what is as old."""
    return {
        "request": ("core=ALL,walltime=0:1:0",),
        "types": (f"postpone={m.wall + DELAY_S:.0f}",),
        "priority": 5,
    }


def plain(m: Machine, *, time_s: float) -> int:
    (job,) = m.add("true", fresh=True, size=Size(time_s=time_s)).added
    return job


def comes_due(m: Machine) -> None:
    m.advance(DELAY_S + 1.0)
    m.pump()


def test_idle_cores_are_kept_for_a_postponed_job_from_those_after_it_that_would_not_be_over(m: Machine) -> None:
    postponed = whole_site_later(m)
    long, short = plain(m, time_s=3600.0), plain(m, time_s=60.0)
    assert set(m.running()) == {short}
    m.end(short)
    assert not m.running()
    assert m.engine.next_due() == m.wall + DELAY_S
    (reason,) = why(m.world, m.world.jobs[long], wall=m.wall)
    assert reason.blockers == [postponed]
    comes_due(m)
    assert set(m.running()) == {postponed}
    m.end(postponed)
    assert set(m.running()) == {long}


def test_a_job_that_goes_before_a_postponed_one_does_not_wait_for_it(m: Machine) -> None:
    whole_site_later(m)
    (urgent,) = m.add("urgent", fresh=True, priority=10, size=Size(time_s=3600.0)).added
    assert set(m.running()) == {urgent}


def test_who_becomes_postponed_begins_in_time_though_a_runner_died_meanwhile(m: Machine) -> None:
    inner, changed = m.add("in a box", "in it too", fresh=True, types=("inner=box",)).added
    modify(m, changed, **terms(m))
    long = plain(m, time_s=3600.0)
    m.die(next(model for model in m.runners.values() if model.host == "h2"))
    m.heal()
    assert not m.running()
    comes_due(m)
    assert set(m.running()) == {changed}
    m.end(changed)
    assert set(m.running()) == {long}
    assert m.state(inner) is State.READY


def test_a_postponed_job_begins_when_its_host_comes_back_after_its_time(m: Machine) -> None:
    postponed = whole_site_later(m)
    for model in list(m.runners.values()):
        m.die(model)
    comes_due(m)
    assert not m.running()
    m.heal()
    assert set(m.running()) == {postponed}
