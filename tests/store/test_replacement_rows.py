"""What stores keep of replaced jobs, edited inputs and refused uploads; the same for every store."""

from __future__ import annotations

from rows import an_add, changes, key_of, state_row

from rota.core.jobs.job import After, Condition
from rota.core.states import State


def both(store, reopen):
    """The store as it is, and what is found when it is opened again."""
    yield store
    yield reopen(store)


def test_a_replaced_job_keeps_its_row_and_is_known_by_its_key_no_more(store, reopen):
    store.commit(an_add(1, 2))
    store.commit(changes(job_states={1: state_row(1, State.FAILED)}, replaced=[(1, 2)]))
    for each in both(store, reopen):
        assert [job.replaced_by for job in each.jobs([1, 2])] == [2, None]
        assert each.known_keys("ann", [key_of(1), key_of(2)]) == {key_of(2): (2, State.READY)}
        assert [brief.id for brief in each.briefs([1, 2, 9])] == [2]
        assert each.load().replaced == [1]


def test_all_namesakes_are_found_in_runs_and_beyond(store, reopen):
    """A run has eight ids here."""
    for n in (1, 5, 11, 12, 21):
        store.commit(an_add(n, submission=f"s{n}", key="k"))
    store.commit(changes(replaced=[(11, 12)]))
    for each in both(store, reopen):
        assert sorted(brief.id for brief in each.namesakes(["k", "none"])) == [1, 5, 12, 21]
        assert each.namesakes([]) == []


def test_a_replaced_job_can_be_re_opened_by_no_group(store, reopen):
    store.commit(an_add(1, 2, 3))
    store.commit(changes(edges=[("g", 1), (1, 2), ("g", 3)], children=[("g", 1), (1, 2)]))
    store.commit(changes(job_states={1: state_row(1, State.COMPLETE)}, replaced=[(1, 3)]))
    for each in both(store, reopen):
        assert each.dependents(["g", 1]) == [2, 3]
        assert each.followers([1]) == [2]


def test_a_job_waits_for_something_else(store, reopen):
    store.commit(an_add(1, 2))
    store.commit(an_add(3, submission="s2", after="[[1,1]]"))
    store.commit(changes(edges=[(1, 3)], children=[(1, 3)]))
    store.commit(changes(reafter={3: (3, "[[2,2]]")}, edges=[(2, 3)], children=[(2, 3)]))
    for each in both(store, reopen):
        assert each.jobs([3])[0].after == (After(2, Condition.ANY),)
        assert (each.followers([1]), each.followers([2])) == ([], [3])
        assert (each.dependents([1]), each.dependents([2])) == ([], [3])
    each.commit(changes(reafter={3: (3, None)}))
    assert (each.jobs([3])[0].after, each.followers([2])) == ((), [])


def test_a_job_with_another_key_is_found_by_that_one_alone(store, reopen):
    """Also if its former key is in a run of eight ids."""
    for n in (1, 2, 3, 20, 21):
        store.commit(an_add(n, submission=f"s{n}"))
    store.commit(an_add(22, submission="s22", key=key_of(21)))
    store.commit(changes(rekeyed={n: (n, f"new {n}", '\x01["b"]', key_of(n)) for n in (1, 20)}))
    store.commit(changes(rekeyed={22: (22, "new 22", "c", key_of(21))}))
    for each in both(store, reopen):
        asked = [key_of(n) for n in (1, 2, 20, 21)] + [f"new {n}" for n in (1, 20, 22)]
        known = each.known_keys("ann", asked)
        assert {key: job for key, (job, _state) in known.items()} == {
            key_of(2): 2, key_of(21): 21, "new 1": 1, "new 20": 20, "new 22": 22,
        }  # fmt: skip
        assert [job.cmd for job in each.jobs([1, 22])] == [["b"], "c"]
    each.commit(changes(rekeyed={1: (1, key_of(21), "d", "new 1")}))
    assert sorted(brief.id for brief in each.namesakes([key_of(21), "new 1"])) == [1, 21]
    assert each.known_keys("ann", [key_of(21)]) == {key_of(21): (21, State.READY)}


def test_of_jobs_that_got_one_key_one_after_another_the_newest_is_found(store, reopen):
    store.load()
    for n in (8, 9, 10, 12):
        store.commit(an_add(n, submission=f"s{n}"))
    for n in (9, 10, 8):
        store.commit(changes(rekeyed={n: (n, key_of(12), "b", key_of(n))}))
    store.commit(changes(rekeyed={12: (12, "another", "c", key_of(12))}))
    for each in both(store, reopen):
        assert each.known_keys("ann", [key_of(12)]) == {key_of(12): (10, State.READY)}


def test_only_the_last_submission_of_an_input_is_remembered(store, reopen):
    store.commit(changes(submissions=[("s1", "ann", 9.0, 1, "{}", "/f")]))
    store.commit(changes(submissions=[("s2", "ann", 5.0, 1, "{}", "/f"), ("s3", "bob", 5.0, 1, "{}", "/f")]))
    store.commit(changes(submissions=[("s4", "ann", 6.0, 1, None, None), ("s5", "ann", 6.0, 1, "{}", None)]))
    for each in both(store, reopen):
        assert each.last_of_input("ann", "/f").id == "s2"
        assert each.last_of_input("bob", "/f").id == "s3"
        assert each.last_of_input("ann", "/g") is None
    each.commit(changes(submissions=[("s6", "ann", 7.0, 1, "{}", "/f"), ("s7", "ann", 7.0, 1, "{}", "/f")]))
    assert each.last_of_input("ann", "/f").id == "s7"


def test_ids_of_a_refused_upload_are_given_to_others_in_the_same_batch(store, reopen):
    store.commit(an_add(1, 2, answer=None))
    made = an_add(1, submission="s2", cmd="another")
    made.undone = [1, 2]
    made.dropped = ["s1"]
    store.commit(made)
    for each in both(store, reopen):
        assert [job.cmd for job in each.jobs([1, 2])] == ["another"]
        assert each.load().next_job == 2


def test_a_key_is_found_whose_newest_job_was_refused_and_whose_id_another_has(store, reopen):
    store.load()
    store.commit(an_add(1, key=key_of("k")))
    store.commit(an_add(2, submission="s2", key=key_of("k"), answer=None))
    made = an_add(2, submission="s3", key=key_of("other"))
    made.undone, made.dropped = [2], ["s2"]
    store.commit(made)
    for each in both(store, reopen):
        assert each.known_keys("ann", [key_of("k")]) == {key_of("k"): (1, State.READY)}
        assert [brief.id for brief in each.namesakes([key_of("k")]) if brief.key == key_of("k")] == [1]
