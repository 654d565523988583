"""The dependency graph of many jobs, or of the elements of a pipeline: layers, states, and what takes longest."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct, field

from rota.wire.views import ReasonView


class LayeredNode(Struct, kw_only=True, gc=False):
    """A job, a dependency group, or an element of a pipeline."""

    id: int | None  #: of its job; null: a dependency group, or an element without a job
    name: str
    state: str  #: as in the counts; `group`: a dependency group
    layer: int
    left_s: float | None = None  #: how long it is expected to run yet; null: unknown
    critical: bool = False  #: is it on the critical path?


class LayerView(Struct, kw_only=True, gc=False):
    """What has the same number of dependencies one after the other before it; neighbouring layers are joined if
    they are many."""

    first: int
    last: int
    counts: dict[str, int]  #: by state


class LayersView(Struct, kw_only=True):
    """A dependency graph by layers. Nodes and edges are there only if there are few enough to be drawn."""

    total: int
    counts: dict[str, int]  #: by state
    layers: list[LayerView]
    nodes: list[LayeredNode] = field(default_factory=list)
    edges: list[tuple[int, int, str]] = field(default_factory=list)  #: indexes into `nodes`, and the condition
    more_edges: int = 0  #: edges that are left out
    outside: int = 0  #: dependencies on what is not among these
    path: list[LayeredNode] = field(default_factory=list)  #: the critical path, the first steps
    path_total: int = 0  #: all its steps
    path_s: float | None = None  #: how long it takes yet; null: not known
    unknown: int = 0  #: unfinished ones of unknown duration, which count as nothing
    expected_end: datetime | None = None
    expected_reason: ReasonView | None = None  #: why the end is unknown
