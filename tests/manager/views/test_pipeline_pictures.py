"""Pictures of sessions: what they count is what the session counts, and what they blame is what failed."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from rota.core.pipelines.definition import Definition
from rota.core.pipelines.session import Session
from rota.manager.views import pipeline_pictures as views
from rota.manager.views.session_snapshot import SessionSnapshot, take
from rota.wire.pipeline_pictures import ElementPage
from tests.core.pipelines.lab import PipelineMachine, machine, pipeline, stage
from tests.dose import dose

STAGES = [
    stage("fetch"),
    stage("build", needs_dependencies=True, imperative=True),
    stage("push", also_failed=True),
]


def _started(definition: Definition, cores: int = 2) -> PipelineMachine:
    made = machine(cores=cores)
    made.start(definition)
    return made


def _taken(m: PipelineMachine) -> tuple[Session, SessionSnapshot]:
    session = m.session()
    return session, take(session, m.world, m.wall)


def _page(
    taken: SessionSnapshot, *, state: str = "", stage: int | None = None, search: str = "", offset: int = 0
) -> ElementPage:
    return views.element_page(taken, state=state, stage=stage, search=search, offset=offset, limit=100)


@st.composite
def definitions(draw: st.DrawFn) -> Definition:
    names = [f"e{n}" for n in range(draw(st.integers(1, 8)))]
    depends: dict[str, list[str]] = {}
    for name in names:
        known = list(depends)
        depends[name] = draw(st.lists(st.sampled_from(known), max_size=2, unique=True)) if known else []
    return pipeline(STAGES, depends)


@dose(30)
@given(
    definitions(),
    st.integers(0, 30),
    st.sets(st.tuples(st.sampled_from([f"e{n}" for n in range(8)]), st.sampled_from(["fetch", "build", "push"]))),
)
def test_at_any_moment_a_picture_counts_what_the_session_counts(
    definition: Definition, steps: int, failing: set[tuple[str, str]]
) -> None:
    m = _started(definition)
    for _ in range(steps):
        if not (work := m.work()):
            break
        m.finish(*min(work), exit_code=int(min(work) in failing))
    m.work()
    session, taken = _taken(m)
    flow, names = session.flow, [each.name for each in definition.elements]
    outcomes = views.outcomes(taken)
    assert sum(outcomes.values()) == len(names)
    left = [place for place in range(len(names)) if flow.at[place] < len(STAGES)]
    assert [taken.elements[place].at is not None for place in range(len(names))] == [
        p in left for p in range(len(names))
    ]
    for place in range(len(names)):
        if place not in left:
            assert taken.elements[place].state == flow.outcome(place)
    for at in taken.stages:
        letters = views.stretches(taken, at)
        assert len(letters) == len(names)  # so few that each is one
        sums = session.progress.sums(at)
        assert letters.count("r") == sums["running"]
        assert letters.count("f") == sums["failed"]
        assert letters.count("o") == sums["processed"]
        for state in ("failed", "blocked", "running", "waiting"):
            assert _page(taken, state=state, stage=at).total == sums[state]
    for state, number in outcomes.items():
        assert _page(taken, state=state).total == number
    culprits = taken.culprits
    for place in range(len(names)):
        known = flow.culprit(place)
        assert culprits[place] == (-1 if known is None else known[0])
    found, total = views.failures(taken)
    assert total == outcomes["failed"]
    assert {each.element: each.blocks for each in found} == {
        names[place]: sum(culprit == place and other != place for other, culprit in enumerate(culprits))
        for place in range(len(names))
        if taken.elements[place].state == "failed"
    }


def test_a_failure_says_what_it_blocks_and_what_is_blocked_says_by_whom() -> None:
    m = _started(pipeline(STAGES, {"a": [], "b": ["a"], "c": ["b"], "d": []}))
    m.run(lambda element, at: int((element, at) == ("a", "build")))
    _session, taken = _taken(m)
    (failure,), total = views.failures(taken)
    assert (failure.element, failure.stage, failure.outcome) == ("a", "build", "failed-permanently")
    assert (failure.blocks, failure.blocked, total) == (2, ["b", "c"], 1)
    blocked = {each.name: (each.blocked_by, each.blocked_at) for each in _page(taken, state="blocked").elements}
    assert blocked == {"b": ("a", "build"), "c": ("a", "build")}


def test_an_element_says_what_it_waits_for_and_where() -> None:
    m = _started(pipeline(STAGES, {"a": [], "b": [], "c": ["a", "b"]}), cores=3)
    m.finish("c", "fetch")
    _session, taken = _taken(m)
    element = _page(taken, search="C").elements[0]
    assert (element.name, element.at, element.statuses) == ("c", "build", "opa")
    assert element.waits_for == ["a", "b"]
    assert element.jobs[0] is not None
    assert element.jobs[1:] == [None, None]


def test_many_elements_become_stretches_in_which_failures_are_seen() -> None:
    definition = pipeline([stage("build")], {f"e{n:04d}": [] for n in range(1000)})
    m = _started(definition, cores=1)
    for element in ("e0000", "e0001"):
        m.finish(element, "build", exit_code=int(element == "e0001"))
    _session, taken = _taken(m)
    letters = views.stretches(taken, 0)
    assert views.stretch(taken) == 5
    assert Counter(letters) == {"f": 1, "w": 199}
    assert letters[0] == "f"
    page = _page(taken, offset=995)
    assert ([each.name for each in page.elements], page.total) == ([f"e{n:04d}" for n in range(995, 1000)], 1000)


def test_the_time_left_is_that_of_the_longest_chain_once_something_was_measured() -> None:
    chain = {"a": [], "b": ["a"], "c": ["b"], "d": ["c"]}
    m = _started(pipeline([stage("build", needs_dependencies=True)], chain))
    m.work()
    assert views.time_left(_taken(m)[1]) == (None, None)
    m.advance(10.0)
    m.finish("a", "build")
    left, path = views.time_left(_taken(m)[1])
    assert (left, path) == (33.0, 33.0)
    m.work()
    m.advance(4.0)
    assert views.time_left(_taken(m)[1]) == (29.0, 29.0)
    graph = views.element_graph(_taken(m)[1])
    assert [each.name for each in graph.path] == ["b", "c", "d"]
    assert graph.path_s == 29.0
    assert [(each.first, each.counts) for each in graph.layers] == [
        (0, {"ok": 1}), (1, {"running": 1}), (2, {"waiting": 1}), (3, {"waiting": 1}),
    ]  # fmt: skip
    m.run()
    graph = views.element_graph(_taken(m)[1])
    assert views.time_left(_taken(m)[1]) == (None, None)
    assert graph.path_s is None  # nothing is left: the path is what took longest


def test_units_of_limits_are_shown_as_they_are_written() -> None:
    made = stage("clean", takes={"cache": "exclusive", "cc": 2, "net": 1})
    assert views.takes(made.takes) == ["cache!", "cc:2", "net"]
