"""A dependency graph as an answer of bounded size: drawn whole if it is small, by layers if not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from rota.core.forecast.critical_path import critical_path, in_order, layers_of
from rota.wire.graph_views import LayeredNode, LayersView, LayerView

#: A graph with more nodes, or more edges, is not drawn.
_MOST_NODES: Final = 300
_MOST_EDGES: Final = 1500
#: Neighbouring layers are joined beyond this.
_MOST_LAYERS: Final = 120
#: Steps of the critical path in an answer.
_MOST_STEPS: Final = 200
#: State of a dependency group, which is in no count.
GROUP: Final = "group"


class GraphItem(NamedTuple):
    """A node with the numbers of its parents among all items, and what each of them is waited for."""

    id: int | None
    name: str
    state: str
    parents: Sequence[tuple[int, str]] = ()
    left_s: float | None = 0.0  #: None: unknown
    took_s: float = 0.0  #: of one that is over


def layers_view(items: Sequence[GraphItem], *, outside: int = 0) -> LayersView:
    """The graph of these. Its critical path is of what is left; of what was, if nothing is left."""
    parents = [[parent for parent, _condition in item.parents] for item in items]
    order = in_order(parents)
    layers = layers_of(parents, order)
    left = [item.left_s or 0.0 for item in items]
    unknown = sum(item.left_s is None for item in items)
    over = not unknown and not any(left)
    path = critical_path(parents, [item.took_s for item in items] if over else left, order)
    critical = set(path.nodes)

    def node(number: int) -> LayeredNode:
        item = items[number]
        return LayeredNode(
            id=item.id, name=item.name, state=item.state, layer=layers[number], left_s=item.left_s,
            critical=number in critical,
        )  # fmt: skip

    edges = [(parent, child, word) for child, item in enumerate(items) for parent, word in item.parents]
    small = len(items) <= _MOST_NODES
    counts: dict[str, int] = {}
    for item in items:
        if item.state != GROUP:
            counts[item.state] = counts.get(item.state, 0) + 1
    return LayersView(
        total=sum(counts.values()),
        counts=counts,
        layers=_joined(items, layers),
        nodes=[node(number) for number in range(len(items))] if small else [],
        edges=edges[:_MOST_EDGES] if small else [],
        more_edges=max(0, len(edges) - _MOST_EDGES) if small else len(edges),
        outside=outside,
        path=[node(number) for number in path.nodes[:_MOST_STEPS]],
        path_total=len(path.nodes),
        path_s=None if over or (unknown and not path.nodes) else path.length,
        unknown=unknown,
    )


def _joined(items: Sequence[GraphItem], layers: Sequence[int]) -> list[LayerView]:
    height = max(layers, default=-1) + 1
    step = max(1, -(-height // _MOST_LAYERS))
    found = [
        LayerView(first=first, last=min(first + step, height) - 1, counts={}) for first in range(0, height, step)
    ]
    for item, layer in zip(items, layers, strict=True):
        if item.state != GROUP:
            counts = found[layer // step].counts
            counts[item.state] = counts.get(item.state, 0) + 1
    return found
