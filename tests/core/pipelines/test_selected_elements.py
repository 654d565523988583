"""Sessions with selected elements: what was done for the others is known to the session after them."""

from __future__ import annotations

import pytest

from rota.core.pipelines import left_out
from rota.core.pipelines.definition import Definition
from tests.core.pipelines.lab import PipelineMachine, machine, pipeline, stage

_ELEMENTS = {"base": (), "app": ("base",), "other": ()}
_STAGES = (stage("fetch"), stage("build", needs_dependencies=True))


def _begun(m: PipelineMachine, definition: Definition, **fields: object) -> set[tuple[str, str]]:
    """Run a session to its end; what began."""
    m.order.clear()
    m.start(definition, **fields)  # type: ignore[arg-type]
    m.run()
    assert m.session().over
    return set(m.order)


def _left(m: PipelineMachine) -> list[str]:
    left = m.session().left
    return left.names if left is not None else []


def test_what_was_done_for_elements_that_only_leaves_out_is_not_done_again() -> None:
    m = machine()
    definition = pipeline(_STAGES, _ELEMENTS)
    assert len(_begun(m, definition)) == 6
    for only in (["base"], ["other"], ["app"], ["base", "other"]):
        assert _begun(m, definition, only=only) == set()
    assert _begun(m, definition) == set()
    assert m.sums("build") == {"skipped": 3}
    assert _left(m) == []


def test_what_was_not_done_is_done_after_a_chain_of_selections() -> None:
    m = machine()
    definition = pipeline(_STAGES, _ELEMENTS)
    assert {element for element, _stage in _begun(m, definition, only=["base"])} == {"base"}
    assert {element for element, _stage in _begun(m, definition, only=["other"])} == {"other"}
    assert {element for element, _stage in _begun(m, definition)} == {"app"}


def test_an_element_that_ran_again_alone_makes_those_run_again_that_need_it_and_were_left_out() -> None:
    m = machine()
    definition = pipeline(_STAGES, _ELEMENTS)
    _begun(m, definition)
    assert _begun(m, definition, only=["base"], rerun=True) == {("base", "fetch"), ("base", "build")}
    assert _begun(m, definition, only=["other"]) == set()
    assert _begun(m, definition) == {("app", "build")}


def test_only_what_is_known_of_elements_of_the_file_is_kept() -> None:
    m = machine()
    more = {**_ELEMENTS, "new": ()}
    _begun(m, pipeline(_STAGES, _ELEMENTS))
    _begun(m, pipeline(_STAGES, more), only=["base"])
    assert _left(m) == ["app", "other"]  # nothing is known of the new one
    without = {name: depends for name, depends in more.items() if name != "other"}
    _begun(m, pipeline(_STAGES, without), only=["base"])
    assert _left(m) == ["app"]
    assert _begun(m, pipeline(_STAGES, more)) == {(name, of.name) for name in ("other", "new") for of in _STAGES}


def test_stages_may_come_and_go_between_selections() -> None:
    m = machine()
    tidy, report = stage("tidy", per_session=True), stage("report", per_session=True)
    _begun(m, pipeline(_STAGES, _ELEMENTS))
    assert _begun(m, pipeline([tidy, *_STAGES, report], _ELEMENTS), only=["base"]) == {
        ("", "tidy"),
        ("", "report"),
    }
    assert _begun(m, pipeline([_STAGES[0], tidy, _STAGES[1]], _ELEMENTS)) == {("", "tidy")}


def test_what_is_known_of_others_survives_restarts_and_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(left_out, "ROW", 4)
    m = machine()
    definition = pipeline(_STAGES, {f"e{n}": () for n in range(10)})
    _begun(m, definition)
    for only in ("e0", "e7"):
        _begun(m, definition, only=[only])
        m.crash()
        m.heal()
        assert len(_left(m)) == 9
    assert _begun(m, definition) == set()
    assert not [key for key in m.store.load().meta if ".left." in key]


def test_a_selection_that_waits_for_the_end_of_the_session_before_it_knows_what_was_done_after_a_crash() -> None:
    m = machine()
    m.start(pipeline(_STAGES, _ELEMENTS))
    m.finish("base", "fetch")
    m.finish("other", "fetch")
    m.start(pipeline(_STAGES, _ELEMENTS), only=["base"], restart=True)
    m.crash()
    m.heal()
    m.run()
    assert _begun(m, pipeline(_STAGES, _ELEMENTS)) >= {("other", "build")}
    assert ("other", "fetch") not in m.order
    assert ("base", "build") not in m.order


def test_how_long_elements_take_that_are_left_out_is_known_afterwards() -> None:
    m = machine(cores=1)
    m.start(pipeline([stage("build")], {"a": (), "b": ()}))
    m.advance(2.0)
    m.finish("a", "build")
    m.advance(8.0)
    m.finish("b", "build")
    took = m.session().durations[1]
    for restart in (True, False):
        _begun(m, pipeline([stage("build")], {"a": (), "b": ()}), only=["a"])
        if restart:
            m.crash()
            m.heal()
    m.start(pipeline([stage("build", run="again {name}")], {"a": (), "b": ()}))
    assert m.session().measured_s[1] == took
    assert [element for element, _stage in m.work()] == ["b"]
