"""A start brings back what the rows, the records and the small facts of a deployment say."""

from __future__ import annotations

from rota.core.events import ManagerPaused
from rota.core.machines.machine_use import MachineUse
from rota.core.states import State
from tests.core.machine import Machine


def test_a_start_brings_back_hosts_runners_and_the_pause() -> None:
    m = Machine(hosts=2)
    model = m.start_runner("h1")
    m.join(model)
    ended, runs = m.add("ends", "runs").added
    m.advance(30.0)
    m.end(ended)
    m.happened(ManagerPaused())
    m.pump()
    before = m.world
    assert before.use(MachineUse).open
    m.crash()
    world = m.world
    assert world is not before
    assert world.use(MachineUse).open == before.use(MachineUse).open
    assert world.use(MachineUse).awaited == {"h1"}
    assert world.paused
    assert world.runner_hosts == {model.id: "h1"}
    known, now = before.runners[model.id], world.runners[model.id]
    assert (now.boot_id, now.pid, now.start_time) == (known.boot_id, known.pid, known.start_time)
    assert now.boot_id
    assert world.jobs[runs].state is State.RUNNING
    assert world.site_version > before.site_version


def test_an_old_seat_number_never_means_a_new_seat() -> None:
    m = Machine()
    model = m.with_runner()
    m.add("runs")
    old = set(m.world.runners[model.id].seats)
    m.crash()
    m.join(model)
    m.add("more")
    assert old
    assert set(m.world.runners[model.id].seats) > old
