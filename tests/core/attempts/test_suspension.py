"""Suspend, resume and other walltimes in the engine: examples, and random histories with everything else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from rota.core import effects as e
from rota.core.jobs.outcome import Outcome
from rota.core.states import State
from rota.errors import BadInput
from rota.plan.size import Size
from tests.core.machine import LOST_AFTER_S, Entry, Machine, spec
from tests.core.test_planned_properties import PlannedHistories
from tests.core.test_properties import numbers
from tests.dose import half, histories

WHOLE = Size(cpus=400, time_s=600.0)


def machine(*, runner: bool = True) -> Machine:
    made = Machine()
    if runner:
        made.with_runner()
    return made


def wait(m: Machine, seconds: float) -> None:
    """Time passes, and all runners are heard meanwhile."""
    while seconds > 0:
        m.advance(min(seconds, 50.0))
        seconds -= 50.0
        for model in m.runners.values():
            model.report()
        m.pump()


def test_a_suspended_job_lets_others_have_its_cores_and_comes_back_to_them() -> None:
    m = machine()
    m.add("first", "second", size=WHOLE, walltime_s=600.0)
    assert m.states(1, 2) == [State.RUNNING, State.READY]
    wait(m, 100)
    assert m.do("suspend", 1).changed == [1]
    assert m.states(1, 2) == [State.SUSPENDED, State.RUNNING]
    wait(m, 50)
    m.do("resume", 1)
    assert m.state(1) is State.SUSPENDED
    reason = m.world.jobs[1].reason
    assert reason is not None
    assert reason.code == "resuming"
    m.end(2)
    assert m.state(1) is State.RUNNING
    wait(m, 10)
    m.end(1)
    assert m.states(1, 2) == [State.COMPLETE, State.COMPLETE]
    assert m.world.placement.planner is None, "nobody needs a plan any more"


def test_a_job_that_keeps_its_cores_goes_on_at_once() -> None:
    m = machine()
    m.add("first", "second", size=WHOLE)
    m.do("suspend", 1, keep=True)
    assert m.states(1, 2) == [State.SUSPENDED, State.READY]
    m.do("resume", 1)
    assert m.states(1, 2) == [State.RUNNING, State.READY]


def test_suspended_time_is_not_used_time() -> None:
    m = machine()
    m.add("a", size=WHOLE)
    wait(m, 100)
    m.do("suspend", 1)
    wait(m, 1000)
    m.do("resume", 1)
    wait(m, 60)
    m.end(1)
    used = sum(row.sums.used for row in m.store.accounts(first=0, end=1 << 40).rows)
    assert used == 4 * 160 * 1_000_000


def test_what_was_suspended_and_asked_to_resume_survives_a_restart() -> None:
    m = machine()
    m.add("first", "second", "third", size=WHOLE)
    m.do("suspend", 1)
    assert m.states(1, 2) == [State.SUSPENDED, State.RUNNING]
    m.do("resume", 1)
    m.crash()
    assert m.state(1) is State.SUSPENDED
    m.heal()
    m.end(2)
    assert m.states(1, 3) == [State.RUNNING, State.READY], "it was submitted first"


def test_a_restart_between_the_wish_and_the_deed_forgets_neither() -> None:
    m = machine()
    m.add("first", "second", size=WHOLE)
    m.act("suspend", 1)
    m.commit(perform=False)
    m.crash()
    m.heal()
    assert m.states(1, 2) == [State.SUSPENDED, State.RUNNING]


def test_a_lost_job_is_suspended_again_when_its_runner_is_back() -> None:
    m = machine()
    m.add("first", size=WHOLE)
    m.do("suspend", 1)
    (model,) = m.runners.values()
    m.disconnect(model)
    m.advance(LOST_AFTER_S + 1)
    assert m.state(1) is State.LOST
    m.heal()
    assert m.state(1) is State.SUSPENDED
    m.do("resume", 1)
    assert m.state(1) is State.RUNNING


def test_a_suspended_job_can_be_killed_also_while_it_waits_to_resume() -> None:
    m = machine()
    m.add("first", "second", size=WHOLE)
    m.do("suspend", 1)
    m.do("resume", 1)
    m.do("kill", 1)
    assert m.states(1, 2) == [State.CANCELLED, State.RUNNING]


def test_a_suspend_that_is_taken_back_in_time_leaves_it_running() -> None:
    m = machine()
    m.add("first", "second", size=WHOLE)
    m.act("suspend", 1)
    m.act("resume", 1)
    m.pump()
    assert m.states(1, 2) == [State.RUNNING, State.READY]


def test_more_walltime_is_granted_as_far_as_it_can_be_and_the_rest_later() -> None:
    m = machine()
    m.add("first", size=WHOLE, walltime_s=600.0, queue="admin")
    m.add("second", size=WHOLE, walltime_s=600.0, queue="admin")
    wait(m, 100)
    done = m.answer(m.act("walltime", 1, seconds=3600.0, relative=True))
    assert (done.walltime_s, done.pending_s) == (600.0, 3600.0)
    m.crash()
    m.heal()
    m.do("kill", 2)
    wait(m, 1)
    m.pump()
    lease = m.world.jobs[1].lease
    assert lease is not None
    assert lease.given is not None
    assert (lease.given.walltime_s, lease.given.more_s) == (4200.0, 0.0)


def test_the_runner_is_told_of_another_walltime_again_when_it_joins() -> None:
    m = machine()
    m.add("first", walltime_s=600.0)
    m.do("walltime", 1, seconds=1200.0)
    (model,) = m.runners.values()
    m.disconnect(model)
    m.join(model)
    assert m.committing is not None
    effects = [*m.committing.effects, *m.open.effects]
    told = [effect for effect in effects if isinstance(effect, e.ChangeWalltime)]
    assert [effect.walltime_s for effect in told] == [1200.0]


def test_only_running_jobs_get_another_walltime_and_none_that_is_over_already() -> None:
    m = machine(runner=False)
    m.add("first", walltime_s=600.0)
    with pytest.raises(BadInput, match="is ready, not running"):
        m.do("walltime", 1, seconds=60.0, relative=True)
    m.with_runner()
    wait(m, 100)
    with pytest.raises(BadInput, match="has run for"):
        m.do("walltime", 1, seconds=-550.0, relative=True)


LOW: dict[str, Any] = {
    "request": ("core=4",),
    "types": ("besteffort",),
    "queue": "besteffort",
    "checkpoint_s": 60.0,
    "signal": "USR1",
}


def watch_kills(m: Machine) -> list[e.KillAttempts]:
    """All kills that are sent from now on."""
    told: list[e.KillAttempts] = []
    perform = m._perform

    def watch(effect: e.Effect) -> None:
        if isinstance(effect, e.KillAttempts):
            told.append(effect)
        perform(effect)

    m._perform = watch  # type: ignore[method-assign]
    return told


def test_a_checkpoint_is_asked_for_before_a_job_is_ended_for_another() -> None:
    m = machine()
    m.add("low", **LOW)
    told = watch_kills(m)
    m.add("high", request=("core=4",))
    assert [effect.checkpoint for effect in told] == ["USR1"]


def test_a_checkpoint_is_asked_for_although_the_start_was_not_reported_yet() -> None:
    m = machine()
    (model,) = m.runners.values()
    m.send_chunk([Entry("low", spec(**LOW))])
    m.commit()
    model.deliver()  # it starts the job, and its report is on the way
    assert m.state(1) is State.SCHEDULED
    assert 1 in m.witness.running
    told = watch_kills(m)
    m.send_chunk([Entry("high", spec(request=("core=4",)))])
    m.commit()
    assert [effect.checkpoint for effect in told] == ["USR1"]


@pytest.mark.parametrize("crash", [False, True])
def test_a_checkpoint_is_asked_for_when_the_runner_comes_back(crash: bool) -> None:
    m = machine()
    m.add("low", **LOW)
    (model,) = m.runners.values()
    m.send_chunk([Entry("high", spec(request=("core=4",)))])
    if crash:
        m.commit(perform=False)
        m.crash()
    model.disconnect()  # before it is told
    m.pump()
    told = watch_kills(m)
    m.join(model)
    m.pump()
    assert [effect.checkpoint for effect in told] == ["USR1"]


class SuspendedHistories(PlannedHistories):
    """To all that happens there, jobs are suspended and resumed, and get other walltimes."""

    @rule(picks=st.lists(numbers, min_size=1, max_size=3), keep=st.booleans())
    def suspend(self, picks: list[int], keep: bool) -> None:
        self.m.act("suspend", *self._jobs(picks, State.RUNNING), keep=keep)

    @rule(picks=st.lists(numbers, min_size=1, max_size=3))
    def suspend_everywhere(self, picks: list[int]) -> None:
        self.m.act("suspend", *self._jobs(picks, State.RUNNING))
        self.m.pump()

    @rule(picks=st.lists(numbers, min_size=1, max_size=3))
    def resume(self, picks: list[int]) -> None:
        self.m.act("resume", *self._jobs(picks, State.SUSPENDED))

    @rule(pick=numbers, seconds=st.sampled_from([-100.0, 60.0, 5000.0]), force=st.booleans())
    def change_walltime(self, pick: int, seconds: float, force: bool) -> None:
        self.m.act("walltime", *self._jobs([pick], State.RUNNING), seconds=seconds, relative=True, force=force)

    def lift(self) -> None:
        super().lift()
        self.m.pump()
        self.m.act("resume", *[job.id for job in self.m.world.jobs.values() if job.state is State.SUSPENDED])
        self.m.pump()


def test_what_a_suspended_job_gives_up_goes_first_to_jobs_that_the_plan_had_no_core_for() -> None:
    m = machine()
    (big,) = m.add("big", size=Size(cpus=250, time_s=600.0)).added
    # Without a plan they are packed beside it; the plan gives whole cores to `big` and has none for the third.
    halves = m.add("a", "b", "c", size=Size(cpus=50, time_s=600.0), fresh=True).added
    (opens,) = m.add("opens the plan", size=Size(cpus=0, time_s=600.0)).added
    m.do("suspend", opens)
    later = m.add("d", "e", "f", "g", size=Size(cpus=100, time_s=600.0), fresh=True).added
    assert sorted(m.running()) == [big, *halves, opens]
    m.do("suspend", big)
    assert len(m.running().keys() & set(later)) == 2


def test_an_attempt_that_ends_while_it_is_suspended_is_recorded_as_it_ended() -> None:
    m = machine()
    m.add("first", size=WHOLE)
    m.do("suspend", 1)
    wait(m, 100)
    m.end(1, Outcome(signal=9, started_at=1000.0, ended_at=m.wall))
    assert m.state(1) is State.FAILED


def test_a_part_that_is_frozen_after_its_job_has_ended_is_closed() -> None:
    m = Machine(cpus=100, hosts=2)
    for host in m.capacity:
        m.join(m.start_runner(host))
    (job,) = m.add("wide", request=("nodes=2",)).added
    first, seat = m.running()[job]
    (other,) = [model for model in m.runners.values() if model.parts]
    m.act("suspend", job)
    m.commit()
    first.end(seat, Outcome(exit_code=0, started_at=m.wall, ended_at=m.wall), m.wall)
    first.report()
    m.hear(first)
    other.deliver()  # before it hears that the job has ended
    other.report()
    m.hear(other)
    assert m.state(job) is State.FINISHING
    m.pump()
    assert m.state(job) is State.COMPLETE


TestSuspendedHistories = SuspendedHistories.TestCase
TestSuspendedHistories.settings = histories(half(60), steps=50)
