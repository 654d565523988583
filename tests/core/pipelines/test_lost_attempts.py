"""Nobody knows how far an attempt came that was lost: where a condition can say it, it is asked first."""

from __future__ import annotations

import pytest

from rota.core.states import State
from tests.core.pipelines.lab import PipelineMachine, machine, pipeline, stage

_ELEMENTS = {"base": (), "app": ("base",)}


def _lost(built: set[str]) -> PipelineMachine:
    """The runner has died while `base` was built with one token."""
    m = machine(condition=lambda element, _stage: 0 if element in built else 1)
    build = stage("build", needs_dependencies=True, skip_if="test -e {name}", retries=1, takes={"x": 1})
    m.start(pipeline([build], _ELEMENTS, {"x": 1}))
    job = m.work()["base", "build"]
    model, _seat = m.running()[job]
    m.looked.clear()
    m.die(model)
    m.settle(model)
    m.with_runner()
    m.advance(1.0)
    m.pump()
    return m


def test_what_is_built_is_not_built_again() -> None:
    built: set[str] = set()
    m = _lost(built)
    built.add("base")
    m.run()
    assert m.looked[0] == ("base", "build")
    assert m.order == [("base", "build"), ("app", "build")]
    assert m.sums("build") == {"skipped": 1, "processed": 1}
    assert m.world.placement.limits.use("x") == (0, False)
    assert [each.event for each in m.told if each.element == "base"] == ["started", "retried", "skipped"]


def test_what_is_not_built_is_built_by_the_next_attempt() -> None:
    m = _lost(set())
    m.run()
    assert m.looked[0] == ("base", "build")
    assert m.order == [("base", "build"), ("base", "build"), ("app", "build")]
    assert m.sums("build") == {"processed": 2}


@pytest.mark.parametrize("answer", [0, 1])
def test_a_pause_and_a_crash_do_not_lose_the_question(answer: int) -> None:
    built: set[str] = set()
    m = _lost(built)
    m.tell("pause")
    m.crash()
    m.with_runner()
    m.tell("resume")
    built |= {"base"} if not answer else set()
    m.run()
    assert m.order.count(("base", "build")) == 1 + answer
    assert m.session().over


def test_what_is_terminated_while_it_is_asked_about_is_terminated() -> None:
    m = _lost(set())
    job = m.session().progress.jobs[0]
    assert m.state(job) is State.READY
    m.tell("terminate")
    m.run()
    assert m.sums("build") == {"terminated": 2}
