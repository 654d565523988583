"""Tokens: units of limits that jobs of sessions take, keep over retries, and want alone."""

from __future__ import annotations

from rota.core.pipelines.session import Sessions
from rota.core.states import State
from tests.core.pipelines.lab import machine, pipeline, stage

FOUR = {f"e{n}": () for n in range(1, 5)}


def test_limits_of_two_one_and_one_are_never_exceeded() -> None:
    m = machine(cores=8)
    stages = [stage("a", takes={"x": 1}), stage("b", takes={"y": 1}), stage("c", takes={"z": 1})]
    m.start(pipeline(stages, FOUR, {"x": 2, "y": 1, "z": 1}))
    most = {"a": 0, "b": 0, "c": 0}
    while work := m.work():
        for name in most:
            most[name] = max(most[name], sum(1 for _element, of in work if of == name))
        m.finish(*min(work))
    assert most == {"a": 2, "b": 1, "c": 1}
    assert m.sums("c") == {"processed": 4}


def test_a_job_that_takes_two_takes_both_or_none() -> None:
    m = machine(cores=8)
    stages = [stage("one", takes={"x": 1}), stage("both", takes={"x": 1, "y": 1}), stage("last", takes={"y": 1})]
    m.start(pipeline(stages, FOUR, {"x": 1, "y": 1}))
    limits = m.world.placement.limits
    while work := m.work():
        names = [name for _element, name in work]
        assert limits.use("x")[0] == names.count("one") + names.count("both")
        assert limits.use("y")[0] == names.count("both") + names.count("last")
        m.finish(*min(work))
    assert m.sums("last") == {"processed": 4}


def test_two_jobs_that_want_two_limits_crosswise_both_finish() -> None:
    m = machine()
    crosswise = [stage("a", takes={"x": 1, "y": 1})], [stage("a", takes={"y": 1, "x": 1})]
    for number, stages in enumerate(crosswise):
        m.start(pipeline(stages, {"e": ()}, {"x": 1, "y": 1}), file=f"/{number}")
    m.run()
    m.run()
    assert [session.over for session in m.world.use(Sessions).all.values()] == [True, True]


def test_tokens_are_held_across_retries() -> None:
    m = machine()
    m.start(pipeline([stage("a", takes={"x": 1}, retries=2)], {"e1": (), "e2": ()}, {"x": 1}))
    job = m.work()["e1", "a"]
    m.finish("e1", "a", 75)
    assert m.world.placement.limits.use("x") == (1, False)
    assert ("e2", "a") not in m.work()
    m.advance(1.0)
    m.pump()
    assert m.work() == {("e1", "a"): job}
    m.finish("e1", "a")
    assert set(m.work()) == {("e2", "a")}
    m.run()
    assert m.world.placement.limits.use("x") == (0, False)


def test_the_units_of_a_delayed_job_count_as_taken_after_a_restart_too() -> None:
    m = machine()
    m.start(pipeline([stage("a", takes={"x": 1}, retries=2)], {"e1": (), "e2": ()}, {"x": 1}))
    job = m.work()["e1", "a"]
    m.finish("e1", "a", 75)
    assert m.state(job) is State.DELAYED
    m.crash()
    assert m.world.placement.limits.use("x") == (1, False)
    m.heal()
    m.advance(1.0)
    m.pump()
    assert set(m.work()) == {("e1", "a")}
    m.run()
    assert m.outcomes() == {"e1": "ok", "e2": "ok"}
    assert m.world.placement.limits.use("x") == (0, False)


def test_terminate_during_a_delay_frees_the_units() -> None:
    m = machine()
    m.start(pipeline([stage("a", takes={"x": 1}, retries=2)], {"e1": ()}, {"x": 1}))
    m.finish("e1", "a", 75)
    m.tell("terminate")
    assert m.world.placement.limits.use("x") == (0, False)
    assert m.session().over
    assert m.outcomes() == {"e1": "terminated"}


def test_tokens_are_released_after_failure_skip_and_termination() -> None:
    for code in (1, 77, 75):
        m = machine()
        m.start(pipeline([stage("a", takes={"x": 1})], {"e1": ()}, {"x": 1}))
        m.finish("e1", "a", code)
        assert m.world.placement.limits.use("x") == (0, False)
    m = machine()
    m.start(pipeline([stage("a", takes={"x": 1})], {"e1": ()}, {"x": 1}))
    m.tell("terminate")
    m.pump()
    assert m.world.placement.limits.use("x") == (0, False)


def test_an_exclusive_interest_lets_nobody_begin_to_share_and_runs_alone() -> None:
    m = machine(cores=8, condition=lambda _element, stage: 0 if stage == "clean" else 1)
    stages = [
        stage("build", takes={"cache": 1}),
        stage("clean", per_session=True, run_if="over", takes={"cache": "exclusive"}),
    ]
    m.start(pipeline(stages, FOUR, {"cache": 2}))
    m.finish("e1", "build")
    assert set(m.work()) == {("e2", "build"), ("e3", "build")}
    m.finish("e2", "build")  # the condition holds: e4 must not begin, although there is a unit
    assert set(m.work()) == {("e3", "build")}
    m.finish("e3", "build")
    assert set(m.work()) == {("", "clean")}
    assert m.world.placement.limits.use("cache") == (1, True)
    m.finish("", "clean")
    assert set(m.work()) == {("e4", "build")}


def test_exclusive_stages_are_looked_at_at_most_every_ten_seconds_one_at_a_time() -> None:
    m = machine(cores=1, condition=lambda _element, _stage: 1)
    stages = [
        stage("build", takes={"cache": 1}),
        stage("clean", per_session=True, run_if="over", takes={"cache": "exclusive"}),
    ]
    m.start(pipeline(stages, FOUR, {"cache": 1}))
    m.finish("e1", "build")
    m.finish("e2", "build")
    m.finish("e3", "build")
    assert m.looked == [("", "clean")]
    m.advance(11.0)
    m.pump()
    m.work()
    assert m.looked == [("", "clean")] * 2
    m.run()
    assert m.session().over


def test_an_exclusive_user_stays_alone_while_paused_for_other_sessions_too() -> None:
    m = machine()
    stages = [
        stage("build", takes={"cache": 1}),
        stage("clean", per_session=True, takes={"cache": "exclusive"}),
    ]
    first = m.start(pipeline(stages, {"e1": ()}, {"cache": 2}))
    m.finish("e1", "build")
    assert set(m.work()) == {("", "clean")}
    m.tell("pause", session=first)
    second = m.start(pipeline([stages[0]], {"other": ()}, {"cache": 2}), file="/q.yaml")
    m.advance(60.0)
    m.pump()
    assert ("other", "build") not in m.work()
    m.crash()
    m.with_runner()
    m.heal()
    assert ("other", "build") not in m.work()
    m.tell("resume", session=first)
    m.finish("", "clean")
    m.finish("other", "build")
    m.run()
    assert m.session(first).over
    assert m.session(second).over
    assert m.order == [("e1", "build"), ("", "clean"), ("other", "build")]


def test_an_exclusive_stage_does_not_run_again_because_of_jobs_that_ended_before_it_began() -> None:
    m = machine()
    stages = [
        stage("build", takes={"cache": 1}),
        stage("clean", per_session=True, takes={"cache": "exclusive"}),
    ]
    m.start(pipeline(stages, {"e1": (), "e2": ()}, {"cache": 2}))
    m.finish("e1", "build")
    m.finish("e2", "build")
    m.run()
    assert m.order.count(("", "clean")) == 1


def test_a_stage_for_the_session_without_a_condition_runs_once_at_the_end() -> None:
    m = machine()
    m.start(pipeline([stage("report", per_session=True), stage("a"), stage("b")], FOUR))
    m.run()
    assert m.order.count(("", "report")) == 1
    assert m.order[-1] == ("", "report")


def test_a_session_of_stages_for_the_session_alone_leaves_nothing_waiting() -> None:
    m = machine()
    m.start(pipeline([stage("a"), stage("report", per_session=True)], FOUR), stages=(1,))
    m.run()
    assert m.order == [("", "report")]
    assert m.outcomes() == dict.fromkeys(FOUR, "skipped")


def test_a_stage_for_the_session_runs_once_when_its_condition_holds() -> None:
    holds = [1, 0, 0]
    m = machine(cores=1, condition=lambda _element, _stage: holds.pop(0) if holds else 0)
    stages = [stage("a"), stage("report", per_session=True, run_if="enough")]
    m.start(pipeline(stages, {"e1": (), "e2": (), "e3": ()}))
    for element in ("e1", "e2"):
        m.finish(element, "a")
        m.work()
        m.advance(11.0)
        m.pump()
    m.run()
    assert m.order.count(("", "report")) == 1
    assert m.session().over
