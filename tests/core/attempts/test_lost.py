"""Lost jobs, sentence by sentence: silence is not death, only proof ends an attempt, retries decide then."""

from __future__ import annotations

import pytest

from rota.core import effects as e
from rota.core import events
from rota.core.attempts.leases import LeaseRef
from rota.core.jobs.outcome import Outcome
from rota.core.machines.runners import ORPHAN_MARGIN_S
from rota.core.states import State
from rota.plan.size import Size
from tests.core.machine import GIB, Entry, Machine, spec
from tests.core.runners import ModelRunner

S = State
WHOLE = Size(cpus=400)
WEEK_S = 7 * 86400.0


@pytest.fixture
def m() -> Machine:
    """A manager and one host with four cores and a runner."""
    machine = Machine()
    machine.with_runner()
    return machine


def runner(m: Machine) -> ModelRunner:
    return next(model for model in m.runners.values() if not model.dead)


def touch(m: Machine) -> None:
    runner(m).report()
    m.pump()


def outcomes(m: Machine, job: int) -> list[tuple[str | None, str | None]]:
    """How each attempt is recorded: its outcome and the reason."""
    return [(row.outcome, row.reason_code) for row in m.store.attempts(job)]


def lost(m: Machine, **fields: object) -> int:
    """A job that runs, at a runner that has been silent for a minute."""
    (id,) = m.add("work", **fields).added
    m.advance(61)
    m.pump()
    assert m.state(id) is S.LOST
    return id


def reboot(m: Machine, model: ModelRunner) -> None:
    """The machine was restarted: nothing runs, and the end of the journal may be missing."""
    m.die(model)
    for busy in model.busy.values():
        m.witness.end(*busy.grant.lease[:2], ok=False)
    model.busy.clear()
    m.settle(model, whole=False)


# ------------------------------------------------------------------ the countdown


def test_a_runner_that_touches_every_15_s_never_loses_its_job(m: Machine) -> None:
    (id,) = m.add("a").added
    for _quarter in range(40):
        m.advance(15)
        assert m.state(id) is S.RUNNING
        touch(m)


def test_a_job_is_lost_after_60_s_of_silence_and_not_before(m: Machine) -> None:
    (id,) = m.add("a").added
    m.advance(60)
    assert m.state(id) is S.RUNNING
    m.advance(0.1)
    assert m.state(id) is S.LOST


def test_any_report_begins_the_countdown_anew(m: Machine) -> None:
    long, short = m.add("long", "short").added
    m.advance(50)
    m.end(short)
    m.advance(50)
    assert m.state(long) is S.RUNNING


def test_a_jump_of_the_wall_clock_loses_nothing(m: Machine) -> None:
    (id,) = m.add("a").added
    for jump in (10 * 365 * 86400.0, -20 * 365 * 86400.0):
        m.wall += jump
        m.advance(30)
        assert m.state(id) is S.RUNNING
        touch(m)


def test_a_wall_clock_that_is_set_back_does_not_hide_a_silence(m: Machine) -> None:
    (id,) = m.add("a").added
    m.wall -= 86400.0
    m.advance(61)
    assert m.state(id) is S.LOST


def test_a_delay_is_over_even_if_the_wall_clock_is_set_back_by_years(m: Machine) -> None:
    (id,) = m.add("a", retries=1).added
    m.end(id, exit_code=1)
    m.wall -= 20 * 365 * 86400.0
    m.crash()
    m.heal()
    m.advance(3600)
    m.pump()
    assert m.state(id) is S.RUNNING


def test_silence_loses_a_lease_whether_its_start_was_reported_or_not(m: Machine) -> None:
    model = runner(m)
    m.send_chunk([Entry("unreported", spec())])
    m.commit()
    model.deliver()  # it executes, and nobody knows
    assert m.state(1) is S.SCHEDULED
    m.advance(61)
    m.commit()
    assert m.state(1) is S.LOST
    m.advance(3600)
    assert m.witness.attempts[1] == [1]
    touch(m)
    assert m.state(1) is S.RUNNING


def test_silence_loses_what_is_being_ended(m: Machine) -> None:
    (id,) = m.add("a").added
    m.act("kill", id)
    assert m.state(id) is S.FINISHING
    m.advance(61)
    assert m.state(id) is S.LOST


def test_what_is_known_of_a_lost_job_is_told(m: Machine) -> None:
    id = lost(m)
    row = m.store.jobs([id])[0]
    assert (row.state, row.reason_code) == (S.LOST, "lost")
    assert row.reason_message == "runner r1 on h1 has been silent for 60 s"
    assert ("lost", "runner r1 on h1 has been silent for 60 s") in [
        (event.kind, event.text) for event in m.store.events(id)
    ]


def test_a_runner_that_fell_silent_without_jobs_is_given_none(m: Machine) -> None:
    m.mono += 61
    m.happened(events.TimerFired())
    (id,) = m.add("a").added
    assert m.state(id) is S.READY
    touch(m)
    assert m.state(id) is S.RUNNING


def test_a_manager_that_starts_gives_runners_a_whole_countdown(m: Machine) -> None:
    (id,) = m.add("a").added
    m.advance(59)
    m.crash()
    m.advance(59)
    assert m.state(id) is S.RUNNING
    m.advance(2)
    assert m.state(id) is S.LOST


# ------------------------------------------------------------------ back to ready, and only then


def test_a_lease_that_was_never_sent_goes_back_with_its_retries(m: Machine) -> None:
    m.send_chunk([Entry("a", spec(retries=2))])
    m.commit(perform=False)  # on disk, and then the manager is gone
    m.crash()
    assert m.state(1) is S.SCHEDULED
    m.heal()
    assert m.state(1) is S.RUNNING
    assert m.world.jobs[1].retries_left == 2
    assert outcomes(m, 1) == [("void", None), (None, None)]
    assert m.witness.attempts[1] == [2]


def test_a_lease_that_is_handed_back_goes_back_with_its_retries(m: Machine) -> None:
    m.send_chunk([Entry("a", spec(retries=2))])
    m.commit()
    model = runner(m)
    model.incoming.clear()
    lease = m.world.jobs[1].lease
    model.draft.returned.append(LeaseRef(1, 1, lease.token))  # nothing can be started there now
    m.advance(61)
    assert m.state(1) is S.LOST
    m.pump()
    assert outcomes(m, 1)[0] == ("void", None)
    assert m.world.jobs[1].retries_left == 2


def test_a_lost_lease_proven_unexecuted_goes_back_with_its_retries(m: Machine) -> None:
    """The runner died before it took the lease: its whole journal knows no intent."""
    model = runner(m)
    m.send_chunk([Entry("a", spec(retries=0))])
    m.commit()
    m.die(model)  # with the lease on the wire
    m.advance(61)
    assert m.state(1) is S.LOST
    m.settle(model)
    m.pump()
    assert m.state(1) is S.READY
    assert m.world.jobs[1].tries == 0
    m.heal()
    assert m.state(1) is S.RUNNING
    assert m.witness.attempts[1] == [2]


def test_a_lost_lease_that_its_living_runner_does_not_know_goes_back(m: Machine) -> None:
    model = runner(m)
    m.send_chunk([Entry("a", spec(retries=0))])
    m.commit()
    m.disconnect(model)  # with the lease on the wire
    m.advance(61)
    m.pump()
    assert m.state(1) is S.LOST
    m.join(model)
    m.pump()
    assert m.state(1) is S.RUNNING
    assert m.world.jobs[1].tries == 0
    assert m.witness.attempts[1] == [2]


def test_an_unexecuted_lease_gives_its_room_back(m: Machine) -> None:
    model = runner(m)
    m.send_chunk([Entry("a", spec(size=WHOLE))])
    m.commit()
    m.disconnect(model)
    m.advance(61)
    m.act("kill", 1)
    (other,) = m.add("b", size=WHOLE).added
    m.join(model)
    m.pump()
    assert m.states(1, other) == [S.CANCELLED, S.RUNNING]


def test_a_damaged_journal_proves_nothing_about_a_lease(m: Machine) -> None:
    model = runner(m)
    m.send_chunk([Entry("a", spec(retries=0))])
    m.commit()
    m.die(model)
    m.settle(model, whole=False)
    m.pump()
    assert m.state(1) is S.FAILED
    assert outcomes(m, 1) == [("failed", "lost")]


# ------------------------------------------------------------------ lost, and possibly alive


@pytest.mark.parametrize("size", [WHOLE, Size(mem=8 * GIB)])
def test_a_lost_job_keeps_its_cores_and_memory(m: Machine, size: Size) -> None:
    id = lost(m, size=size)
    (waits,) = m.add("b", size=size).added
    successor = m.start_runner("h1")  # of the same host: what the lost job has is not its to use
    m.join(successor)
    m.pump()
    m.advance(3600)
    assert m.states(id, waits) == [S.LOST, S.READY]


def test_a_lost_job_keeps_its_room_through_a_restart_of_the_manager(m: Machine) -> None:
    id = lost(m, size=WHOLE)
    (waits,) = m.add("b", size=WHOLE).added
    m.crash()
    m.join(m.start_runner("h1"))
    m.advance(61)
    m.pump()
    assert m.states(id, waits) == [S.LOST, S.READY]


def test_a_lost_job_runs_again_with_a_touch(m: Machine) -> None:
    id = lost(m)
    touch(m)
    assert m.state(id) is S.RUNNING
    assert m.world.jobs[id].reason is None
    assert m.witness.attempts[id] == [1]
    m.end(id)
    assert outcomes(m, id) == [("complete", None)]


def test_a_lost_job_runs_again_when_its_runner_connects_again(m: Machine) -> None:
    id = lost(m)
    m.disconnect(runner(m))
    m.join(runner(m))
    m.pump()
    assert m.state(id) is S.RUNNING


def test_lost_jobs_can_be_lost_and_found_many_times(m: Machine) -> None:
    id = lost(m, retries=0)
    for _time in range(5):
        touch(m)
        assert m.state(id) is S.RUNNING
        m.advance(61)
        assert m.state(id) is S.LOST
    touch(m)
    m.end(id)
    assert m.state(id) is S.COMPLETE
    assert m.witness.attempts[id] == [1]


def test_a_week_of_silence_ends_nothing(m: Machine) -> None:
    id = lost(m, retries=3)
    m.advance(WEEK_S)
    assert m.state(id) is S.LOST
    touch(m)
    assert m.state(id) is S.RUNNING


# ------------------------------------------------------------------ it ends on proof


def test_a_lost_job_ends_when_its_runner_says_so(m: Machine) -> None:
    id = lost(m)
    m.end(id)
    assert m.state(id) is S.COMPLETE
    assert outcomes(m, id) == [("complete", None)]


def test_an_end_reported_twice_is_recorded_once_and_answered_twice(m: Machine) -> None:
    id = lost(m)
    model = runner(m)
    model.end(next(iter(model.busy)), Outcome(exit_code=0, ended_at=m.wall), m.wall)
    model.report()
    (said,) = (event for event in model.outgoing if event.seq)
    m.pump()
    assert model.unacknowledged == []
    m.happened(said)
    assert [effect for effect in m.committing.effects if isinstance(effect, e.AcknowledgeReport)]
    m.pump()
    assert outcomes(m, id) == [("complete", None)]


def test_a_job_that_ended_while_the_manager_was_away_is_recorded_when_it_is_back(m: Machine) -> None:
    (id,) = m.add("a").added
    model = runner(m)
    model.disconnect()
    m.mono += 3600
    m.wall += 3600
    model.end(next(iter(model.busy)), Outcome(exit_code=0, ended_at=m.wall), m.wall)
    m.crash()
    m.join(model)
    m.pump()
    assert m.state(id) is S.COMPLETE
    assert m.store.attempts(id)[0].ended_at == m.wall


def test_a_restart_of_the_machine_ends_a_lost_job_and_its_retries_decide(m: Machine) -> None:
    once, again = m.add("a", retries=0).added + m.add("b", retries=1).added
    m.advance(61)
    reboot(m, runner(m))
    m.pump()
    assert m.states(once, again) == [S.FAILED, S.DELAYED]
    assert outcomes(m, once) == [("failed", "lost")]
    m.heal()
    m.run_out()
    assert m.states(once, again) == [S.FAILED, S.COMPLETE]
    assert (m.witness.attempts[once], m.witness.attempts[again]) == ([1], [1, 2])


def test_a_dead_runner_whose_survivors_are_ended_ends_a_lost_job_and_its_retries_decide(m: Machine) -> None:
    once, again = m.add("a", retries=0).added + m.add("b", retries=1).added
    m.die(runner(m))
    m.advance(61)
    assert m.states(once, again) == [S.LOST, S.LOST]
    m.heal()
    m.run_out()
    assert m.states(once, again) == [S.FAILED, S.COMPLETE]
    assert (m.witness.attempts[once], m.witness.attempts[again]) == ([1], [1, 2])


def test_a_job_confirmed_dead_is_tried_again_if_it_has_retries(m: Machine) -> None:
    id = lost(m, retries=1)
    model = runner(m)
    m.die(model)
    m.witness.end(id, 1, ok=False)
    model.busy.clear()
    assert m.do("confirm-dead", id).changed == [id]
    assert m.state(id) is S.DELAYED
    assert outcomes(m, id) == [("failed", "lost")]


def test_a_survivor_of_a_confirmed_death_is_ended_and_its_late_report_changes_nothing(m: Machine) -> None:
    id = lost(m)
    model = runner(m)
    m.act("confirm-dead", id)
    (kill,) = (effect for effect in m.committing.effects if isinstance(effect, e.KillAttempts))
    assert kill == e.KillAttempts(model.id, [(id, 1, model.busy[next(iter(model.busy))].grant.lease[2])])
    model.end(next(iter(model.busy)), Outcome(exit_code=0, ended_at=m.wall), m.wall)
    m.pump()
    assert m.state(id) is S.FAILED
    assert outcomes(m, id) == [("failed", "lost")]
    assert model.unacknowledged == []


def test_a_survivor_of_a_confirmed_death_that_connects_again_is_told_to_end_it(m: Machine) -> None:
    id = lost(m)
    model = runner(m)
    m.disconnect(model)
    lease = next(iter(model.busy.values())).grant.lease
    # Whoever vouched was wrong: it executes still.
    m.witness.end(id, 1, ok=False)
    m.do("confirm-dead", id)
    m.witness.running[id] = (1, "h1", Size())
    m.happened(model.join())
    (rules,) = (effect for effect in m.committing.effects if isinstance(effect, e.SendRules))
    assert rules.forget == [lease]


def test_a_job_confirmed_dead_after_a_restart_frees_its_room(m: Machine) -> None:
    """Nobody knows in which seat it was, if it was in one; another of its runner stays lost."""
    model = runner(m)
    m.send_chunk([Entry("a", spec(size=Size(cpus=300)))])
    m.send_chunk([Entry("b", spec())])
    m.commit(perform=False)
    m.commit(perform=False)
    m.crash()
    m.die(model)
    m.advance(61)
    m.pump()
    assert m.states(1, 2) == [S.LOST, S.LOST]
    m.do("confirm-dead", 1)
    (waits,) = m.add("c", size=Size(cpus=300)).added
    m.join(m.start_runner("h1"))
    m.pump()
    assert m.states(1, 2, waits) == [S.FAILED, S.LOST, S.RUNNING]


def test_a_job_is_given_up_ten_minutes_after_its_runner_must_have_ended_it(m: Machine) -> None:
    id = lost(m, retries=0)
    model = runner(m)
    m.disconnect(model)
    m.advance(WEEK_S - 61)
    # So long without contact, the runner ends its jobs itself and keeps the record.
    model.end(next(iter(model.busy)), Outcome(reason="lost", ended_at=m.wall), m.wall)
    m.advance(ORPHAN_MARGIN_S)
    assert m.state(id) is S.LOST
    m.advance(1)
    m.pump()
    assert m.state(id) is S.FAILED
    assert outcomes(m, id) == [("failed", "lost")]
    m.join(model)  # with its record, too late
    m.pump()
    assert outcomes(m, id) == [("failed", "lost")]
    assert model.unacknowledged == []


def test_a_runner_that_is_given_up_but_still_connected_is_told_to_end_its_jobs(m: Machine) -> None:
    """Its process was stopped all the time, its jobs perhaps not."""
    id = lost(m, retries=0)
    m.advance(WEEK_S + ORPHAN_MARGIN_S)
    assert [effect.leases[0][:2] for effect in m.open.effects + m.committing.effects
            if isinstance(effect, e.KillAttempts)] == [(id, 1)]  # fmt: skip


# ------------------------------------------------------------------ people and lost jobs


def test_a_lost_job_that_is_killed_is_ended_when_its_runner_is_heard(m: Machine) -> None:
    id = lost(m)
    m.disconnect(runner(m))
    assert m.do("kill", id).changed == [id]
    assert m.state(id) is S.LOST, "nobody knows whether it runs"
    m.join(runner(m))
    m.pump()
    assert m.state(id) is S.CANCELLED
    assert not m.witness.running


def test_a_lost_job_that_is_killed_is_cancelled_when_its_death_is_confirmed(m: Machine) -> None:
    id = lost(m, retries=3)
    m.die(runner(m))
    m.witness.running.clear()
    m.do("kill", id)
    m.do("confirm-dead", id)
    assert m.state(id) is S.CANCELLED


def test_a_killed_job_that_is_found_again_says_that_it_is_being_killed(m: Machine) -> None:
    (id,) = m.add("a").added
    m.disconnect(runner(m))
    m.do("kill", id)
    m.advance(61)
    assert m.state(id) is S.LOST
    m.happened(runner(m).join())
    job = m.world.jobs[id]
    assert job.state is S.FINISHING
    assert "silent" not in job.reason.message


def test_a_lost_job_cannot_be_retried_held_or_removed(m: Machine) -> None:
    id = lost(m)
    assert m.do("retry", id).unchanged == [id]
    assert m.do("hold", id).unchanged == [id]
    assert m.state(id) is S.LOST


def test_a_job_without_retries_that_is_lost_fails_and_never_runs_again(m: Machine) -> None:
    id = lost(m, retries=0)
    m.die(runner(m))
    m.heal()
    for _hour in range(30):
        m.advance(3600)
        m.pump()
    m.crash()
    m.heal()
    m.run_out()
    assert m.state(id) is S.FAILED
    assert m.store.jobs([id])[0].reason_code == "lost"
    assert m.witness.attempts[id] == [1]


def test_dependents_of_a_lost_job_wait_for_its_end(m: Machine) -> None:
    id = lost(m)
    (child,) = m.add("child", after=((id, 1, False),)).added
    m.advance(3600)
    assert m.state(child) is S.DEPENDENT
    m.end(id)
    assert m.state(child) is S.RUNNING
