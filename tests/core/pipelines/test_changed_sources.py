"""Sessions of the same file one after the other: what changed in between is done again, and what needs it."""

from __future__ import annotations

from tests.core.pipelines.lab import PipelineMachine, machine, pipeline, stage

ELEMENTS = {"base": (), "app": ("base",), "other": ()}
BUILD = stage("build", needs_dependencies=True, run="build {name} {key}")


def _tracked(m: PipelineMachine, *stages: object) -> set[tuple[str, str]]:
    """What a session does."""
    m.order.clear()
    m.start(pipeline([*stages, BUILD], ELEMENTS))  # type: ignore[list-item]
    m.run()
    assert m.session().over
    return set(m.order)


def test_the_condition_of_a_stage_that_redefines_is_asked_in_each_session() -> None:
    changed = set(ELEMENTS)
    m = machine(condition=lambda element, _stage: 1 if element in changed else 0)
    track = stage("track", redefines="refs/{name}", skip_if="same {name}")
    m.digests = dict.fromkeys(ELEMENTS, "a")
    assert len(_tracked(m, track)) == 6
    changed.clear()
    assert _tracked(m, track) == set()
    changed.add("base")
    m.digests["base"] = "b"
    assert _tracked(m, track) == {("base", "track"), ("base", "build"), ("app", "build")}


def test_an_element_that_is_tracked_again_and_is_the_same_is_not_built_again() -> None:
    m = machine(condition=lambda _element, _stage: 0)
    track = stage("track", redefines="refs/{name}", run_if="true")
    m.digests = dict.fromkeys(ELEMENTS, "a")
    assert len(_tracked(m, track)) == 6
    assert _tracked(m, track) == {(element, "track") for element in ELEMENTS}


def test_without_a_condition_an_element_is_tracked_once() -> None:
    m = machine()
    track = stage("track", redefines="refs/{name}")
    m.digests = dict.fromkeys(ELEMENTS, "a")
    assert len(_tracked(m, track)) == 6
    assert _tracked(m, track) == set()
    m.digests["base"] = "b"
    assert _tracked(m, track) == {("base", "build"), ("app", "build")}


def test_a_rerun_forgets_what_was_done_so_that_conditions_alone_decide() -> None:
    stages = [stage("fetch"), stage("build", skip_if="test -e {name}.built")]
    m = machine(condition=lambda element, _stage: 0 if element == "a" else 1)
    definition = pipeline(stages, {"a": (), "b": ()})
    m.start(definition)
    m.run()
    done = len(m.order)
    m.start(definition)
    m.run()
    assert m.order[done:] == []
    m.start(definition, rerun=True)
    m.run()
    assert sorted(m.order[done:]) == [("a", "fetch"), ("b", "build"), ("b", "fetch")]
    done = len(m.order)
    m.start(definition)
    m.run()
    assert m.order[done:] == []
