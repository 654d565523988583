"""A session that stands still keeps all that it has, and its clock does not run."""

from __future__ import annotations

from rota.core.states import State
from tests.core.pipelines.lab import machine, pipeline, stage

THREE = {"e1": (), "e2": (), "e3": ()}


def test_suspended_for_a_minute_nothing_starts_and_clocks_exclude_it() -> None:
    m = machine(cores=2)
    m.start(pipeline([stage("a", takes={"x": 1}), stage("b")], THREE, {"x": 2}))
    m.advance(5.0)
    m.pump()
    before = m.session().elapsed_s(m.wall)
    running = list(m.work().values())
    assert m.tell("pause") == 1
    assert m.states(*running) == [State.SUSPENDED] * 2
    assert m.world.placement.limits.use("x") == (2, False)
    m.advance(60.0)
    m.pump()
    assert set(m.work().values()) == set(running)
    assert m.session().elapsed_s(m.wall) == before
    assert m.tell("resume") == 1
    m.pump()
    assert m.states(*running) == [State.RUNNING] * 2
    m.run()
    assert m.session().over
    assert m.session().elapsed_s(m.wall) == before + 6  # a second for each of six jobs
    assert [each.event for each in m.told if each.element is None] == ["suspended", "resumed"]


def test_a_job_that_ends_while_its_session_stands_still_is_counted_and_nothing_follows() -> None:
    m = machine(cores=1)
    m.start(pipeline([stage("a"), stage("b")], {"e1": ()}))
    model, seat = m.running()[m.work()["e1", "a"]]
    m.tell("pause")
    m.end(m.work()["e1", "a"])
    assert m.sums("a") == {"processed": 1}
    assert m.work() == {}
    assert m.sums("b") == {"waiting": 1}
    m.tell("resume")
    assert set(m.work()) == {("e1", "b")}
    assert (model, seat) is not None


def test_a_pause_outlives_the_manager() -> None:
    m = machine(cores=1)
    m.start(pipeline([stage("a")], THREE))
    m.tell("pause")
    m.crash()
    m.heal()
    m.advance(60.0)
    m.pump()
    assert m.session().record.state == "paused"
    assert len(m.work()) == 1  # what stood still stands still
    m.tell("resume")
    m.run()
    assert m.outcomes() == {"e1": "ok", "e2": "ok", "e3": "ok"}
    assert m.session().elapsed_s(m.wall) < 30


def test_pausing_twice_or_resuming_what_runs_changes_nothing() -> None:
    m = machine()
    m.start(pipeline([stage("a")], THREE))
    assert m.tell("resume") == 0
    assert m.tell("pause") == 1
    assert m.tell("pause") == 0
