"""How long elements took is known to the next session of the file: it begins with what holds up most."""

from __future__ import annotations

from rota.core.pipelines.definition import Definition
from rota.manager.views import pipeline_pictures as views
from rota.manager.views.session_snapshot import take
from tests.core.pipelines.lab import PipelineMachine, machine, pipeline, stage


def _edition(number: int, *elements: str) -> Definition:
    """Elements that depend on nothing. Another edition of the file has all of them built again."""
    return pipeline([stage("build", run=f"build {number} {{name}}")], dict.fromkeys(elements, ()))


def _run(m: PipelineMachine, seconds: dict[str, float], exit_code: int = 0) -> list[str]:
    """Run everything, one element after the other; in which order."""
    order = []
    while work := m.work():
        ((element, _stage),) = work
        m.advance(seconds[element] - 1.0)
        m.finish(element, "build", exit_code=exit_code)  # takes another second
        order.append(element)
    assert m.session().over
    return order


def test_an_element_counts_as_long_as_in_the_last_session_not_in_all_of_them() -> None:
    m = machine(cores=1)
    m.start(_edition(1, "a", "b"))
    assert _run(m, {"a": 20, "b": 8}) == ["a", "b"]
    m.start(_edition(2, "a", "b"))
    assert _run(m, {"a": 2, "b": 8}) == ["a", "b"]
    m.start(_edition(3, "a", "b"))
    assert _run(m, {"a": 2, "b": 8}) == ["b", "a"]


def test_what_was_measured_survives_a_restart() -> None:
    m = machine(cores=1)
    m.start(_edition(1, "a", "b", "c"))
    _run(m, {"a": 2, "b": 5, "c": 10})
    m.start(_edition(2, "a", "b", "c"))
    assert [element for element, _stage in m.work()] == ["c"]
    m.crash()
    m.heal()
    assert _run(m, {"a": 2, "b": 5, "c": 10}) == ["c", "b", "a"]


def test_what_was_measured_survives_a_session_with_nothing_to_do() -> None:
    m = machine(cores=1)
    m.start(_edition(1, "a", "b"))
    _run(m, {"a": 2, "b": 8})
    m.start(_edition(1, "a", "b"))
    assert _run(m, {}) == []
    m.start(_edition(2, "a", "b"))
    assert _run(m, {"a": 2, "b": 8}) == ["b", "a"]


def test_an_element_that_failed_early_counts_as_long_as_when_it_got_through() -> None:
    m = machine(cores=1)
    m.start(_edition(1, "a", "b"))
    _run(m, {"a": 4, "b": 8})
    m.start(_edition(2, "a", "b"))
    _run(m, {"a": 3, "b": 2}, exit_code=1)
    m.start(_edition(3, "a", "b"))
    assert _run(m, {"a": 4, "b": 8}) == ["b", "a"]


def test_how_long_the_attempts_before_a_restart_took_is_not_forgotten() -> None:
    m = machine(cores=1)
    m.start(pipeline([stage("build", retries=1)], {"a": ()}))
    m.work()
    m.advance(4.0)
    m.finish("a", "build", exit_code=75)
    m.crash()
    m.heal()
    assert m.session().durations[0] == 5.0


def test_a_picture_expects_what_was_measured_and_counts_only_its_own_session() -> None:
    m = machine(cores=1)
    m.start(_edition(1, "a", "b"))
    _run(m, {"a": 4, "b": 8})
    m.start(_edition(2, "a", "b"))
    m.work()
    for _ in range(2):
        taken = take(m.session(), m.world, m.wall)
        assert views.time_left(taken) == (12.0, 8.0)
        page = views.element_page(taken, state="", stage=None, search="", offset=0, limit=10)
        assert [each.took_s for each in page.elements] == [0.0, 0.0]
        m.crash()
        m.heal()
