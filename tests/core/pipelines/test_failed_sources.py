"""What becomes of an element whose first stage fails, so that nobody knows what it is: it has no key."""

from __future__ import annotations

from rota.core.pipelines.definition import Stage
from tests.core.pipelines.lab import PipelineMachine, machine, pipeline, stage

TRACK = stage("track", redefines="refs/{name}")
BUILD = stage("build", needs_dependencies=True, run="build {name} {key}")
STORE = stage("store", also_failed=True, run="store {key}")
TELL = stage("tell", also_failed=True, run="tell {name}")


def _tracked(*stages: Stage, **elements: tuple[str, ...]) -> PipelineMachine:
    """A session with stages after the one that redefines."""
    m = machine()
    m.digests = dict.fromkeys(elements, "a")
    m.start(pipeline([TRACK, *stages], elements))
    return m


def test_a_stage_that_needs_no_key_runs_for_an_element_whose_source_failed() -> None:
    m = _tracked(BUILD, STORE, TELL, bad=(), good=())
    m.run(lambda element, name: 1 if (element, name) == ("bad", "track") else 0)
    assert ("bad", "tell") in m.order
    assert m.sums("tell") == {"processed": 2}
    assert m.outcomes() == {"bad": "failed", "good": "ok"}


def test_a_stage_that_needs_the_key_is_blocked_and_says_why() -> None:
    m = _tracked(BUILD, STORE, TELL, bad=(), good=())
    m.run(lambda element, name: 1 if (element, name) == ("bad", "track") else 0)
    assert m.sums("store") == {"blocked": 1, "processed": 1}
    (blocked,) = [each for each in m.told if each.event == "blocked" and each.stage == "store"]
    assert (blocked.element, blocked.by, blocked.lacks) == ("bad", "bad", "key")
    (built,) = [each for each in m.told if each.event == "blocked" and each.stage == "build"]
    assert built.lacks is None


def test_what_depends_on_an_element_whose_source_failed_is_blocked_by_it() -> None:
    m = _tracked(TELL, BUILD, bad=(), app=("bad",), top=("app",))
    m.finish("app", "track")
    m.finish("top", "track")
    m.finish("bad", "track", 1)
    m.run()
    assert m.outcomes() == {"bad": "failed", "app": "blocked", "top": "blocked"}
    blocked = {(each.element, each.by) for each in m.told if each.event == "blocked"}
    assert blocked == {("bad", "bad"), ("app", "bad"), ("top", "bad")}


def test_the_key_is_known_of_an_element_that_jumps_over_the_stages_that_need_it() -> None:
    track = stage("track", redefines="refs/{name}", skip_to="push", skip_if="same {name}")
    m = machine(condition=lambda element, _stage: 0 if element == "app" else 1)
    m.digests = {"base": "a", "app": "b"}
    m.start(pipeline([track, BUILD, stage("push", run="push {key}")], {"base": (), "app": ("base",)}))
    m.run()
    assert m.outcomes() == {"base": "ok", "app": "ok"}
    assert m.order == [("base", "track"), ("base", "push"), ("app", "build"), ("app", "push")]


def test_a_condition_that_uses_the_key_needs_it_too() -> None:
    asks = stage("store", also_failed=True, run="store {name}", skip_if="stored {key}")
    m = _tracked(asks, bad=())
    m.run(lambda _element, _name: 1)
    assert m.sums("store") == {"blocked": 1}
    assert m.looked == []


def test_the_key_is_known_to_what_follows_a_later_failure_after_a_restart_too() -> None:
    m = _tracked(BUILD, STORE, bad=(), top=("bad",))
    m.finish("bad", "track")
    m.finish("top", "track")
    m.work()
    m.crash()
    m.with_runner()
    m.heal()
    m.run(lambda element, name: 1 if (element, name) == ("bad", "build") else 0)
    assert m.sums("store") == {"processed": 1, "blocked": 1}


def test_an_element_is_built_after_a_restart_though_its_dependency_had_left_before() -> None:
    m = _tracked(BUILD, base=(), app=("base",))
    m.finish("base", "track")
    m.finish("base", "build")
    m.crash()
    m.with_runner()
    m.heal()
    m.run()
    assert m.outcomes() == {"base": "ok", "app": "ok"}
    keys = m.session().flow.marks.keys
    assert None not in keys
    assert len({*keys}) == 2
