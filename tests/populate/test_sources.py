"""The contract of sources, on every ledger and server."""

from __future__ import annotations

import threading

import pytest

from rota.populate.source.base import Key, TableFailed, Wanted
from tests.populate.laboratory import KINDS, Lab, wait_for

pytestmark = [pytest.mark.parametrize("lab", KINDS, indirect=True)]

ALL = [Wanted(None, 100)]


def keys(*numbers: int) -> list[Key]:
    return [{"recording": number} for number in numbers]


def numbers(found: list[Key]) -> list[int]:
    return [int(str(key["recording"])) for key in found]


def test_missing_keys_are_found_and_claimed_by_one_batch_each(lab: Lab) -> None:
    source, other = lab.source(), lab.source()
    look = source.look([Wanted(None, 10)])
    assert (look.done, look.todo, look.queued) == (0, 25, 0)
    assert numbers(look.free[0]) == list(range(1, 11))
    got = source.claim({"a": keys(1, 2, 3), "b": keys(4, 5)}, 3600)
    assert {token: sorted(numbers(found)) for token, found in got.items()} == {"a": [1, 2, 3], "b": [4, 5]}
    assert other.claim({"c": keys(3, 4, 6)}, 3600) == {"c": keys(6)}
    look = other.look(ALL)
    assert (look.todo, look.queued, look.batches) == (25, 6, {"a": 3, "b": 2, "c": 1})
    assert numbers(look.free[0]) == list(range(7, 26))


def test_bins_are_evaluated_in_the_same_query_and_the_first_match_counts(lab: Lab) -> None:
    lab.add(101, 102, hours=2.5)
    lab.add(103, hours=7)
    source = lab.source()
    bins = [Wanted("hours <= 1", 2), Wanted("hours <= 3", 100), Wanted(None, 100)]
    source.open()
    before = lab.server.mark()
    look = source.look(bins)
    assert [numbers(found) for found in look.free] == [[1, 2], [101, 102], [103]]
    # 9. key_source is evaluated at most once per table and cycle.
    evaluated = [text for text in lab.server.statements(before) if "hours <= 3" in text]
    assert len(evaluated) == 1
    look = source.look(bins[:2])
    assert (look.unbinned, look.todo) == (1, 28)
    source.claim({"a": keys(103)}, 3600)
    look = source.look(bins[:2])
    assert (look.unbinned, look.queued) == (0, 1)


def test_a_released_batch_frees_its_keys_and_its_token_is_worth_nothing(lab: Lab) -> None:
    source = lab.source()
    source.claim({"a": keys(1, 2, 3), "b": keys(4)}, 3600)
    assert source.release("a", on_lost="error", why="it is gone") == (3, 0)
    look = source.look(ALL)
    assert (look.queued, look.batches) == (1, {"b": 1})
    assert numbers(look.free[0])[:4] == [1, 2, 3, 5]
    assert "'skipped': 3" in lab.run("a", keys(1, 2, 3))
    assert lab.made == []


def test_a_lease_expires_by_itself_and_the_batch_does_not_start(lab: Lab) -> None:
    source = lab.source()
    source.claim({"a": keys(1, 2)}, 0)
    look = source.look(ALL)
    assert (look.queued, numbers(look.free[0])[:2]) == (0, [1, 2])
    assert "'skipped': 2" in lab.run("a", keys(1, 2))
    assert source.claim({"b": keys(1, 2)}, 3600) == {"b": keys(1, 2)}
    assert lab.made == []


def test_a_batch_makes_its_keys_each_once_and_leaves_nothing_in_the_ledger(lab: Lab) -> None:
    source = lab.source()
    source.claim({"a": keys(1, 2, 3)}, 3600)
    assert "'done': 3" in lab.run("a", keys(1, 2, 3))
    assert "'skipped': 3" in lab.run("a", keys(1, 2, 3))
    assert lab.made == [1, 2, 3]
    assert lab.done == [1, 2, 3]
    look = source.look(ALL)
    assert (look.done, look.todo, look.queued, look.running, look.batches) == (3, 22, 0, 0, {})


def test_a_key_costs_two_statements_of_the_ledger_whatever_the_size_of_its_batch(lab: Lab) -> None:
    source = lab.source()
    counts = []
    for token, numbered in (("a", keys(1, 2)), ("b", keys(*range(3, 13)))):
        source.claim({token: numbered}, 3600)
        before = lab.server.mark()
        assert f"'done': {len(numbered)}" in lab.run(token, numbered)
        found = [text for text in lab.server.statements(before) if text.startswith(("UPDATE", "DELETE"))]
        counts.append(len([text for text in found if "jobs" in text or "~~trace" in text]))
    # And one that extends the lease of all.
    assert counts == [5, 21]


def test_a_raising_key_is_an_error_with_message_and_stack_and_the_others_are_done(lab: Lab) -> None:
    """Case 3; and an exit is an error like any other."""
    lab.behave(2, "raise")
    lab.behave(3, "exit")
    source = lab.source()
    source.claim({"a": keys(1, 2, 3, 4)}, 3600)
    said = lab.run("a", keys(1, 2, 3, 4))
    assert "'done': 2" in said, said
    assert "'error': 2" in said
    assert lab.done == [1, 4]
    errors = lab.errors
    assert errors[2][0] == "ValueError: recording 2 is broken"
    assert "in misbehave" in errors[2][1]
    assert errors[3][0] == "SystemExit: 3"
    look = source.look(ALL)
    assert (look.errors, look.todo) == (2, 23)
    assert not {2, 3} & set(numbers(look.free[0]))
    assert source.claim({"b": keys(2, 3)}, 3600) == {"b": []}


def test_a_batch_that_is_told_to_end_settles_its_key_and_frees_the_others(lab: Lab) -> None:
    lab.behave(2, "term")
    source = lab.source()
    source.claim({"a": keys(1, 2, 3)}, 3600)
    assert "BatchFailed" in lab.run("a", keys(1, 2, 3))
    assert lab.made == [1, 2]
    assert lab.done == [1]
    assert "signal 15" in lab.errors[2][0]
    look = source.look(ALL)
    assert (look.queued, look.running, numbers(look.free[0])[0]) == (0, 0, 3)
    source.claim({"b": keys(3)}, 3600)
    lab.behave(3, "term")
    lab.run("b", keys(3), on_timeout="release")
    assert numbers(source.look(ALL).free[0])[0] == 3
    assert list(lab.errors) == [2]


def test_a_killed_child_leaves_the_table_unchanged_and_its_keys_are_settled(lab: Lab) -> None:
    """Case 6, after the transport has said that the batch is dead."""
    lab.behave(2, "kill")
    source = lab.source()
    source.claim({"a": keys(1, 2, 3)}, 3600)
    lab.run("a", keys(1, 2, 3))
    look = source.look(ALL)
    assert (look.done, look.running, look.queued) == (1, 1, 1)
    assert source.release("a", on_lost="error", why="its process was killed") == (1, 1)
    assert lab.done == [1]
    assert lab.errors[2][0] == "its process was killed"
    assert numbers(source.look(ALL).free[0])[0] == 3


def test_the_key_of_a_killed_child_may_be_tried_again_so_often(lab: Lab) -> None:
    lab.behave(1, "kill")
    source = lab.source()
    source.spec["attempts"] = 2
    source.close()
    for attempt, outcome in enumerate([(1, 0), (0, 1)]):
        token = f"t{attempt}"
        assert source.claim({token: keys(1)}, 3600) == {token: keys(1)}
        lab.run(token, keys(1), attempts=2)
        assert source.release(token, on_lost="release", why="killed") == outcome
    assert lab.made == [1, 1]
    assert list(lab.errors) == [1]


def test_a_deadlock_releases_its_key_three_times_and_is_an_error_then(lab: Lab) -> None:
    lab.behave(1, "deadlock")
    source = lab.source()
    said = []
    for attempt in range(3):
        source.claim({f"t{attempt}": keys(1, attempt + 2)}, 3600)
        said.append(lab.run(f"t{attempt}", keys(1, attempt + 2)))
    assert ["'released': 1" in each for each in said] == [True, True, False], said
    assert all("'done': 1" in each for each in said)
    assert "1213" in lab.errors[1][0]


def test_a_connection_that_is_cut_in_a_transaction_costs_a_try_and_no_error(lab: Lab) -> None:
    lab.behave(2, "cut")
    source = lab.source()
    source.claim({"a": keys(1, 2, 3)}, 3600)
    said = lab.run("a", keys(1, 2, 3))
    assert "'done': 2" in said, said
    assert "'released': 1" in said
    assert lab.done == [1, 3]
    assert lab.errors == {}
    source.claim({"b": keys(2)}, 3600)
    assert "'done': 1" in lab.run("b", keys(2))
    assert lab.made == [1, 2, 3, 2]


def test_those_who_claim_at_once_get_each_key_once(lab: Lab) -> None:
    sources = [lab.source() for _ in range(4)]
    wanted = sources[0].look(ALL).free[0]
    got: list[list[Key]] = []

    def claim(number: int) -> None:
        token = f"t{number}"
        try:
            got.append(sources[number].claim({token: wanted}, 3600)[token])
        except TableFailed as error:
            # A deadlock of the claims: this one got nothing, and says so.
            assert error.kind == "database"

    for each in sources:
        each.open()
    threads = [threading.Thread(target=claim, args=(number,)) for number in range(len(sources))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers([key for each in got for key in each])) == sorted(numbers(wanted))


def test_after_the_time_limit_no_later_key_runs_and_those_are_free(lab: Lab) -> None:
    source = lab.source()
    source.claim({"a": keys(1, 2)}, 3600)
    said = lab.run("a", keys(1, 2), job_timeout=0)
    assert "BatchFailed" in said
    assert lab.made == []
    look = source.look(ALL)
    assert (look.queued, look.todo, numbers(look.free[0])[:2]) == (0, 25, [1, 2])


def test_one_manager_has_the_lock_until_its_connection_ends(lab: Lab) -> None:
    one, other = lab.source(), lab.source()
    assert one.lock("lock of a test")
    assert one.lock("lock of a test")
    assert not other.lock("lock of a test")
    one.close()
    wait_for(lambda: other.lock("lock of a test"), "the server to end the connection")


def test_after_a_restart_of_the_server_the_table_can_be_asked_again(lab: Lab) -> None:
    source = lab.source()
    assert source.lock("lock of a test")
    lab.server.stop()
    with pytest.raises(TableFailed):
        source.look(ALL)
    lab.server.start()
    assert source.look(ALL).todo == 25
    assert source.lock("lock of a test")


def test_ten_thousand_keys_take_at_most_fifty_statements(lab: Lab) -> None:
    """Case 10."""
    lab.add(*range(1000, 11000))
    source = lab.source()
    source.open()
    before = lab.server.mark()
    found = source.look([Wanted(None, 10000)]).free[0]
    batches = {f"t{start}": found[start : start + 1000] for start in range(0, len(found), 1000)}
    got = source.claim(batches, 3600)
    assert sum(map(len, got.values())) == 10000
    assert len(lab.server.statements(before)) <= 50


def test_a_table_that_cannot_be_imported_names_what_is_missing(lab: Lab) -> None:
    """Case 7."""
    source = lab.source()
    source.spec["name"] = "nowhere.at.All"
    with pytest.raises(TableFailed, match=r"No module named 'nowhere'") as error:
        source.look(ALL)
    assert (error.value.kind, error.value.module) == ("import", "nowhere")
    source.spec["name"] = "plain.nothing" if lab.ledger == "sql" else "lab.Nothing"
    with pytest.raises(TableFailed, match=r"has no [nN]othing"):
        source.look(ALL)
    assert lab.source().look(ALL).todo == 25
