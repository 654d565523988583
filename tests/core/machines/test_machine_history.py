"""The history of machines: a row for each change, in the transaction of its event."""

from __future__ import annotations

from itertools import groupby

import pytest

from rota.core import events
from rota.core.machines import machine_history
from rota.core.machines.machine_history import record_changes, stop_history
from rota.core.machines.machine_now import machine_now
from rota.core.machines.machine_states import MachineState, word
from rota.core.machines.machine_use import MachineUse, mark
from rota.core.machines.usage_sums import state_of
from rota.core.turn import Batch, Turn
from rota.core.world import World
from rota.plan.size import Capacity
from tests.core.machine import Machine
from tests.core.machines.rows import machine_row


def states(machine: Machine, host: str = "h1") -> list[tuple[float, str]]:
    rows = machine.store.machine_rows(host=host, since=0, until=1 << 62)
    return [(row.at / 1e6, word(state_of(row))) for row in rows]


def words(machine: Machine, host: str = "h1") -> list[str]:
    """The history in one word each, without repetitions."""
    return [word for word, _ in groupby(word for _at, word in states(machine, host))]


def tick(machine: Machine, seconds: float = 1.0) -> None:
    machine.advance(seconds)
    machine.pump()


def test_each_change_is_one_row() -> None:
    machine = Machine()
    tick(machine)
    runner = machine.with_runner()
    tick(machine)
    (job,) = machine.add("a").added
    tick(machine)
    tick(machine)
    machine.end(job)
    tick(machine)
    machine.disconnect(runner)
    tick(machine)
    assert states(machine) == [
        (1001.0, "away"),
        (1001.000001, "idle"),
        (1002.0, "busy"),
        (1002.000001, "busy"),
        (1004.0, "idle"),
        (1005.0, "away"),
    ]


def test_a_busy_machine_is_not_looked_at_for_each_of_its_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    machine.with_runner()
    first, second = machine.add("a", "b").added
    tick(machine)
    looked_at: list[str] = []

    def look(world: World, host: str) -> MachineState:
        looked_at.append(host)
        return machine_now(world, host)

    monkeypatch.setattr(machine_history, "machine_now", look)
    machine.end(first)
    tick(machine)
    assert looked_at == []
    machine.end(second)
    tick(machine)
    assert looked_at == ["h1"]
    assert words(machine)[-1] == "idle"


def test_a_silent_runner_is_away_until_it_is_heard_again() -> None:
    machine = Machine()
    runner = machine.with_runner()
    machine.add("a")
    tick(machine)
    tick(machine, 61.0)
    runner.report()
    machine.pump()
    tick(machine)
    assert words(machine) == ["idle", "busy", "away", "busy"]


def test_a_host_that_is_drained_is_neither_idle_nor_away() -> None:
    machine = Machine()
    machine.with_runner()
    tick(machine)
    machine.happened(events.SiteChanged(by=None, changes=[("host", "h1", {"drain": True})], about="", base=None))
    tick(machine)
    assert [state for _at, state in states(machine)] == ["idle", "drained"]


def test_a_host_that_is_suspected_has_a_word_of_its_own() -> None:
    machine = Machine()
    machine.with_runner()
    tick(machine)
    for record in ({"state": "suspected", "drain": True}, {"state": "dead"}, {}):
        machine.happened(events.SiteChanged(by=None, changes=[("host", "h1", record)], about="", base=None))
        tick(machine)
    assert [state for _at, state in states(machine)] == ["idle", "suspected", "drained", "idle"]


def test_a_restart_goes_on_where_it_was() -> None:
    machine = Machine()
    machine.with_runner()
    tick(machine)
    before = states(machine)
    machine.crash()
    (row,) = machine.world.use(MachineUse).open.values()
    assert (row.at, row.usage) == (1_000_000_000, "idle")
    for runner in machine.runners.values():
        machine.join(runner)
    tick(machine)
    assert states(machine) == before


def test_while_a_manager_begins_nobody_is_away_who_was_there_before() -> None:
    machine = Machine()
    runner = machine.with_runner()
    tick(machine)
    before = states(machine)
    machine.crash()
    for _ in range(3):
        tick(machine, 15.0)
    assert states(machine) == before
    machine.join(runner)
    tick(machine)
    machine.disconnect(runner)
    tick(machine)
    assert [state for _at, state in states(machine)] == ["idle", "away"], "it has been back since"


def test_a_host_that_does_not_come_back_is_away_after_a_while() -> None:
    machine = Machine()
    machine.with_runner()
    tick(machine)
    machine.crash()
    tick(machine)
    tick(machine, 61.0)
    assert [state for _at, state in states(machine)] == ["idle", "away"]


def test_a_drained_host_on_which_something_runs_is_draining() -> None:
    machine = Machine()
    machine.with_runner()
    (job,) = machine.add("a").added
    tick(machine)
    for record in ({"drain": True}, {"state": "suspected"}):
        machine.happened(events.SiteChanged(by=None, changes=[("host", "h1", record)], about="", base=None))
        tick(machine)
    machine.end(job)
    tick(machine)
    assert words(machine) == ["idle", "busy", "draining", "suspected"]


def test_outside_its_hours_an_idle_host_is_closed() -> None:
    machine = Machine()
    machine.with_runner()
    tick(machine)
    record = {"available_until": machine.wall + 10.0}
    machine.happened(events.SiteChanged(by=None, changes=[("host", "h1", record)], about="", base=None))
    tick(machine, 5.0)
    tick(machine, 6.0)
    assert [state for _at, state in states(machine)] == ["idle", "closed"]


def test_a_clock_that_is_set_back_changes_no_order() -> None:
    machine = Machine()
    runner = machine.with_runner()
    tick(machine)
    machine.wall -= 500.0
    machine.disconnect(runner)
    tick(machine)
    first, second = states(machine)
    assert (first[1], second[1]) == ("idle", "away")
    assert second[0] > first[0]


def test_a_host_that_is_not_ours_any_more_is_gone() -> None:
    machine = Machine()
    machine.with_runner()
    machine.happened(events.HostAppeared("h9", Capacity(cpus=100, mem=1, disk=1)))
    tick(machine)
    del machine.world.capacity["h9"]
    mark(machine.world, "h9")
    tick(machine)
    tick(machine)
    assert [state for _at, state in states(machine, "h9")] == ["away", "gone"]
    assert "h9" not in machine.world.use(MachineUse).open


def test_when_the_manager_stops_nobody_sees_its_hosts_but_what_is_written_down_goes_on() -> None:
    machine = Machine(hosts=2)
    for host in ("h1", "h2"):
        machine.join(machine.start_runner(host))
    machine.happened(events.SiteChanged(by=None, changes=[("host", "h2", {"drain": True})], about="", base=None))
    tick(machine)
    machine.world.stopping = True
    batch = Batch()
    turn = Turn(wall=2000.0, mono=2000.0, random=lambda: 0.5, batch=batch)
    stop_history(machine.world, turn)
    mark(machine.world, "h1")
    record_changes(machine.world, turn)
    assert batch.changes.machines == [machine_row("h1", 2_000_000_000, "unseen")]
