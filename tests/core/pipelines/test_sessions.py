"""Sessions of pipelines in the engine: elements flow through stages as jobs."""

from __future__ import annotations

import re
from typing import Any

import pytest

from rota.core.events import SiteChanged
from rota.core.jobs.explain import why
from rota.core.pipelines.session import Sessions
from rota.core.states import State
from rota.errors import BadInput, NeverFits, NotFound, RotaError
from rota.plan.size import Size
from tests.core.pipelines.lab import PipelineMachine, machine, pipeline, stage

TWO = {"e1": (), "e2": ()}


def test_elements_flow_through_stages_after_their_dependencies() -> None:
    m = machine()
    m.start(pipeline([stage("fetch"), stage("build", needs_dependencies=True)], {"base": (), "app": ("base",)}))
    assert set(m.work()) == {("base", "fetch"), ("app", "fetch")}
    m.finish("app", "fetch")
    assert set(m.work()) == {("base", "fetch")}  # it waits for its dependency
    m.finish("base", "fetch")
    assert set(m.work()) == {("base", "build")}
    m.finish("base", "build")
    m.finish("app", "build")
    assert m.session().over
    assert m.sums("fetch") == m.sums("build") == {"processed": 2}
    assert m.outcomes() == {"base": "ok", "app": "ok"}


def test_an_element_that_misses_in_pull_is_fetched_before_the_next_is_pulled() -> None:
    m = machine()
    stages = [stage("pull", takes={"download": 1}), stage("fetch", takes={"download": 1})]
    m.start(pipeline(stages, TWO, {"download": 1}))
    m.finish("e1", "pull", 77)
    assert set(m.work()) == {("e1", "fetch")}
    m.run(lambda _element, name: 77 if name == "pull" else 0)
    assert m.order == [("e1", "pull"), ("e1", "fetch"), ("e2", "pull"), ("e2", "fetch")]
    assert m.sums("pull") == {"skipped": 2}


def test_what_is_skipped_in_three_stages_is_ready_in_the_fourth_in_the_same_pass() -> None:
    skipped = {"one", "two", "three"}
    m = machine(condition=lambda _element, stage: 0 if stage in skipped else 1)
    stages = [stage(name, skip_if="test", takes={"token": 1}) for name in ("one", "two", "three", "four")]
    m.start(pipeline(stages, {"e1": ()}, {"token": 1}))
    assert set(m.work()) == {("e1", "four")}
    assert m.looked == [("e1", name) for name in ("one", "two", "three", "four")]
    assert [name for name in m.order if name[1] in skipped] == []
    jobs = [job for job in m.session().progress.jobs if job]
    assert len(jobs) == 1  # one job for all four stages
    m.finish("e1", "four")
    assert m.outcomes() == {"e1": "ok"}


def test_the_last_stage_goes_first_then_the_deepest_then_the_first_to_arrive() -> None:
    m = machine(cores=1)
    elements: dict[str, tuple[str, ...]] = {"leaf": (), "base": (), "mid": ("base",), "top": ("mid",)}
    m.start(pipeline([stage("a"), stage("b")], elements))
    m.run()
    assert m.order == [
        *(("base", "a"), ("base", "b"), ("mid", "a"), ("mid", "b")),
        *(("leaf", "a"), ("leaf", "b"), ("top", "a"), ("top", "b")),
    ]


def test_sessions_never_interleave_by_stage() -> None:
    m = machine(cores=1)
    first = m.start(pipeline([stage("a"), stage("b")], {"f1": (), "f2": ()}), file="/first")
    m.start(pipeline([stage("a"), stage("b")], {"s1": ()}), file="/second")
    m.run()
    assert [element for element, _stage in m.order] == ["f1", "f1", "f2", "f2", "s1", "s1"]
    assert m.session(first).over


def test_a_plain_job_goes_between_two_sessions_by_its_age() -> None:
    m = machine(cores=1)
    m.start(pipeline([stage("a")], {"f1": (), "f2": ()}), file="/first")
    (plain,) = m.add("plain").added
    m.start(pipeline([stage("a")], {"s1": ()}), file="/second")
    m.finish("f1", "a")
    assert set(m.work()) == {("f2", "a")}
    m.finish("f2", "a")
    assert list(m.running()) == [plain]
    m.end(plain)
    assert set(m.work()) == {("s1", "a")}


def test_on_ok_jumps_over_stages_but_not_over_those_that_are_always_taken() -> None:
    m = machine()
    stages = [stage("pull", skip_to="push"), stage("fetch"), stage("log", always=True), stage("push")]
    m.start(pipeline(stages, {"hit": (), "miss": ()}))
    m.run(lambda element, name: 77 if (element, name) == ("miss", "pull") else 0)
    assert m.sums("fetch") == {"processed": 1, "skipped": 1}
    assert m.sums("log") == m.sums("push") == {"processed": 2}
    assert {("hit", "fetch"), ("miss", "fetch")} & set(m.order) == {("miss", "fetch")}


def test_a_stage_that_is_always_taken_does_not_shorten_a_jump_over_it() -> None:
    m = machine()
    stages = [
        stage("pull", skip_to="push"),
        stage("log", always=True, skip_to="build"),
        stage("build"),
        stage("push"),
    ]
    m.start(pipeline(stages, {"e1": ()}))
    m.run()
    assert m.order == [("e1", "pull"), ("e1", "log"), ("e1", "push")]


def test_a_source_that_is_built_already_is_not_fetched() -> None:
    m = machine(condition=lambda element, _stage: 0 if element == "built" else 1)
    stages = [stage("fetch"), stage("build", imperative=True, skip_if="test"), stage("push")]
    m.start(pipeline(stages, {"built": (), "new": ()}))
    m.run()
    assert sorted(m.order) == [("built", "push"), ("new", "build"), ("new", "fetch"), ("new", "push")]
    assert m.sums("fetch") == m.sums("build") == {"processed": 1, "skipped": 1}


def test_a_stage_that_is_always_taken_needs_no_later_stage() -> None:
    m = machine(condition=lambda _element, _stage: 0)
    stages = [stage("fetch", always=True), stage("build", imperative=True, skip_if="test")]
    m.start(pipeline(stages, {"e1": ()}))
    m.run()
    assert m.order == [("e1", "fetch")]


def test_run_if_is_the_opposite_of_skip_if() -> None:
    m = machine(condition=lambda element, _stage: 0 if element == "e1" else 1)
    m.start(pipeline([stage("a", run_if="test")], TWO))
    m.run()
    assert m.order == [("e1", "a")]
    assert m.outcomes() == {"e1": "ok", "e2": "skipped"}


def test_a_condition_that_takes_too_long_or_ends_by_a_signal_fails_the_element() -> None:
    m = machine(condition=lambda element, _stage: {"late": -1, "killed": 137}.get(element, 1))
    m.start(pipeline([stage("a", skip_if="test"), stage("b")], {"late": (), "killed": (), "fine": ()}))
    m.run()
    assert m.outcomes() == {"late": "failed", "killed": "failed", "fine": "ok"}
    assert m.sums("b") == {"blocked": 2, "processed": 1}


def test_stages_that_are_not_selected_are_in_no_sum() -> None:
    m = machine()
    m.start(pipeline([stage("a"), stage("b"), stage("c")], TWO), stages=(0, 2))
    m.run()
    assert {name for _element, name in m.order} == {"a", "c"}
    assert not m.session().route.counted[1]


def test_the_same_file_attaches_to_its_session_and_a_changed_one_is_refused() -> None:
    m = machine()
    definition = pipeline([stage("a")], TWO)
    number = m.start(definition)
    assert m.start(definition) == number
    changed = pipeline([stage("a", run="other {name}")], TWO)
    with pytest.raises(BadInput, match="has changed since its session was started"):
        m.start(changed)
    again = m.start(changed, restart=True)
    assert again != number
    m.run()
    assert m.outcomes() == {"e1": "ok", "e2": "ok"}


def test_watchers_are_told_the_end_of_each_session_that_is_replaced_before_they_hear_of_it() -> None:
    m = machine(cores=1)
    definition = pipeline([stage("build")], {"a": (), "b": ()})
    numbers = [m.start(definition)]
    assert m.work()
    asked = [
        m.ask_to_start(definition, restart=True) for _ in range(3)
    ]  # decided before any effect is carried out
    numbers += [int(m.answer(each).session) for each in asked]
    m.run()
    assert [(each.session, each.state) for each in m.ended] == [(number, "ended") for number in numbers]
    assert [each.elements["b"] for each in m.ended] == ["terminated", "terminated", "terminated", "ok"]
    assert [each.failed for each in m.ended] == [True, True, True, False]


def test_running_the_same_file_again_runs_only_what_is_missing() -> None:
    m = machine()
    definition = pipeline(
        [stage("a"), stage("b", needs_dependencies=True)], {"base": (), "app": ("base",), "x": ()}
    )
    m.start(definition)
    m.run(lambda element, name: 1 if (element, name) == ("app", "b") else 0)
    assert m.outcomes() == {"base": "ok", "app": "failed", "x": "ok"}
    m.order.clear()
    m.start(definition)
    m.run()
    assert m.order == [("app", "b")]
    assert m.outcomes() == {"base": "skipped", "app": "ok", "x": "skipped"}
    assert m.sums("b") == {"skipped": 2, "processed": 1}


def test_what_changed_runs_again_with_its_later_stages_and_its_dependents() -> None:
    m = machine()
    stages = [stage("a", run="a {name} {v}"), stage("b", needs_dependencies=True)]
    elements = {"base": (), "app": ("base",), "x": ()}
    first = pipeline(stages, elements)
    m.start(_with_values(first, {"base": "1", "app": "1", "x": "1"}))
    m.run()
    m.order.clear()
    m.start(_with_values(first, {"base": "2", "app": "1", "x": "1"}))
    m.run()
    assert {("base", "a"), ("base", "b"), ("app", "b")} <= set(m.order)
    assert ("x", "a") not in m.order
    assert ("x", "b") not in m.order


def _with_values(definition, values):  # type: ignore[no-untyped-def]
    from msgspec.structs import replace

    elements = tuple(replace(each, own=(("v", values[each.name]),)) for each in definition.elements)
    return replace(definition, elements=elements)


def test_a_stage_that_redefines_elements_gives_their_keys_after_it_has_run() -> None:
    m = machine()
    stages = [
        stage("track", redefines="refs/{name}"),
        stage("build", needs_dependencies=True, run="build {name} {key}"),
    ]
    m.digests = {"base": "aa", "app": "bb"}
    m.start(pipeline(stages, {"base": (), "app": ("base",)}))
    m.finish("app", "track")
    assert set(m.work()) == {("base", "track")}  # its key has that of its dependency in it
    m.finish("base", "track")
    job = m.work()["base", "build"]
    key = m.session().flow.marks.key(0)
    assert key is not None
    assert m.world.jobs[job].cmd == f"build base {key}"
    m.run()
    assert m.outcomes() == {"base": "ok", "app": "ok"}


def test_a_limit_with_another_figure_in_force_is_refused_with_a_hint() -> None:
    m = machine()
    m.start(pipeline([stage("a", takes={"t": 1})], {"e1": ()}, {"t": 2}), file="/one")
    with pytest.raises(BadInput, match="limit 't' has 2 units, and the file says 3") as refused:
        m.start(pipeline([stage("a", takes={"t": 1})], {"e1": ()}, {"t": 3}), file="/two")
    assert "rota limit t:3" in refused.value.hint
    assert m.world.placement.limits.get("t").capacity == 2  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("fields", "error", "message", "field"),
    [
        ({"where": "colour = 'red'"}, BadInput, "stage 'b', field 'where': unknown property 'colour'", "where"),
        ({"prefer": "colour = 'red'"}, BadInput, "stage 'b', field 'prefer': unknown property 'colour'", "prefer"),
        ({"request": ("/rack=1",)}, BadInput, "stage 'b', field 'request': ", "request"),
        ({"force_host": "h9"}, BadInput, "stage 'b', field 'force_host': there is no host 'h9'", "force_host"),
        ({"where": "host = 'h9'"}, NeverFits, "stage 'b': never fits: none of the", ""),
        ({"size": Size(cpus=100_000)}, NeverFits, "stage 'b': never fits: asked 1000 cpus", ""),
    ],
)
def test_a_stage_that_no_host_could_run_is_refused_before_anything_is_stored(
    fields: dict[str, Any], error: type[RotaError], message: str, field: str
) -> None:
    m = machine()
    two = pipeline([stage("a", takes={"t": 1}), stage("b", also_failed=True)], TWO, {"t": 1})
    with pytest.raises(error, match=f"^{re.escape(message)}") as refused:
        m.start(two, of_stage={"b": fields})
    assert refused.value.field == field
    assert not m.sessions()
    assert m.world.placement.limits.get("t") is None
    m.crash()
    assert m.world.find(Sessions) is None
    m.with_runner()
    m.start(two, stages=(0,), of_stage={"b": fields})  # it never comes to the other one
    m.run()
    assert m.outcomes() == dict.fromkeys(TWO, "ok")


def test_a_refused_restart_leaves_the_running_session_alone() -> None:
    m = machine()
    m.start(pipeline([stage("a")], TWO))
    with pytest.raises(NeverFits, match="stage 'b': never fits"):
        m.start(pipeline([stage("b")], TWO), restart=True, of_stage={"b": {"size": Size(cpus=100_000)}})
    m.run()
    assert m.outcomes() == dict.fromkeys(TWO, "ok")


def test_a_stage_whose_property_was_removed_waits_with_a_reason_until_it_is_back() -> None:
    m = machine()
    _change(m, ("property", "colour", {"type": "text"}))
    m.start(pipeline([stage("a"), stage("b")], TWO), of_stage={"b": {"where": "colour is null"}})
    _change(m, ("property", "colour", None))
    m.finish("e1", "a")
    m.finish("e2", "a")
    waiting = sorted(m.session().live)
    assert m.states(*waiting) == [State.READY, State.READY]
    for job in waiting:
        said = [each.message for each in why(m.world, m.world.jobs[job], wall=m.wall)]
        assert any("never fits: unknown property 'colour'" in each for each in said), said
    (plain,) = m.add("true").added
    assert m.state(plain) is State.RUNNING
    m.crash()
    m.with_runner()
    m.heal()
    assert m.states(*waiting) == [State.READY, State.READY]
    _change(m, ("property", "colour", {"type": "text"}))
    m.run()
    assert m.outcomes() == dict.fromkeys(TWO, "ok")


def _change(m: PipelineMachine, *changes: tuple[str, str, Any]) -> None:
    by = m.asker()
    m.happened(SiteChanged(by=by, changes=list(changes)))
    m.answer(by.n)


def test_requests_about_nothing_are_refused() -> None:
    m = machine()
    m.start(pipeline([stage("a")], TWO))
    with pytest.raises(NotFound, match="there is no session 99"):
        m.tell("pause", session=99)
    with pytest.raises(BadInput, match="'dance' is nothing that a session does"):
        m.tell("dance")
    with pytest.raises(NotFound, match="there is no element 'e9'"):
        m.tell("retry", "e9")


def test_a_deployment_without_pipelines_calls_nothing_of_them() -> None:
    m = PipelineMachine()
    m.with_runner()
    m.add("true")
    assert not m.world.points.queued
    assert not m.world.points.judged


def test_an_element_is_not_ok_before_it_has_left_the_last_stage() -> None:
    m = machine()
    m.start(pipeline([stage("fetch"), stage("build", needs_dependencies=True)], {"base": (), "app": ("base",)}))
    m.finish("app", "fetch")
    m.advance(5.0)
    m.pump()
    assert m.outcomes() == {"base": "running", "app": "waiting"}
    m.finish("base", "fetch")
    m.advance(5.0)
    m.pump()
    assert m.outcomes() == {"base": "running", "app": "waiting"}
    m.run()
    assert m.outcomes() == {"base": "ok", "app": "ok"}
