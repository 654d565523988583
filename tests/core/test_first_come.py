"""The engine with another placement: nothing in it depends on the planner."""

from __future__ import annotations

from rota.core.states import State
from rota.plan.need import LimitUse
from tests.core.machine import Machine
from tests.plan.first_come import FirstCome


def machine() -> Machine:
    made = Machine(cpus=200, hosts=2, placement=lambda first_seat: FirstCome(first_seat=first_seat))
    for host in made.capacity:
        made.join(made.start_runner(host))
    made.pump()
    return made


def test_jobs_run_one_a_core_in_the_order_in_which_they_came() -> None:
    m = machine()
    jobs = m.add(*(f"true {n}" for n in range(6)), fresh=True).added
    assert sorted(m.running()) == jobs[:4]
    m.end(jobs[0])
    assert sorted(m.running()) == jobs[1:5]
    m.run_out()
    assert m.states(*jobs) == [State.COMPLETE] * 6


def test_dependencies_limits_retries_kills_and_a_crash_are_the_engines_own() -> None:
    m = machine()
    alone = m.add("a", "b", "c", fresh=True, limits=(LimitUse("x", exclusive=True),), retries=1).added
    m.crash()
    m.heal()
    assert len(m.running()) <= 4
    (killed,) = m.add("z", fresh=True).added
    m.do("kill", killed)
    for job in list(m.running()):
        m.end(job, exit_code=1)
    m.heal()
    m.run_out()
    assert m.state(killed) is State.CANCELLED
    assert m.states(*alone) == [State.COMPLETE] * 3
