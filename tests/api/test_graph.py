"""The small graph around a job: both directions, two steps, bounded, also of what has long ended."""

from __future__ import annotations

from itertools import pairwise


def _graph(site, id: int) -> tuple[dict[int, str], set[tuple[int, int, str]], int]:
    """States by job, edges between jobs, and how many were left out."""
    answer = site.user.get(f"/api/v1/jobs/{id}/graph")
    assert answer.status == 200, answer
    nodes, edges = answer.json["nodes"], answer.json["edges"]
    ids = [node["id"] for node in nodes]
    assert ids[0] == id
    return (
        {node["id"]: node["state"] for node in nodes},
        {(ids[one], ids[other], condition) for one, other, condition in edges},
        answer.json["more"],
    )


def _chain(site, length: int, first: str) -> list[int]:
    ids = site.add(first)
    for _ in range(length - 1):
        ids += site.add("true", after=[str(ids[-1])])
    return ids


def test_two_steps_each_way(site):
    ids = _chain(site, 7, "sleep 60")
    states, edges, more = _graph(site, ids[3])
    assert set(states) == set(ids[1:6])
    assert edges == {(one, other, "ok") for one, other in pairwise(ids[1:6])}
    assert (set(states.values()), more) == ({"dependent"}, 0)
    site.rota.ok("kill", str(ids[0]))


def test_edges_tell_what_is_waited_for(site):
    (parent,) = site.add("sleep 60")
    conditions = {"afterok": "ok", "afterany": "any", "afternotok": "not_ok"}
    children = {site.add("true", after=[f"{word}:{parent}"])[0]: told for word, told in conditions.items()}
    _states, edges, _more = _graph(site, parent)
    assert edges == {(parent, child, told) for child, told in children.items()}
    site.rota.ok("kill", str(parent), *map(str, children))


def test_jobs_that_have_ended_are_in_it_too(site):
    ids = _chain(site, 3, "sleep 1")
    site.rota.ok("wait", *map(str, ids))
    states, edges, _more = _graph(site, ids[2])
    assert states == dict.fromkeys(ids, "complete")
    assert edges == {(ids[0], ids[1], "ok"), (ids[1], ids[2], "ok")}


def test_below_a_job_that_has_ended_are_those_who_waited_for_it_whatever_became_of_them(site):
    (parent,) = site.add("true")
    ended = site.add("true", "false", after=[str(parent)], retries=0)
    site.rota.rota("wait", *map(str, (parent, *ended)))
    (runs,) = site.add("sleep 60", after=[str(ended[0])])
    states, edges, more = _graph(site, parent)
    assert {id: state for id, state in states.items() if id != runs} == {
        parent: "complete", ended[0]: "complete", ended[1]: "failed",
    }  # fmt: skip
    assert edges == {(parent, ended[0], "ok"), (parent, ended[1], "ok"), (ended[0], runs, "ok")}
    assert more == 0
    site.rota.ok("kill", str(runs))


def test_a_crowd_that_has_ended_is_counted_as_well(site):
    (parent,) = site.add("true")
    children = site.add(*["true"] * 100, after=[str(parent)])
    site.rota.ok("wait", *map(str, (parent, *children)))
    states, _edges, more = _graph(site, parent)
    assert (len(states), more) == (60, 41)


def test_a_job_that_was_removed_is_below_nobody(site):
    (parent,) = site.add("true")
    (child,) = site.add("true", after=[str(parent)])
    site.rota.ok("wait", str(parent), str(child))
    site.rota.ok("remove", str(child))
    assert _graph(site, parent) == ({parent: "complete"}, set(), 0)


def test_conditions_are_told(site):
    (parent,) = site.add("sleep 60")
    (child,) = site.add("true", after=[f"afternotok:{parent}"])
    (other,) = site.add("true", after=[f"afterany:{parent}"])
    _states, edges, _more = _graph(site, parent)
    assert {(one, two) for one, two, _condition in edges} == {(parent, child), (parent, other)}
    assert len({condition for _one, _two, condition in edges}) == 2
    site.rota.ok("kill", str(parent))


def test_a_crowd_is_counted_not_drawn(site):
    (parent,) = site.add("sleep 60")
    site.add(*["true"] * 100, after=[str(parent)])
    states, _edges, more = _graph(site, parent)
    assert (len(states), more) == (60, 41)
    site.rota.ok("kill", str(parent))


def test_a_job_alone_is_its_own_graph(site):
    (id,) = site.add("true")
    states, edges, more = _graph(site, id)
    assert (set(states), edges, more) == ({id}, set(), 0)


def test_of_a_job_that_is_not_there_is_no_graph(site):
    assert site.user.get("/api/v1/jobs/999999/graph").status == 404
