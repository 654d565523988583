"""What every store promises about arrays, modified jobs, dependency groups, limits and observations."""

from __future__ import annotations

import msgspec
import pytest
from rows import SPEC, a_world, an_add, attempt_row, changes, end_row, job_row, observation, state_row

from rota.core.jobs.job import After, Condition, Spec
from rota.core.jobs.outcome import Behaved
from rota.core.rows import EdgeRow, RespecifiedRow, SpecRow
from rota.core.states import State
from rota.core.stored import OBSERVATIONS
from rota.plan.size import Floor, Size
from rota.store.base import Clause

GROUPED = msgspec.json.encode(Spec(user="ann", cwd="/", env=1, dep_groups=("final",))).decode()


def edges(*pairs: tuple[int | str, int]) -> list[EdgeRow]:
    return [EdgeRow(*pair) for pair in pairs]


def an_array(store):
    """Jobs 1 to 3 are plain, 4 to 9 the elements 0, 2, 4, 6, 8 and 10 of an array, 10 and 11 of another."""
    store.commit(an_add(1, 2, 3))
    store.commit(
        changes(
            submissions=[("s2", "ann", 1.0, 6, "{}")],
            jobs=[
                job_row(4 + n, submission="s2", array=4, index=2 * n, group="red" if n else "blue")
                for n in range(6)
            ],
        )
    )
    store.commit(
        changes(
            submissions=[("s3", "ann", 1.0, 2, "{}")],
            jobs=[
                job_row(10, submission="s3", array=10, index=4),
                job_row(11, submission="s3", array=10, index=5),
            ],
            job_states={5: state_row(5, State.FAILED), 6: state_row(6, State.COMPLETE)},
        )
    )


@pytest.mark.parametrize(
    ("clauses", "ids"),
    [
        ([Clause(array=4)], [4, 5, 6, 7, 8, 9]),
        ([Clause(array=10)], [10, 11]),
        ([Clause(array=1)], []),
        ([Clause(array=4, indexes=((4, 4),))], [6]),
        ([Clause(array=4, indexes=((0, 0),))], [4]),
        ([Clause(array=4, indexes=((1, 5), (3, 6), (10, 99)))], [5, 6, 7, 9]),
        ([Clause(array=4, indexes=((5, 1),))], []),
        ([Clause(array=4, low=6, high=8)], [6, 7, 8]),
        ([Clause(array=4, low=6, indexes=((0, 4), (8, 8)))], [6, 8]),
        ([Clause(array=4, state=State.FAILED)], [5]),
        ([Clause(array=4, state=State.READY, group="red")], [7, 8, 9]),
        ([Clause(array=4, indexes=((0, 2),), user="ann", submission="s2", state=State.READY)], [4]),
        ([Clause(array=4, submission="s1")], []),
        ([Clause(array=4, indexes=((0, 0),)), Clause(array=10, indexes=((5, 5),)), Clause(high=1)], [1, 4, 11]),
        ([Clause(indexes=((0, 2),), high=2)], [1, 2]),
    ],
)
def test_elements_of_arrays_are_found_by_their_index(store, clauses, ids):
    an_array(store)
    assert store.find(clauses, above=0, limit=100) == ids
    assert store.find(clauses, above=4, limit=2) == [n for n in ids if n > 4][:2]
    assert store.count(clauses) == len(ids)
    assert sum(store.tally(clauses).values()) == len(ids)


def test_elements_know_their_array_and_plain_jobs_have_none(store, reopen):
    an_array(store)
    again = reopen(store)
    places = {job.id: (job.array, job.index) for job in again.load().jobs}
    assert (places[1], places[4], places[11]) == ((None, None), (4, 0), (10, 5))
    assert [(job.array, job.index) for job in again.jobs([1, 4, 11])] == [(None, None), (4, 0), (10, 5)]


def test_elements_of_an_upload_are_invisible_until_it_is_sealed(store):
    store.commit(an_add(1, submission="up", answer=None, array=1, index=0))
    assert store.find([Clause(array=1)], above=0, limit=9) == []
    store.commit(changes(submissions=[("up", "ann", 1.0, 1, "{}")]))
    assert store.find([Clause(array=1)], above=0, limit=9) == [1]


def test_the_size_of_the_input_is_kept_beside_jobs_without_one(store):
    store.commit(
        changes(
            submissions=[("s1", "ann", 1.0, 3, "{}")],
            jobs=[job_row(1, input_bytes=1 << 50), job_row(2), job_row(3, input_bytes=0)],
        )
    )
    assert [job.input_bytes for job in store.load().jobs] == [1 << 50, None, 0]
    assert [job.input_bytes for job in store.jobs([1, 2, 3])] == [1 << 50, None, 0]


def test_a_floor_is_the_last_word_about_a_job(store):
    store.commit(an_add(1, 2))
    store.commit(changes(job_states={1: state_row(1, State.DELAYED, floor="[8589934592,0,0.1]")}))
    floor = Floor(mem=8 << 30, time_s=0.1)
    assert [job.floor for job in store.load().jobs] == [floor, None]
    assert [job.floor for job in store.jobs([1, 2])] == [floor, None]
    store.commit(changes(job_states={1: state_row(1, State.READY)}))
    assert store.jobs([1])[0].floor is None


def test_an_attempt_keeps_its_specification_and_a_size_of_its_own(store):
    store.commit(an_add(1, 2))
    store.commit(
        changes(
            attempts=[attempt_row(1, spec_id=7, size="[150,1024,0,0.1,2]"), attempt_row(2, spec_id=8)],
            job_states={n: state_row(n, State.SCHEDULED, attempt=1) for n in (1, 2)},
        )
    )
    expected = [(7, Size(150, 1024, 0, 0.1, 2)), (8, None)]
    assert [(a.spec, a.size) for a in store.load().open_attempts] == expected
    assert [(a.spec, a.size) for n in (1, 2) for a in store.attempts(n)] == expected
    assert [(job.newest.spec, job.newest.size) for job in store.jobs([1, 2])] == expected


def test_what_behaviours_did_is_kept_with_the_attempt(store):
    store.commit(a_world())
    done = (Behaved("run: echo 'ü'\n", ok=False, message="exit 3"), Behaved("cleanup", ok=True))
    store.commit(changes(ends=[end_row(2, behaviours=msgspec.json.encode(done).decode())]))
    assert store.attempts(2)[0].behaviours == done
    assert store.jobs([2])[0].newest.behaviours == done
    assert store.attempts(1)[0].behaviours == ()


def test_a_modified_job_has_its_new_specification_and_group(store, reopen):
    store.commit(a_world())
    store.commit(
        changes(
            specs=[(2, GROUPED)],
            respecified={
                2: (2, 2, "never seen", "ann", 77),
                3: (3, 2, "default", "ann", None),
                99: (99, 2, "x", "y", 1),
            },
        )
    )
    assert [(j.spec_id, j.group, j.user, j.input_bytes) for j in store.jobs([2, 3])] == [
        (2, "never seen", "ann", 77),
        (2, "default", "ann", None),
    ]
    assert store.find([Clause(group="never seen")], above=0, limit=9) == [2]
    assert store.find([Clause(group="default")], above=0, limit=9) == [1, 3]
    again = reopen(store)
    assert [(job.spec_id, job.group) for job in again.load().jobs] == [(2, "never seen"), (2, "default")]


def test_a_job_may_be_added_and_modified_in_one_batch(store):
    batch = an_add(1, input_bytes=5)
    batch.respecified = {1: RespecifiedRow(1, 9, "other", "ann", None)}
    store.commit(batch)
    (job,) = store.jobs([1])
    assert (job.spec_id, job.group, job.input_bytes) == (9, "other", None)


def test_dependencies_on_jobs_and_groups_come_back_as_they_went_in(store):
    store.commit(an_add(1, 2, after='[[1,1],["1",2],["a \\"b\\" ü",1]]'))
    expected = (After(1), After("1", Condition.ANY), After('a "b" ü'))
    assert [job.after for job in store.load().jobs] == [expected, expected]
    assert store.jobs([2])[0].after == expected


def test_a_group_named_like_a_number_is_not_the_job_with_that_id(store, reopen):
    store.commit(an_add(*range(1, 7)))
    store.commit(changes(edges=[("12", 3), (12, 2), ("12", 1), (2, 4), ("", 5), ("☃'\"\n", 6)]))
    store.commit(changes(edges=[(12, 2), (12, 6)]))
    assert store.dependents([12]) == [2, 6]
    assert store.dependents(["12"]) == [1, 3]
    assert store.dependents(["12", 12, 12, 2, 99, "none"]) == [1, 2, 3, 4, 6]
    assert store.dependents([""]) == [5]
    assert store.dependents(["☃'\"\n"]) == [6]
    assert store.dependents([]) == []
    assert reopen(store).load().edges == edges(
        (2, 4), (12, 2), (12, 6), ("", 5), ("12", 1), ("12", 3), ("☃'\"\n", 6)
    )


def test_edges_go_with_their_dependent_and_not_with_their_parent(store, reopen):
    store.commit(an_add(1, 2, 3))
    store.commit(changes(edges=[(1, 2), (1, 3), ("g", 3)]))
    store.commit(changes(removed=[3, 1], edges=[("late", 3)]))
    assert store.dependents([1, "g", "late"]) == [2]
    assert reopen(store).load().edges == edges((1, 2))


def test_edges_of_an_upload_that_was_never_sealed_are_gone_after_a_restart(store, reopen):
    store.commit(an_add(1))
    upload = an_add(2, submission="up", answer=None)
    upload.edges = edges(("g", 2))
    store.commit(upload)
    store.commit(changes(edges=[("g", 1)]))
    again = reopen(store)
    assert again.load().edges == edges(("g", 1))
    assert again.dependents(["g"]) == [1]


AFTER = '[[1,1],["1",2]]'


def test_who_waited_for_a_job_is_known_when_all_have_ended(store, reopen):
    store.commit(an_add(1))
    made = an_add(2, 3, 4, submission="s2", after=AFTER)
    made.children = [EdgeRow(parent, child) for child in (4, 2, 3) for parent in (1, "1")]
    store.commit(made)
    store.commit(changes(job_states={n: state_row(n, State.COMPLETE) for n in (1, 2, 3, 4)}))
    store.commit(changes(children=[("1", 1), (1, 2)]))
    store = reopen(store)
    assert store.children(1, limit=9) == ([2, 3, 4], 3)
    assert store.children("1", limit=2) == ([1, 2], 4)
    assert store.children(2, limit=9) == ([], 0)
    assert store.load().edges == []


def test_who_is_removed_is_nobodys_child_any_more(store, reopen):
    store.commit(an_add(1, 5))
    made = an_add(2, 3, submission="s2", after=AFTER)
    made.children = edges((1, 2), ("1", 2), (1, 3), ("1", 3))
    store.commit(made)
    store.commit(changes(removed=[3, 5]))
    store = reopen(store)
    assert (store.children(1, limit=9), store.children("1", limit=9)) == (([2], 1), ([2], 1))


def test_children_of_an_upload_that_was_never_sealed_are_gone_after_a_restart(store, reopen):
    store.commit(an_add(1))
    upload = an_add(2, submission="up", answer=None, after=AFTER)
    upload.children = edges((1, 2), ("1", 2))
    store.commit(upload)
    again = reopen(store)
    again.load()
    assert again.children(1, limit=9) == ([], 0)
    assert again.children("1", limit=9) == ([], 0)


def test_members_that_failed_and_dependents_in_groups_are_loaded_with_their_specification(store, reopen):
    made = an_add(1, 2, 3, 4, 5, spec_id=2)
    made.specs = [SpecRow(1, SPEC), SpecRow(2, GROUPED)]
    store.commit(made)
    store.commit(an_add(6, 7, submission="s2"))
    store.commit(
        changes(
            job_states={
                1: state_row(1, State.FAILED), 2: state_row(2, State.CANCELLED), 3: state_row(3, State.COMPLETE),
                6: state_row(6, State.FAILED), 7: state_row(7, State.CANCELLED),
            },
            edges=[("other", 1), ("other", 3), (2, 4), ("other", 4), ("other", 6)],
        )
    )  # fmt: skip
    snapshot = reopen(store).load()
    assert snapshot.bad_members == [(1, 2), (2, 2)]
    assert snapshot.edge_specs == {1: 2, 3: 2, 4: 2}


def test_dependency_groups_count_their_complete_members_and_are_known_from_the_first(store, reopen):
    store.commit(changes(dep_groups={"final": 0, "12": 2}))
    store.commit(changes(dep_groups={"12": -1, "ü": 1}))
    store.commit(changes(dep_groups={"12": 5, "final": 0}))
    assert reopen(store).load().dep_groups == {"final": 0, "12": 6, "ü": 1}


def test_limits_are_declared_replaced_and_withdrawn(store, reopen):
    store.commit(changes(limits={"a": '{"n":5}', "b": "{}", "12": "[]"}))
    store.commit(changes(limits={"a": '{"n":"6 ü"}', "b": None, "never": None}))
    again = reopen(store)
    assert again.load().limits == {"a": '{"n":"6 ü"}', "12": "[]"}
    again.commit(changes(limits={"b": "{}"}))
    assert again.load().limits["b"] == "{}"


def test_observations_are_loaded_in_the_order_of_their_making(store, reopen):
    rows = [
        observation("x.py", 0),
        observation("y", 7, outcome="memory", input_bytes=1 << 50, time_s=1e-9, mem=0),
        observation("x.py", 1, at=5.0),
        observation("12", 0),
        observation("", 0),
    ]
    store.commit(changes(observations=rows[:2]))
    store.commit(changes(observations=rows[2:]))
    assert reopen(store).load().observations == rows


def test_only_the_newest_observations_of_a_group_are_loaded(store, reopen):
    many = [observation("many", n) for n in range(3 * OBSERVATIONS + 5)]
    store.commit(changes(observations=[observation("few", 0)]))
    for start in range(0, len(many), 700):
        store.commit(changes(observations=many[start : start + 700]))
    assert reopen(store).load().observations == [observation("few", 0), *many[-OBSERVATIONS:]]


def test_a_forgotten_group_begins_anew_with_the_observations_of_the_same_batch(store, reopen):
    store.commit(changes(observations=[observation("a", 1), observation("b", 1), observation("a", 2)]))
    store.commit(changes(forgotten=["a", "never"], observations=[observation("a", 0)]))
    again = reopen(store)
    assert again.load().observations == [observation("b", 1), observation("a", 0)]
    again.commit(changes(forgotten=["b"]))
    assert again.load().observations == [observation("a", 0)]


def test_an_empty_store_has_no_limits_groups_edges_or_observations(store):
    snapshot = store.load()
    assert (snapshot.limits, snapshot.dep_groups, snapshot.edge_specs) == ({}, {}, {})
    assert (snapshot.bad_members, snapshot.edges, snapshot.observations) == ([], [], [])
