"""What people do to single jobs of a session: hold, release, suspend, kill and retry them."""

from __future__ import annotations

import pytest

from rota.core.states import State
from tests.core.pipelines.lab import PipelineMachine, machine, pipeline, stage

THREE = {"e1": (), "e2": (), "e3": ()}


def _waiting(m: PipelineMachine, element: str) -> int:
    """The job of an element at the first stage."""
    session = m.session()
    (place,) = [n for n, each in enumerate(session.definition.elements) if each.name == element]
    return session.progress.jobs[session.progress.cell(place, 0)]


def test_a_job_that_is_held_waits_through_a_pause_and_a_restart_until_it_is_released() -> None:
    m = machine(cores=1)
    m.start(pipeline([stage("a"), stage("b")], THREE))
    held = _waiting(m, "e3")
    m.do("hold", held)
    m.tell("pause")
    m.crash()
    m.with_runner()
    m.heal()
    m.tell("resume")
    m.finish("e1", "a")
    m.finish("e1", "b")
    m.finish("e2", "a")
    m.finish("e2", "b")
    assert (m.state(held), m.session().over) == (State.HELD, False)
    m.do("release", held)
    m.pump()
    m.run()
    assert m.outcomes() == dict.fromkeys(THREE, "ok")


def test_a_job_that_is_released_while_its_session_stands_still_waits_for_the_session() -> None:
    m = machine(cores=1)
    m.start(pipeline([stage("a")], THREE))
    held = _waiting(m, "e3")
    m.do("hold", held)
    m.tell("pause")
    m.do("release", held)
    m.pump()
    assert m.state(held) is State.READY
    m.tell("resume")
    m.run()
    assert m.outcomes() == dict.fromkeys(THREE, "ok")


@pytest.mark.parametrize("verb", ["terminate", "quit"])
def test_a_job_that_is_held_ends_with_its_session(verb: str) -> None:
    m = machine(cores=1)
    m.start(pipeline([stage("a")], THREE))
    m.do("hold", _waiting(m, "e3"))
    m.tell(verb)
    m.run()
    assert m.session().over
    assert m.outcomes()["e3"] == "terminated"


def test_a_job_that_a_person_suspended_runs_again_with_its_session() -> None:
    m = machine(cores=1)
    m.start(pipeline([stage("a")], {"e1": ()}))
    job = m.work()["e1", "a"]
    m.do("suspend", job)
    m.pump()
    m.tell("pause")
    m.tell("resume")
    m.pump()
    assert m.state(job) is State.RUNNING
    m.run()
    assert m.outcomes() == {"e1": "ok"}


def test_retrying_a_job_takes_its_element_back() -> None:
    m = machine()
    m.start(pipeline([stage("a"), stage("b", needs_dependencies=True)], {"bad": (), "app": ("bad",)}))
    failed = m.work()["bad", "a"]
    m.run(lambda element, name: 1 if (element, name) == ("bad", "a") else 0)
    assert m.do("retry", failed).changed == [failed]
    m.run()
    assert m.outcomes() == {"bad": "ok", "app": "ok"}
    assert m.order.count(("bad", "a")) == 2
    assert m.sums("b") == {"processed": 2}
    assert m.do("retry", failed).changed == []  # another job has taken its place


def test_retrying_a_job_of_a_session_that_is_gone_changes_nothing() -> None:
    m = machine()
    definition = pipeline([stage("a")], {"bad": ()})
    m.start(definition)
    failed = m.work()["bad", "a"]
    m.run(lambda _element, _name: 1)
    m.start(definition)
    m.run()
    assert m.do("retry", failed).changed == []
    assert m.order.count(("bad", "a")) == 2
