"""Bugs that are met again and again: what is not decided any more because of them, and what goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rota.core import engine, events
from rota.core.attempts import suspension
from rota.core.bugs.undecided import Undecided
from rota.core.feature import Feature, Features
from rota.core.features import BUILT_IN
from rota.core.jobs.outcome import Outcome
from rota.core.machines import runners
from rota.core.site.manager_pause import why_nothing_starts
from rota.core.states import State
from rota.errors import BadInput, Bug, NotDone
from rota.plan.size import Size
from tests.core.bugs.faulty import FaultyMachine, InjectedBugError
from tests.core.machine import Entry, Machine, spec


@pytest.fixture
def m() -> FaultyMachine:
    machine = FaultyMachine()
    machine.with_runner()
    return machine


@pytest.fixture
def spoil(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Any]]:
    """Let a handler meet a bug, after its changes, whenever a condition holds; returns the events that did."""

    def spoiled(kind: type[events.Event], when: Callable[[Any], bool] = lambda _event: True) -> list[Any]:
        handler, met = BUILT_IN.handlers[kind], []

        def bad(world: Any, turn: Any, event: Any) -> None:
            handler(world, turn, event)
            if when(event):
                met.append(event)
                raise InjectedBugError

        monkeypatch.setitem(BUILT_IN.handlers, kind, bad)
        return met

    return spoiled


def test_a_request_that_meets_a_bug_twice_gets_an_internal_error_and_others_go_on(
    m: FaultyMachine, spoil: Callable[..., list[Any]]
) -> None:
    first, second = m.add("a", "b").added
    met = spoil(events.JobsKilled, lambda event: event.jobs == [first])
    m.ask(lambda: m.act("kill", first))
    assert len(met) == 2  # by itself, and again because nothing was done
    m.heal()
    with pytest.raises(Bug, match="a bug in the manager keeps it from doing this") as error:
        m.do("kill", first)
    assert error.value.code == "internal"
    assert len(met) == 2
    assert m.state(first) is State.RUNNING
    assert m.do("kill", second).changed == [second]
    m.crash()  # it is on disk
    m.heal()
    with pytest.raises(Bug):
        m.do("kill", first)
    m.happened(events.ManagerResumed())
    m.ask(lambda: m.act("kill", first))
    assert len(met) > 2
    assert met[-1].jobs == [first]


def test_three_bugs_of_one_kind_in_ten_minutes_refuse_that_kind(
    m: FaultyMachine, spoil: Callable[..., list[Any]]
) -> None:
    jobs = m.add(*"abcdef").added
    met = spoil(events.JobsHeld)
    for job in jobs[:3]:
        with pytest.raises(NotDone):
            m.act("hold", job)
        m.heal()
    with pytest.raises(Bug, match="JobsHeld"):
        m.do("hold", jobs[4])
    assert len(met) == 3
    assert m.do("kill", jobs[4]).changed == [jobs[4]]


def test_an_end_that_meets_a_bug_is_stored_whole_and_its_attempt_is_lost(
    m: FaultyMachine, spoil: Callable[..., list[Any]]
) -> None:
    bad, good, last = m.add("a", "b", "c").added
    met = spoil(events.RunnerReported, lambda event: any(each.job == bad for each in event.ended))
    (model,) = m.runners.values()
    for job, code in (good, 0), (bad, 7), (last, 0):
        seat = m.running()[job][1]
        how = Outcome(exit_code=code, started_at=m.wall, ended_at=m.wall, segment="r1-1", out_len=5, out_total=5)
        model.end(seat, how, m.wall)
    model.report()
    for _ in range(3):
        _listen(m)
    assert len(met) == 2  # the whole report, and the entry alone
    assert m.states(good, last) == [State.COMPLETE, State.COMPLETE]
    (attempt,) = m.store.attempts(bad)
    assert (attempt.exit_code, attempt.segment, attempt.reason_code) == (7, "r1-1", "lost")
    assert m.state(bad) is State.FAILED
    assert any(event.kind == "bug" and '"r1-1"' in event.text for event in m.store.events(bad))
    assert model.unacknowledged == []
    assert m.add("d").added
    m.run_out()
    m.check()


def test_a_job_that_cannot_even_be_given_up_is_frozen(m: FaultyMachine, spoil: Callable[..., list[Any]]) -> None:
    bad, good = m.add("a", "b").added
    (child,) = m.add("c", after=((bad, 1, False),)).added
    spoil(events.RunnerReported, lambda event: any(each.job == bad for each in event.ended))
    spoil(events.EntrySetAside)
    for job in bad, good:
        m.running()[job][0].end(m.running()[job][1], Outcome(exit_code=0, ended_at=m.wall), m.wall)
    (model,) = m.runners.values()
    model.report()
    for _ in range(4):
        _listen(m)
    assert m.world.bugs.frozen == {bad}
    assert bad not in m.world.jobs
    assert m.state(good) is State.COMPLETE
    assert m.state(child) is State.DEPENDENT
    assert model.unacknowledged == []
    m.do("kill", child)
    m.do("kill", bad)
    m.run_out()
    m.crash()
    assert bad not in m.world.jobs


@pytest.mark.parametrize("reported", [True, False])
def test_a_frozen_job_comes_back_when_the_manager_is_resumed_and_never_runs_twice(
    m: FaultyMachine, spoil: Callable[..., list[Any]], monkeypatch: pytest.MonkeyPatch, reported: bool
) -> None:
    (model,) = m.runners.values()
    m.add_quietly("a")
    m.commit()
    model.deliver()
    if reported:  # otherwise it has ended before its start is reported
        m.pump()
    ((seat, busy),) = model.busy.items()
    bad = busy.grant.lease[0]
    spoil(events.RunnerReported, lambda event: any(each.job == bad for each in event.ended))
    spoil(events.EntrySetAside)
    model.end(seat, Outcome(exit_code=0, ended_at=m.wall), m.wall)
    model.report()
    for _ in range(4):
        _listen(m)
    monkeypatch.undo()
    assert m.world.bugs.frozen == {bad}
    m.happened(events.ManagerResumed())
    m.pump()
    assert m.world.bugs.frozen == frozenset()
    assert m.state(bad) is State.FAILED  # what it did is unknown, and it has no retries
    m.run_out()
    m.check()


@pytest.fixture
def spoil_function(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let a function of the engine that is called with a job meet a bug, after its changes, for one job."""

    def spoiled(module: Any, name: str, bad: int) -> None:
        function = getattr(module, name)

        def faulty(world: Any, turn: Any, job: Any, *more: Any) -> None:
            function(world, turn, job, *more)
            if job.id == bad:
                raise InjectedBugError

        monkeypatch.setattr(module, name, faulty)

    return spoiled


def test_a_start_that_meets_bugs_is_known_and_its_end_is_decided_as_ever(
    m: FaultyMachine, spoil_function: Callable[..., None]
) -> None:
    (model,) = m.runners.values()
    good, bad = 1, 2
    spoil_function(runners, "start_attempt", bad)
    m.add_quietly("a", "b")
    for _ in range(5):
        _listen(m)
    assert [bug.place for bug in m.met] == ["RunnerReported"] * 2  # the whole report, and the entry alone
    assert m.states(good, bad) == [State.RUNNING, State.RUNNING]
    assert any(event.kind == "bug" and "(started)" in event.text for event in m.store.events(bad))
    assert model.unacknowledged == []
    m.crash()  # the runner joins, and tells again what runs
    m.heal()
    assert m.states(good, bad) == [State.RUNNING, State.RUNNING]
    assert m.world.bugs.safe_mode == ""
    m.end(bad)
    m.end(good)
    assert m.states(good, bad) == [State.COMPLETE, State.COMPLETE]
    (attempt,) = m.store.attempts(bad)
    assert attempt.started_at is not None
    assert len(m.met) == 2
    m.check()


def test_a_start_that_a_joining_runner_tells_of_costs_no_safe_mode(
    m: FaultyMachine, spoil_function: Callable[..., None]
) -> None:
    (model,) = m.runners.values()
    m.add_quietly("a")
    m.commit()
    model.deliver()  # it runs, and nothing of it was reported
    m.disconnect(model)
    spoil_function(runners, "start_attempt", 1)
    for _ in range(5):
        _listen(m)
    assert [bug.place for bug in m.met] == ["RunnerJoined", "RunnerReported"]
    assert m.world.bugs.safe_mode == ""
    assert m.state(1) is State.RUNNING
    m.end(1)
    assert m.state(1) is State.COMPLETE


@pytest.mark.parametrize("faulty", ["_all_frozen", "_all_thawed"])
def test_a_pause_that_meets_bugs_leaves_the_job_running(
    m: FaultyMachine, monkeypatch: pytest.MonkeyPatch, faulty: str
) -> None:
    (job,) = m.add("a").added
    if faulty == "_all_thawed":
        m.do("suspend", job)
        assert m.state(job) is State.SUSPENDED
    monkeypatch.setattr(suspension, faulty, _never)
    m.ask(lambda: m.act("suspend" if faulty == "_all_frozen" else "resume", job))
    for _ in range(5):
        _listen(m)
    assert len(m.met) == 2
    assert m.state(job) is State.RUNNING
    assert not m.witness.stands_still(job)
    m.check()
    monkeypatch.undo()
    m.happened(events.ManagerResumed())
    m.do("suspend", job)
    assert m.state(job) is State.SUSPENDED
    m.do("resume", job)
    m.end(job)
    assert m.state(job) is State.COMPLETE


@pytest.mark.parametrize("field", ["opened", "shut"])
def test_a_job_whose_part_meets_bugs_does_not_wait_forever(spoil: Callable[..., list[Any]], field: str) -> None:
    m = FaultyMachine(hosts=2)
    for host in m.capacity:
        m.join(m.start_runner(host))
    met = spoil(events.RunnerReported, lambda event: bool(getattr(event, field)))
    m.ask(lambda: m.send_chunk([Entry("a", spec(request=("/host=2/core=4,walltime=1",)))]))
    for _ in range(6):
        _listen(m)
    if field == "shut":
        model, seat = m.running()[1]
        model.end(seat, Outcome(exit_code=0, ended_at=m.wall), m.wall)
        for _ in range(6):
            _listen(m)
    assert len(met) == 2
    assert m.state(1) is (State.FAILED if field == "opened" else State.COMPLETE)
    assert m.witness.parts == {}
    assert m.world.bugs.safe_mode == ""
    m.run_out()
    m.check()


def test_bugs_outside_of_requests_mean_safe_mode_until_the_manager_is_resumed(
    m: FaultyMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (runs,) = m.add("a", size=Size(cpus=200)).added
    granted = engine.grant_leases

    def bad(world: Any, turn: Any) -> None:
        granted(world, turn)
        if any(job.cmd == "b" and job.lease for job in world.jobs.values()):
            raise InjectedBugError

    monkeypatch.setattr(engine, "grant_leases", bad)
    m.ask(lambda: m.send_chunk([Entry("b", spec())]))
    for _ in range(3):
        try:
            m.heal()
        except NotDone:
            continue
    assert [bug.place for bug in m.met] == ["granting", "granting"]
    reason = why_nothing_starts(m.world)
    assert reason is not None
    assert reason.code == "bug"
    m.crash()
    m.heal()
    m.ask(lambda: m.send_chunk([Entry("c", spec())]))  # accepted, and waits
    m.end(runs)
    assert m.state(runs) is State.COMPLETE
    assert m.running() == {}
    monkeypatch.setattr(engine, "grant_leases", granted)
    m.happened(events.ManagerResumed())
    m.pump()
    assert len(m.running()) == 2
    m.run_out()


def _never(*_args: Any) -> None:
    raise InjectedBugError


@pytest.mark.parametrize("point", ["on_timer", "after_timer", "after_step"])
def test_a_feature_that_fails_as_time_passes_means_safe_mode_and_is_left_out(point: str) -> None:
    features = Features((*BUILT_IN.all, Feature(name="bad", **{point: _never})))
    m = FaultyMachine(features=features)
    for _ in range(6):
        try:
            m.advance(1.0)
        except NotDone:
            continue
    assert {bug.place for bug in m.met} == {"bad"}
    assert len(m.met) == 3  # after two of them nothing starts; after three it is left out, and time goes on
    assert m.world.bugs.safe_mode.startswith("bad: InjectedBugError")
    m.with_runner()
    (job,) = m.add("a").added
    assert m.state(job) is State.READY


@pytest.mark.parametrize("kind", [events.RunnerJoined, events.HostAppeared, events.RunnerIdled])
def test_joins_and_hosts_that_fail_mean_safe_mode(
    m: FaultyMachine, spoil: Callable[..., list[Any]], kind: type[events.Event]
) -> None:
    (model,) = m.runners.values()
    happen: dict[type[events.Event], Callable[[], None]] = {
        events.RunnerJoined: lambda: (m.disconnect(model), m.join(model))[1],
        events.HostAppeared: lambda: m.happened(events.HostAppeared(host="h9", capacity=m.capacity["h1"])),
        events.RunnerIdled: lambda: m.happened(events.RunnerIdled(runner=model.id)),
    }
    met = spoil(kind)
    for _ in range(6):
        try:
            happen[kind]()
        except NotDone:
            continue
    assert 2 <= len(met) <= 3
    assert m.world.bugs.safe_mode.startswith(f"{kind.__name__}: InjectedBugError")
    m.check()


def test_plan_news_that_fail_mean_safe_mode(m: FaultyMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(m.world.placement), "has_news", True)
    monkeypatch.setattr(engine.plan_news, "act_on_plan", _never)
    for _ in range(3):
        try:
            m.advance(1.0)
        except NotDone:
            continue
    assert [bug.place for bug in m.met] == ["plan news"] * 2
    assert m.world.bugs.safe_mode.startswith("plan news")


def test_a_timer_is_never_refused() -> None:
    def mistaken(*_args: Any) -> None:
        raise BadInput("nobody asked")

    m = Machine(features=Features((*BUILT_IN.all, Feature(name="bad", on_timer=mistaken))))
    with pytest.raises(Undecided, match="bad"):
        m.advance(1.0)


def _listen(m: FaultyMachine) -> None:
    try:
        m.heal()
        for model in m.runners.values():
            model.repeat()
        m.pump()
    except NotDone:
        pass
