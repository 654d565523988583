"""Layers of a dependency graph, and its critical path: the chain that takes longest.

Nodes are numbers, and nothing here recurses, so a chain may be as long as it likes. All takes time in proportion
to the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class CriticalPath(NamedTuple):
    """The nodes of the longest chain, from the first to the last, and its length."""

    nodes: list[int]
    length: float


def in_order(parents: Sequence[Sequence[int]]) -> list[int]:
    """All nodes, each after its parents. Nodes of a cycle, and those behind one, come last."""
    children: list[list[int]] = [[] for _ in parents]
    missing = [len(each) for each in parents]
    for node, above in enumerate(parents):
        for parent in above:
            children[parent].append(node)
    order = [node for node, number in enumerate(missing) if not number]
    for node in order:  # it grows meanwhile
        for child in children[node]:
            missing[child] -= 1
            if not missing[child]:
                order.append(child)
    return order + [node for node, number in enumerate(missing) if number]


def layers_of(parents: Sequence[Sequence[int]], order: Sequence[int]) -> list[int]:
    """How many nodes come one after the other before each node. `order`: as `in_order` has it."""
    layers = [0] * len(parents)
    for node in order:
        for parent in parents[node]:
            if layers[node] <= layers[parent]:
                layers[node] = layers[parent] + 1
    return layers


def critical_path(
    parents: Sequence[Sequence[int]], lengths: Sequence[float], order: Sequence[int]
) -> CriticalPath:
    """The chain whose lengths add up to most, without what has no length at its ends."""
    ends = list(lengths)  #: node → length of the longest chain up to it
    before = [-1] * len(parents)
    for node in order:
        for parent in parents[node]:
            if ends[parent] > 0 and ends[parent] + lengths[node] > ends[node]:
                ends[node], before[node] = ends[parent] + lengths[node], parent
    node = max(order, key=ends.__getitem__, default=-1)
    if node < 0 or not ends[node]:
        return CriticalPath([], 0.0)
    length, nodes = ends[node], []
    while node >= 0:
        nodes.append(node)
        node = before[node]
    return CriticalPath(nodes[::-1], length)
