"""Pause, drain and resume in the engine; and what is thought of leases that come from a backup."""

from __future__ import annotations

import msgspec
import pytest

from rota.core import effects as e
from rota.core import events
from rota.core.changes import Changes
from rota.core.recovery.restored_leases import RESTORED_AT, RESTORED_LEASES
from rota.core.site.manager_pause import leased, why_nothing_starts
from rota.core.states import State
from rota.plan.size import Size
from rota.store.memory.store import MemoryStore
from tests.core.machine import Entry, Machine, spec
from tests.core.runners import Grant, ModelRunner

S = State
ALL = Size(cpus=400)

PAUSE, DRAIN, RESUME = events.ManagerPaused(), events.ManagerDrained(), events.ManagerResumed()
BOTH = pytest.mark.parametrize("stop", [PAUSE, DRAIN], ids=["pause", "drain"])


@pytest.fixture
def m() -> Machine:
    """A manager and one host with four cores and a runner."""
    machine = Machine()
    machine.with_runner()
    return machine


def runner(m: Machine) -> ModelRunner:
    return next(iter(m.runners.values()))


def sent_but_not_delivered(m: Machine) -> int:
    """A job whose lease is on its way to the runner."""
    m.send_chunk([Entry("leased", spec())])
    while m.commit():
        pass
    assert runner(m).incoming
    return m.world.next_job - 1


def waits_at_the_runner(m: Machine) -> int:
    """A job whose lease has arrived, but not the seat for it."""
    id = sent_but_not_delivered(m)
    runner(m).incoming.clear()
    job = m.world.jobs[id]
    assert job.lease is not None
    runner(m).waiting.append(Grant((0, id), (id, job.attempt, job.lease.token), job.spec, job.size))
    return id


@BOTH
def test_nothing_starts_while_running_jobs_go_on_and_jobs_can_be_added(m: Machine, stop: events.Event) -> None:
    (running,) = m.add("running").added
    m.happened(stop)
    m.pump()
    (added,) = m.add("added").added
    assert m.states(running, added) == [S.RUNNING, S.READY]
    m.end(running)
    m.advance(10)
    m.pump()
    assert m.states(running, added) == [S.COMPLETE, S.READY]
    assert not m.world.runners[runner(m).id].leases


@BOTH
def test_what_waits_at_a_runner_is_handed_back_and_uses_no_retry(m: Machine, stop: events.Event) -> None:
    (running,) = m.add("running").added
    waiting = waits_at_the_runner(m)
    m.happened(stop)
    m.pump()
    assert m.states(running, waiting) == [S.RUNNING, S.READY]
    assert m.world.jobs[waiting].tries == 0
    assert [each.outcome for each in m.store.attempts(waiting)] == ["void"]


@BOTH
def test_a_lease_on_its_way_when_nothing_may_start_any_more_is_called_back_behind_it(
    m: Machine, stop: events.Event
) -> None:
    m.add("fills", size=ALL)
    waiting = m.world.next_job
    m.happened(events.RunnerParted(runner=runner(m).id))
    m.pump()
    m.happened(stop)
    m.send_chunk([Entry("later", spec(size=ALL))])
    m.join(runner(m))
    m.pump()
    assert m.state(waiting) is S.READY


@BOTH
def test_a_runner_that_comes_back_with_unstarted_leases_is_asked_for_them(m: Machine, stop: events.Event) -> None:
    id = waits_at_the_runner(m)
    model = runner(m)
    m.disconnect(model)
    m.happened(stop)
    m.pump()
    assert m.state(id) is S.SCHEDULED  # nobody knows whether it has started
    m.join(model)
    m.pump()
    assert m.state(id) is S.READY
    assert not model.waiting


def test_a_pause_outlives_the_manager_and_a_drain_does_not(m: Machine) -> None:
    m.happened(PAUSE)
    m.pump()
    m.crash()
    m.join(runner(m))
    (waits,) = m.add("waits").added
    assert m.state(waits) is S.READY
    m.happened(RESUME)
    m.pump()
    assert m.state(waits) is S.RUNNING
    m.end(waits)
    m.crash()
    assert not m.world.paused

    m.join(runner(m))
    m.happened(DRAIN)
    (added,) = m.add("added").added
    assert m.state(added) is S.READY
    m.crash()
    m.join(runner(m))
    m.pump()
    assert m.state(added) is S.RUNNING


def test_resuming_ends_a_drain_as_well(m: Machine) -> None:
    m.happened(PAUSE, DRAIN)
    (added,) = m.add("added").added
    m.happened(RESUME)
    m.pump()
    assert m.state(added) is S.RUNNING
    assert why_nothing_starts(m.world) is None


def test_a_manager_that_stops_starts_nothing_even_if_it_is_resumed(m: Machine) -> None:
    m.world.stopping = True
    m.happened(RESUME)
    (added,) = m.add("added").added
    assert m.state(added) is S.READY


def test_pausing_twice_changes_nothing_more_and_resuming_what_runs_neither(m: Machine) -> None:
    m.happened(RESUME)
    (runs,) = m.add("runs").added
    m.happened(PAUSE)
    m.happened(PAUSE)
    m.pump()
    assert m.state(runs) is S.RUNNING
    assert leased(m.world) == 1


def test_the_reason_why_nothing_starts_is_named(m: Machine) -> None:
    m.happened(PAUSE)
    assert why_nothing_starts(m.world).code == "paused"  # type: ignore[union-attr]
    m.happened(DRAIN)
    assert why_nothing_starts(m.world).code == "draining"  # type: ignore[union-attr]


def test_a_delayed_job_becomes_ready_during_a_pause_and_stays_so(m: Machine) -> None:
    (id,) = m.add("again", retries=3).added
    m.end(id, exit_code=1)
    m.happened(PAUSE)
    m.advance(3600)
    m.pump()
    assert m.state(id) is S.READY


def test_a_job_can_be_killed_while_its_lease_is_being_called_back(m: Machine) -> None:
    id = sent_but_not_delivered(m)
    m.happened(PAUSE)
    m.act("kill", id)
    m.pump()
    assert m.state(id) is S.CANCELLED


# ------------------------------------------------------------------ leases from a backup


def restored_from_backup(m: Machine, *jobs: int) -> None:
    """The manager starts from a copy of its present database; everybody else has gone on."""
    attempts = [(id, m.world.jobs[id].attempt) for id in jobs]
    changes = Changes()
    changes.meta = {RESTORED_AT: f"{m.wall}", RESTORED_LEASES: msgspec.json.encode(attempts).decode()}
    m.store.commit(changes)
    m.crash()


def test_what_a_backup_says_is_leased_is_lost_until_somebody_knows(m: Machine) -> None:
    (id,) = m.add("runs").added
    restored_from_backup(m, id)
    assert m.state(id) is S.LOST
    m.die(runner(m))
    m.witness.end(id, 1, ok=False)
    assert m.do("confirm-dead", id).changed == [id]
    assert m.state(id) is S.FAILED


def test_a_runner_that_still_holds_a_restored_lease_goes_on_with_it(m: Machine) -> None:
    (id,) = m.add("runs").added
    restored_from_backup(m, id)
    m.join(runner(m))
    m.pump()
    assert m.state(id) is S.RUNNING
    m.end(id)
    assert m.state(id) is S.COMPLETE


def test_a_restored_noop_job_goes_on_for_nothing_of_it_can_have_ended_elsewhere(m: Machine) -> None:
    (id,) = m.add("", request=("core=1,walltime=60s",), types=("noop",)).added
    assert m.state(id) is S.RUNNING
    restored_from_backup(m, id)
    assert m.state(id) is S.RUNNING
    assert m.do("confirm-dead", id).unchanged == [id]
    m.advance(61.0)
    m.pump()
    assert m.unfinished() == []


@pytest.mark.parametrize("alive", [True, False], ids=["living", "settled"])
def test_a_restored_lease_nobody_holds_is_not_taken_for_unexecuted(m: Machine, alive: bool) -> None:
    """It may have been executed, acknowledged and forgotten after the backup was made."""
    id = sent_but_not_delivered(m)
    model = runner(m)
    model.incoming.clear()
    restored_from_backup(m, id)
    if alive:
        m.join(model)
    else:
        m.die(model)
        m.settle(model)
    m.pump()
    assert m.state(id) is S.FAILED
    assert [each.outcome for each in m.store.attempts(id)] == ["failed"]
    assert m.store.attempts(id)[0].reason_code == "lost"


def test_a_restored_lease_that_is_handed_back_has_not_run(m: Machine) -> None:
    id = waits_at_the_runner(m)
    restored_from_backup(m, id)
    m.happened(PAUSE)
    m.join(runner(m))
    m.pump()
    assert m.state(id) is S.READY


def test_an_attempt_that_the_restored_database_does_not_know_is_ended(m: Machine) -> None:
    (id,) = m.add("runs").added
    m.commit()
    assert id in m.running()
    m.store, m.acknowledged = MemoryStore(), set()
    m.crash()
    m.join(runner(m))
    while m.commit():
        pass
    runner(m).deliver()
    assert not m.running()


def test_recalled_leases_are_named_one_by_one(m: Machine) -> None:
    id = sent_but_not_delivered(m)
    m.happened(PAUSE)
    batch = m.committing or m.open
    (recall,) = [effect for effect in batch.effects if isinstance(effect, e.RecallLeases)]
    lease = m.world.jobs[id].lease
    assert lease is not None
    assert recall.leases == [(id, 1, lease.token)]


def test_a_second_start_from_a_backup_doubts_its_leases_and_waits_for_their_runners(m: Machine) -> None:
    id = sent_but_not_delivered(m)
    runner(m).incoming.clear()
    restored_from_backup(m, id)
    assert m.state(id) is S.LOST
    m.crash()
    assert m.state(id) is S.SCHEDULED
    m.join(runner(m))
    m.pump()
    assert m.state(id) is S.FAILED
