"""Layers of a graph and its critical path, against a model that tries every chain."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.forecast.critical_path import critical_path, in_order, layers_of

Graph = tuple[list[list[int]], list[float]]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Nodes in any order, whose parents may have larger numbers, and their lengths."""
    size = draw(st.integers(0, 9))
    names = draw(st.permutations(range(size)))
    parents: list[list[int]] = [[] for _ in range(size)]
    for at in range(size):
        some = draw(st.sets(st.integers(0, at - 1), max_size=3)) if at else set()
        parents[names[at]] = [names[each] for each in sorted(some)]
    lengths = [float(draw(st.integers(0, 4))) for _ in range(size)]
    return parents, lengths


@given(graphs())
def test_every_node_comes_after_its_parents_and_once(graph: Graph) -> None:
    parents, _lengths = graph
    order = in_order(parents)
    assert sorted(order) == list(range(len(parents)))
    place = {node: at for at, node in enumerate(order)}
    assert all(place[parent] < place[node] for node, above in enumerate(parents) for parent in above)


@given(graphs())
def test_a_layer_is_the_longest_chain_of_nodes_before_it(graph: Graph) -> None:
    parents, _lengths = graph

    @cache
    def depth(node: int) -> int:
        return max((depth(parent) + 1 for parent in parents[node]), default=0)

    assert layers_of(parents, in_order(parents)) == [depth(node) for node in range(len(parents))]


@given(graphs())
def test_the_critical_path_is_a_chain_and_no_chain_is_longer(graph: Graph) -> None:
    parents, lengths = graph

    @cache
    def longest(node: int) -> float:
        return lengths[node] + max((longest(parent) for parent in parents[node]), default=0.0)

    path = critical_path(parents, lengths, in_order(parents))
    assert path.length == max(map(longest, range(len(parents))), default=0.0)
    assert path.length == sum(lengths[node] for node in path.nodes)
    assert all(one in parents[other] for one, other in zip(path.nodes, path.nodes[1:], strict=False))
    if path.nodes:
        assert lengths[path.nodes[0]] > 0
        assert lengths[path.nodes[-1]] > 0


def test_a_chain_may_be_as_long_as_it_likes() -> None:
    parents = [[node - 1] if node else [] for node in range(50_000)]
    order = in_order(parents)
    assert layers_of(parents, order)[-1] == 49_999
    assert critical_path(parents, [1.0] * 50_000, order).length == 50_000


def test_nodes_of_a_cycle_come_last() -> None:
    assert in_order([[1], [0], []]) == [2, 0, 1]


@pytest.mark.parametrize("lengths", [[], [0.0, 0.0]])
def test_there_is_no_path_where_nothing_takes_time(lengths: list[float]) -> None:
    parents: list[list[int]] = [[] for _ in lengths]
    assert critical_path(parents, lengths, in_order(parents)) == ([], 0.0)
