"""The engine with another placement: nothing in it depends on the planner."""

from __future__ import annotations

from rota.core.states import State
from rota.plan.need import LimitUse
from rota.plan.placement.decisions import Decision
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


class InPairs(FirstCome):
    """Has jobs begin two at a time, or not at all."""

    def place(self, now: float, wall: float) -> list[Decision]:
        before = dict(self._waits)
        placed = [each for decision in super().place(now, wall) for each in decision]
        if len(placed) % 2:  # the last one has no partner yet
            alone = placed.pop()
            self._waits = {job: before[job] for job in before if job in self._waits or job == alone.job}
            assert alone.seat is not None
            self.close(alone.seat.seat)
        return [tuple(placed[n : n + 2]) for n in range(0, len(placed), 2)]


def test_jobs_of_one_decision_are_leased_in_one_batch_on_all_their_hosts_or_not_at_all() -> None:
    m = Machine(cpus=100, hosts=2, placement=lambda first_seat: InPairs(first_seat=first_seat))
    for host in m.capacity:
        m.join(m.start_runner(host))
    m.pump()
    first, second, third = m.add("a", "b", "c", fresh=True).added
    assert sorted(m.running()) == [first, second]
    assert {m.world.jobs[job].lease.runner for job in (first, second)} == set(m.world.runners)
    m.end(first)
    assert sorted(m.running()) == [second], "there is room for one of the next pair, and none begins"
    m.crash()
    m.heal()
    m.end(second)
    assert m.running() == {}
    assert m.state(third) is State.READY
    (fourth,) = m.add("d", fresh=True).added
    assert sorted(m.running()) == [third, fourth]
    m.run_out()
    assert m.states(first, second, third, fourth) == [State.COMPLETE] * 4
