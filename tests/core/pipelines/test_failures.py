"""What a failure means for an element, for those that depend on it, and for the session."""

from __future__ import annotations

import pytest

from rota.core.pipelines.session_records import SessionAttended
from rota.core.states import State
from tests.core.pipelines.lab import PipelineMachine, machine, pipeline, stage

SIBLINGS = {"bad1": (), "bad2": ()}


def test_a_temporary_error_with_two_retries_is_tried_three_times_and_a_permanent_one_once() -> None:
    m = machine()
    m.start(pipeline([stage("a", retries=2)], {"e1": (), "e2": ()}))
    m.run(lambda element, _stage: 75 if element == "e1" else 1)
    assert [element for element, _stage in m.order].count("e1") == 3
    assert [element for element, _stage in m.order].count("e2") == 1
    ends = {each.element: each.outcome for each in m.told if each.event == "ended"}
    assert ends == {"e1": "failed", "e2": "failed-permanently"}
    assert [each.attempt for each in m.told if each.event == "retried"] == [1, 2]


def test_a_temporary_error_may_be_over_at_the_next_attempt() -> None:
    m = machine()
    codes = iter([75, 0])
    m.start(pipeline([stage("a", retries=2)], {"e1": ()}))
    m.run(lambda _element, _stage: next(codes))
    assert m.sums("a") == {"processed": 1}
    assert m.outcomes() == {"e1": "ok"}


def test_dependents_of_a_failure_are_blocked_by_name_and_others_go_on() -> None:
    m = machine()
    stages = [stage("fetch"), stage("build", needs_dependencies=True)]
    m.start(pipeline(stages, {"bad": (), "mid": ("bad",), "top": ("mid",), "other": ()}))
    m.run(lambda element, name: 1 if (element, name) == ("bad", "build") else 0)
    assert m.outcomes() == {"bad": "failed", "mid": "blocked", "top": "blocked", "other": "ok"}
    blocked = {each.element: each.by for each in m.told if each.event == "blocked"}
    assert blocked == {"mid": "bad", "top": "bad"}
    assert m.sums("build") == {"failed": 1, "blocked": 2, "processed": 1}


def test_later_stages_of_a_failure_are_blocked() -> None:
    m = machine()
    m.start(pipeline([stage("a"), stage("b"), stage("c")], {"e1": ()}))
    m.run(lambda _element, name: 1 if name == "a" else 0)
    assert m.sums("b") == m.sums("c") == {"blocked": 1}


def test_quit_with_one_builder_and_two_failing_siblings_attempts_one_and_pushes_its_failure() -> None:
    m = machine()
    stages = [
        stage("build", imperative=True, takes={"process": 1}),
        stage("push", also_failed=True),
    ]
    m.start(pipeline(stages, SIBLINGS, {"process": 1}), on_error="quit")
    m.finish("bad1", "build", 1)
    pushed = m.work()["bad1", "push"]
    assert m.world.jobs[pushed].spec.env == 2  # that of failed elements
    m.run()
    assert m.order == [("bad1", "build"), ("bad1", "push")]
    assert m.outcomes() == {"bad1": "failed", "bad2": "terminated"}
    assert m.sums("build") == {"failed": 1, "terminated": 1}
    assert m.sums("push") == {"processed": 1, "terminated": 1}


def test_after_quit_what_runs_ends_and_later_stages_drain() -> None:
    m = machine()
    stages = [stage("fetch"), stage("build", imperative=True), stage("push")]
    m.start(pipeline(stages, {"bad": (), "good": (), "slow": ()}), on_error="quit")
    m.finish("bad", "fetch")
    m.finish("good", "fetch")
    m.finish("bad", "build", 1)
    assert set(m.work()) == {("good", "build"), ("slow", "fetch")}
    m.finish("good", "build")
    m.finish("slow", "fetch")
    m.run()
    assert m.outcomes() == {"bad": "failed", "good": "ok", "slow": "terminated"}
    assert ("slow", "build") not in m.order
    assert ("good", "push") in m.order


def test_terminate_stops_everything_and_counts_it_as_terminated_not_failed() -> None:
    m = machine(cores=2)
    elements = {"bad": (), "runs": (), "waits": (), "later": ("waits",)}
    m.start(pipeline([stage("a", needs_dependencies=True), stage("b")], elements), on_error="terminate")
    m.finish("bad", "a", 1)
    m.run()
    assert m.session().over
    assert m.outcomes() == {"bad": "failed", "runs": "terminated", "waits": "terminated", "later": "terminated"}
    assert m.sums("a") == {"failed": 1, "terminated": 3}
    assert m.sums("b") == {"blocked": 1, "terminated": 3}
    assert m.running() == {}


def test_ask_with_nobody_attached_is_continue() -> None:
    m = machine()
    m.start(pipeline([stage("a")], {"bad": (), "good": ()}), on_error="ask")
    m.finish("bad", "a", 1)
    assert m.session().record.state == "running"
    m.run()
    assert m.outcomes() == {"bad": "failed", "good": "ok"}


@pytest.mark.parametrize(
    ("answer", "outcomes"),
    [
        ("continue", {"bad": "failed", "good": "ok", "next": "ok"}),
        ("quit", {"bad": "failed", "good": "ok", "next": "terminated"}),
        ("terminate", {"bad": "failed", "good": "terminated", "next": "terminated"}),
    ],
)
def test_ask_suspends_the_jobs_until_somebody_answers(answer: str, outcomes: dict[str, str]) -> None:
    m = machine(cores=2)
    m.start(pipeline([stage("a")], {"bad": (), "good": (), "next": ()}), on_error="ask")
    m.happened(SessionAttended(session=m.session().number, clients=1))
    good = m.work()["good", "a"]
    m.finish("bad", "a", 1)
    assert m.session().record.state == "asking"
    assert m.state(good) is State.SUSPENDED
    assert set(m.work()) == {("good", "a")}  # nothing new begins
    assert m.tell(answer) == 1
    m.run()
    assert m.outcomes() == outcomes


def test_a_retried_element_passes_downstream_once_and_is_no_longer_counted_as_failed() -> None:
    m = machine()
    m.start(pipeline([stage("a"), stage("b", needs_dependencies=True)], {"bad": (), "app": ("bad",)}))
    m.run(lambda element, name: 1 if (element, name) == ("bad", "a") else 0)
    assert m.outcomes() == {"bad": "failed", "app": "blocked"}
    assert m.session().over
    assert m.tell("retry") == 1
    assert not m.session().over
    m.run()
    assert m.outcomes() == {"bad": "ok", "app": "ok"}
    assert m.order.count(("bad", "b")) == m.order.count(("app", "b")) == 1
    assert m.sums("a") == m.sums("b") == {"processed": 2}


def test_retry_answers_the_question() -> None:
    m = machine()
    m.start(pipeline([stage("a"), stage("b")], {"bad": (), "good": ()}), on_error="ask")
    m.happened(SessionAttended(session=m.session().number, clients=1))
    m.finish("bad", "a", 1)
    assert m.tell("retry") == 1
    assert m.session().record.state == "running"
    m.run()
    assert m.outcomes() == {"bad": "ok", "good": "ok"}


def test_a_question_is_over_when_the_last_client_leaves() -> None:
    m = machine()
    m.start(pipeline([stage("a")], {"bad": (), "good": ()}), on_error="ask")
    m.happened(SessionAttended(session=m.session().number, clients=1))
    m.finish("bad", "a", 1)
    m.happened(SessionAttended(session=m.session().number, clients=0))
    m.pump()
    assert m.session().record.state == "running"
    m.run()
    assert m.outcomes() == {"bad": "failed", "good": "ok"}


def test_a_job_that_somebody_kills_is_terminated_and_blocks_what_depends_on_it() -> None:
    m = machine()
    m.start(pipeline([stage("a", needs_dependencies=True), stage("b")], {"base": (), "app": ("base",)}))
    m.do("kill", m.work()["base", "a"])
    m.pump()
    m.run()
    assert m.outcomes() == {"base": "terminated", "app": "blocked"}
    assert m.sums("b") == {"blocked": 2}


def _two_failures_while_asked() -> PipelineMachine:
    """One element has failed and is asked about; another has failed since, as it was not suspended in time."""
    m = machine()
    m.start(pipeline([stage("a")], {"bad1": (), "bad2": (), "good": ()}), on_error="ask")
    m.happened(SessionAttended(session=m.session().number, clients=1))
    m.pump()
    m.finish("bad1", "a", 1)
    m.end(m.session().progress.jobs[m.session().progress.cell(1, 0)], exit_code=1)
    m.pump()
    assert m.session().record.question == (0, 0)
    return m


def test_what_fails_during_a_question_is_asked_about_after_the_answer() -> None:
    m = _two_failures_while_asked()
    m.tell("continue")
    assert (m.session().record.state, m.session().record.question) == ("asking", (1, 0))
    assert [each.element for each in m.told if each.event == "asked"] == ["bad1", "bad2"]
    m.crash()
    m.with_runner()
    assert m.session().record.question == (1, 0)


def test_what_is_retried_before_its_question_is_not_asked_about() -> None:
    m = _two_failures_while_asked()
    m.tell("retry", "bad1", "bad2")
    assert m.session().record.state == "running"
    m.run()
    assert m.outcomes() == dict.fromkeys(("bad1", "bad2", "good"), "ok")


@pytest.mark.parametrize("answer", ["quit", "terminate"])
def test_an_answer_that_ends_the_session_answers_for_later_failures_too(answer: str) -> None:
    m = _two_failures_while_asked()
    m.tell(answer)
    m.run()
    assert m.session().over
    assert [each.element for each in m.told if each.event == "asked"] == ["bad1"]


def test_questions_that_wait_are_forgotten_when_nobody_can_answer() -> None:
    m = _two_failures_while_asked()
    m.happened(SessionAttended(session=m.session().number, clients=0))
    m.pump()
    m.run()
    assert m.outcomes() == {"bad1": "failed", "bad2": "failed", "good": "ok"}
