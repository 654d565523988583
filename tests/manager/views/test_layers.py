"""Graphs as answers of bounded size: small ones whole, large ones by layers."""

from __future__ import annotations

from rota.manager.views.layers import GROUP, GraphItem, layers_view


def _chain(length: int) -> list[GraphItem]:
    return [GraphItem(n, f"job {n}", "ready", [(n - 1, "ok")] if n else [], 2.0) for n in range(length)]


def test_a_small_graph_is_there_whole() -> None:
    view = layers_view(_chain(3), outside=1)
    assert [(each.id, each.layer, each.critical) for each in view.nodes] == [
        (0, 0, True),
        (1, 1, True),
        (2, 2, True),
    ]
    assert view.edges == [(0, 1, "ok"), (1, 2, "ok")]
    assert (view.path_s, view.path_total, view.outside, view.more_edges) == (6.0, 3, 1, 0)


def test_a_large_graph_has_layers_and_the_beginning_of_its_path() -> None:
    view = layers_view(_chain(10_000))
    assert (view.nodes, view.edges, view.more_edges) == ([], [], 9_999)
    assert len(view.layers) <= 120
    assert sum(sum(each.counts.values()) for each in view.layers) == view.total == 10_000
    assert (view.layers[0].first, view.layers[-1].last) == (0, 9_999)
    assert all(one.last + 1 == other.first for one, other in zip(view.layers, view.layers[1:], strict=False))
    assert (len(view.path), view.path_total, view.path_s) == (200, 10_000, 20_000.0)


def test_a_dependency_group_joins_its_members_and_is_in_no_count() -> None:
    items = [
        GraphItem(1, "one", "running", left_s=5.0),
        GraphItem(2, "after", "dependent", [(2, "any")], 1.0),
        GraphItem(None, "@all", GROUP, [(0, "ok")]),
    ]
    view = layers_view(items)
    assert (view.total, view.counts) == (2, {"running": 1, "dependent": 1})
    assert [each.name for each in view.path] == ["one", "@all", "after"]


def test_unknown_durations_are_counted_and_the_rest_adds_up() -> None:
    items = [GraphItem(1, "a", "running", left_s=None), GraphItem(2, "b", "dependent", [(0, "ok")], 3.0)]
    view = layers_view(items)
    assert (view.path_s, view.unknown) == (3.0, 1)
    assert layers_view([GraphItem(1, "a", "running", left_s=None)]).path_s is None


def test_when_all_is_over_the_path_is_what_took_longest() -> None:
    items = [
        GraphItem(1, "a", "complete", took_s=1.0),
        GraphItem(2, "b", "complete", [(0, "ok")], took_s=2.0),
        GraphItem(3, "c", "complete", took_s=2.5),
    ]
    view = layers_view(items)
    assert ([each.name for each in view.path], view.path_s) == (["a", "b"], None)


def test_there_may_be_nothing() -> None:
    view = layers_view([])
    assert (view.total, view.layers, view.path) == (0, [], [])
