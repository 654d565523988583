"""The dependencies between any jobs: with their states, their critical path and the time left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from rota.core.forecast.expected_times import Expectations
from rota.core.jobs.command import brief
from rota.core.jobs.job import Condition, Job, Spec, name_of
from rota.core.states import State
from rota.core.stored import StoredJob
from rota.core.world import World
from rota.errors import BadInput
from rota.manager.views.expected_times import moment, reason_view
from rota.manager.views.layers import GROUP, GraphItem, layers_view
from rota.manager.views.queries import Queries
from rota.store.base import Clause, Order, Store
from rota.wire.graph_views import LayersView

#: Jobs in one answer: it takes a second.
_MOST: Final = 50_000
_SLICE: Final = 4096
_LONGEST_NAME: Final = 80
_WORDS: Final = {Condition.OK: "ok", Condition.ANY: "any", Condition.NOT_OK: "not_ok"}


class _Known(NamedTuple):
    """A job in memory, or one that was read."""

    job: Job | None
    row: StoredJob | None
    spec: Spec


def group_graph(
    clauses: list[Clause], queries: Queries, *, world: World, store: Store, specs: Mapping[int, Spec],
    expected: Expectations,
) -> LayersView:  # fmt: skip
    """Reads the store: for a worker thread. Raises `BadInput` if there are too many jobs."""
    ids, total = queries.ordered(clauses, "", Order("id"), limit=_MOST)
    if total > _MOST:
        raise BadInput(
            f"{total:,} jobs are too many for a graph; at most {_MOST:,} can be looked at",
            hint="name a group, or other selectors",
        )
    known = _found(list(ids), world, store, specs)
    number = {id: at for at, id in enumerate(known)}
    groups: dict[str, int] = {}
    outside = 0
    items: list[GraphItem] = []
    for id, each in known.items():
        parents = []
        for after in each.job.after if each.job is not None else each.row.after if each.row is not None else ():
            word = _WORDS[after.condition]
            if isinstance(after.parent, str):
                parents.append((groups.setdefault(after.parent, len(known) + len(groups)), word))
            elif after.parent in number:
                parents.append((number[after.parent], word))
            else:
                outside += 1
        items.append(_item(id, each, parents, expected))
    members: dict[str, list[tuple[int, str]]] = {name: [] for name in groups}
    if groups:
        for id, each in known.items():
            for name in each.spec.dep_groups:
                if name in members:
                    members[name].append((number[id], "ok"))
    items += [GraphItem(None, f"@{name}", GROUP, members[name]) for name in groups]
    view = layers_view(items, outside=outside)
    end, why = expected.end_of(each.job for each in known.values() if each.job is not None)
    view.expected_end = None if end is None else moment(end)
    view.expected_reason = None if why is None else reason_view(why)
    return view


def _found(ids: list[int], world: World, store: Store, specs: Mapping[int, Spec]) -> dict[int, _Known]:
    found: dict[int, _Known | None] = {}
    stored = []
    for id in ids:
        job = world.jobs.get(id)
        found[id] = None if job is None else _Known(job, None, job.spec)
        if job is None:
            stored.append(id)
    for at in range(0, len(stored), _SLICE):
        for row in store.jobs(stored[at : at + _SLICE]):
            found[row.id] = _Known(None, row, specs[row.spec_id])
    return {id: each for id, each in found.items() if each is not None}


def _item(id: int, each: _Known, parents: list[tuple[int, str]], expected: Expectations) -> GraphItem:
    if each.job is not None:
        job = each.job
        name = job.name or brief(job.cmd)
        return GraphItem(id, name[:_LONGEST_NAME], job.state.label, parents, expected.left_s(job))
    assert each.row is not None
    row, newest = each.row, each.row.newest
    took = 0.0
    if newest is not None and newest.started_at is not None and newest.ended_at is not None:
        took = max(0.0, newest.ended_at - newest.started_at)
    name = name_of(each.spec, row.pipeline_element) or brief(row.cmd)
    return GraphItem(id, name[:_LONGEST_NAME], State(row.state).label, parents, 0.0, took)
