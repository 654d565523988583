"""A small graph around a job: what it waits for, and what waits or waited for it, two steps each way."""

from __future__ import annotations

from typing import Final

from rota.core.jobs.command import Command, brief
from rota.core.jobs.job import After, Condition, Parent, Spec, name_of
from rota.core.states import State
from rota.core.stored import StoredJob
from rota.core.world import NO_JOB, World
from rota.errors import NotFound
from rota.store.base import Store
from rota.wire.views import GraphNode, GraphView

_STEPS: Final = 2
_MOST: Final = 60
#: What edges are called in answers.
_EDGES: Final = {Condition.OK: "ok", Condition.ANY: "any", Condition.NOT_OK: "not_ok"}


class _Around:
    """Finds neighbours, in memory or in the store."""

    def __init__(self, world: World, store: Store, specs: dict[int, Spec]) -> None:
        self._world = world
        self._store = store
        self._specs = specs
        self._rows: dict[int, StoredJob] = {}
        self.unseen = 0  #: neighbours that were not looked at

    def load(self, ids: list[int]) -> None:
        wanted = [id for id in ids if id not in self._world.jobs and id not in self._rows]
        self._rows.update((row.id, row) for row in self._store.jobs(wanted))

    def parents(self, id: int) -> list[After]:
        job = self._world.jobs.get(id)
        if job is not None:
            return list(job.after)
        row = self._rows.get(id)
        return list(row.after) if row is not None else []

    def children(self, parent: Parent) -> list[tuple[int, int]]:
        """Children of a node, as (job, condition), waiting ones first."""
        found = dict(list(self._world.children.get(parent, {})))
        stored, total = self._store.children(parent, limit=_MOST)
        self.load(stored)
        for child in stored:
            # Not jobs of an unfinished submission.
            if child not in found and (child in self._world.jobs or child in self._rows):
                found[child] = self._condition(child, parent)
        self.unseen += max(0, total - max(len(found), len(stored)))
        return list(found.items())

    def _condition(self, child: int, parent: Parent) -> int:
        return next((int(each.condition) for each in self.parents(child) if each.parent == parent), 1)

    def node(self, key: Parent) -> GraphNode:
        if isinstance(key, str):
            return GraphNode(None, f"@{key}", "group")
        job, row = self._world.jobs.get(key), self._rows.get(key)
        if job is not None:
            return GraphNode(key, job.name or _command(job.cmd), job.state.label)
        if row is not None:
            name = name_of(self._specs[row.spec_id], row.pipeline_element)
            return GraphNode(key, name or _command(row.cmd), State(row.state).label)
        return GraphNode(key, "", "removed")


def graph_view(id: int, world: World, store: Store, specs: dict[int, Spec]) -> GraphView:
    """The graph around a job, which is its first node."""
    if world.outcome(id) == NO_JOB:
        raise NotFound(f"there is no job {id}", hint="list them with 'rota jobs'")
    look = _Around(world, store, specs)
    look.load([id])
    places: dict[Parent, int] = {id: 0}
    edges: dict[tuple[Parent, Parent], int] = {}
    left_out: set[Parent] = set()

    def meet(key: Parent) -> bool:
        if key not in places and len(places) >= _MOST:
            left_out.add(key)
            return False
        places.setdefault(key, len(places))
        return True

    for upwards in (True, False):
        layer: list[Parent] = [id]
        for _ in range(_STEPS):
            following: list[Parent] = []
            for key in layer:
                if upwards:
                    near = (
                        [(each.parent, int(each.condition)) for each in look.parents(key)]
                        if isinstance(key, int)
                        else []
                    )
                else:
                    near = list(look.children(key))
                look.load([other for other, _condition in near[:_MOST] if isinstance(other, int)])
                for other, condition in near:
                    if meet(other):
                        edges[(other, key) if upwards else (key, other)] = condition
                        following.append(other)
            layer = following
    return GraphView(
        nodes=[look.node(key) for key in places],
        edges=[(places[one], places[other], _EDGES[Condition(c)]) for (one, other), c in edges.items()],
        more=len(left_out) + look.unseen,
    )


def _command(cmd: Command) -> str:
    return brief(cmd)[:80]
