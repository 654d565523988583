"""Elements come after what they need, depth-first; cycles are named whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.pipelines.definition import Definition, Element, Stage
from rota.core.pipelines.graph import NamedElement, depths, in_order, only, stage_positions
from rota.errors import BadInput, BadPipeline

STAGES = (Stage(name="build", run="true"), Stage(name="push", run="true"))


@st.composite
def graphs(draw: st.DrawFn, *, cyclic: bool = False) -> list[NamedElement]:
    """Elements in any order; without cycles, unless asked for."""
    count = draw(st.integers(1, 12))
    elements = []
    for number in range(count):
        others = range(count) if cyclic else range(number)
        chosen = draw(st.lists(st.sampled_from(others), unique=True, max_size=4)) if others else []
        elements.append(NamedElement(f"e{number}", tuple(f"e{other}" for other in chosen)))
    return draw(st.permutations(elements))


def by_recursion(elements: list[NamedElement]) -> list[str]:
    """The meaning of depth-first, for graphs that are small."""
    depends = {element.name: element.depends for element in elements}
    order: dict[str, None] = {}

    def visit(name: str) -> None:
        for parent in depends[name]:
            visit(parent)
        order[name] = None

    for name in depends:
        visit(name)
    return list(order)


@given(graphs())
def test_elements_are_ordered_depth_first(elements: list[NamedElement]) -> None:
    ordered = in_order(elements)
    assert [element.name for element in ordered] == by_recursion(elements)
    said = {element.name: element.depends for element in elements}
    for position, element in enumerate(ordered):
        assert all(parent < position for parent in element.depends)
        assert tuple(ordered[parent].name for parent in element.depends) == said[element.name]


@given(graphs(cyclic=True))
def test_a_cycle_is_named_whole_and_nothing_else_is_called_one(elements: list[NamedElement]) -> None:
    depends = {element.name: set(element.depends) for element in elements}
    try:
        ordered = in_order(elements)
    except BadPipeline as error:
        cycle = error.cycle
        assert cycle
        assert len(set(cycle)) == len(cycle)
        for name, following in zip(cycle, (*cycle[1:], cycle[0]), strict=True):
            assert following in depends[name]
        closing = error.path
        assert closing[:3] == ("elements", cycle[-1], "depends")
        assert len(cycle) == 1 or " -> ".join((*cycle, cycle[0])) in error.text
    else:
        assert len(ordered) == len(elements)


def test_a_chain_of_a_hundred_thousand_elements_is_no_harder_than_a_short_one() -> None:
    count = 100_000
    chain = [NamedElement(f"e{at}", (f"e{at + 1}",)) for at in range(count - 1)] + [NamedElement(f"e{count - 1}")]
    ordered = in_order(chain)
    assert ordered[0].name == f"e{count - 1}"
    assert depths(ordered)[0] == count
    assert len(only(Definition(stages=STAGES, elements=ordered), ["e0"]).elements) == count
    chain[-1] = NamedElement(f"e{count - 1}", ("e0",))
    with pytest.raises(BadPipeline) as caught:
        in_order(chain)
    assert len(caught.value.cycle) == count
    assert len(caught.value.message) < 1000


def test_a_missing_dependency_is_named_with_what_was_meant() -> None:
    with pytest.raises(BadPipeline) as caught:
        in_order([NamedElement("base.bst"), NamedElement("app.bst", ("base.bsd",))])
    assert caught.value.path == ("elements", "app.bst", "depends", 0)
    assert "did you mean 'base.bst'?" in caught.value.hint


def test_a_dependency_that_is_named_twice_is_refused() -> None:
    with pytest.raises(BadPipeline, match="named twice"):
        in_order([NamedElement("a"), NamedElement("b", ("a", "a"))])


@given(graphs(), st.data())
def test_the_deepest_element_begins_the_longest_chain(elements: list[NamedElement], data: st.DataObject) -> None:
    ordered = in_order(elements)
    seconds = data.draw(st.lists(st.floats(0, 100), min_size=len(ordered), max_size=len(ordered)))

    def chain(position: int, weights: list[float]) -> float:
        above = [chain(at, weights) for at, element in enumerate(ordered) if position in element.depends]
        return weights[position] + max(above, default=0.0)

    assert depths(ordered) == [chain(at, [1.0] * len(ordered)) for at in range(len(ordered))]
    assert depths(ordered, seconds) == pytest.approx([chain(at, seconds) for at in range(len(ordered))])


@given(graphs(), st.data())
def test_a_selection_has_what_it_needs_and_no_more(elements: list[NamedElement], data: st.DataObject) -> None:
    whole = Definition(stages=STAGES, elements=in_order(elements))
    names = data.draw(st.lists(st.sampled_from([element.name for element in elements]), min_size=1))
    depends = {element.name: element.depends for element in elements}
    needed = set()
    rest = list(names)
    while rest:
        name = rest.pop()
        if name not in needed:
            needed.add(name)
            rest += depends[name]
    part = only(whole, names).elements
    assert {element.name for element in part} == needed
    for position, element in enumerate(part):
        assert all(parent < position for parent in element.depends)
        assert tuple(part[parent].name for parent in element.depends) == depends[element.name]


def test_what_is_not_there_cannot_be_selected() -> None:
    definition = Definition(stages=STAGES, elements=(Element("app"),))
    with pytest.raises(BadInput, match="no element 'ap'"):
        only(definition, ["ap"])
    with pytest.raises(BadInput, match="the stages are build, push"):
        stage_positions(definition, ["build", "pull"])
    assert stage_positions(definition, ["push", "build"]) == (0, 1)
