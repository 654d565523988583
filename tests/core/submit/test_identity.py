"""What makes two jobs the same, and what does not."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.submit.identity import key_maker

words = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0"), max_size=6)
commands = words | st.lists(words, max_size=4)


def key(cmd: str | list[str], n: int = 0, *, user: str = "ann", cwd: str | None = "/w") -> str:
    return key_maker(user=user, cwd=cwd)(cmd, n)


def test_a_key_has_128_bits_and_is_the_same_every_time() -> None:
    assert len(bytes.fromhex(key("echo"))) == 16
    assert key("echo") == key("echo")
    assert key("echo") == "70fcc411a143303c5c2b662625082350"


@pytest.mark.parametrize(
    "other",
    [
        key("echo "),
        key("echo", 1),
        key(["echo"]),
        key("echo", user="bob"),
        key("echo", cwd="/w2"),
        key("echo", cwd=None),
    ],
)
def test_user_command_directory_and_position_among_equals_tell_jobs_apart(other: str) -> None:
    assert key("echo") != other


def test_a_scratch_job_is_the_same_wherever_it_was_added() -> None:
    assert key("echo", cwd=None) == key("echo", cwd=None)


def test_the_second_of_two_equal_lists_is_not_a_list_with_one_argument_more() -> None:
    assert key(["echo"], 1) != key(["echo", "1"], 0)
    assert key("echo", 1) != key(["echo", "1"], 0)


def test_how_words_are_divided_matters() -> None:
    lists = [["a b"], ["a", "b"], ["", "ab"], ["ab", ""], ["ab"], []]
    assert len({key(each) for each in lists}) == len(lists)


@given(st.tuples(commands, st.integers(0, 12)), st.tuples(commands, st.integers(0, 12)))
def test_different_entries_have_different_keys(one: tuple, other: tuple) -> None:
    assert (key(*one) == key(*other)) == (one == other)


@given(words, words, words, words)
def test_user_and_directory_do_not_run_into_each_other(u: str, c: str, v: str, d: str) -> None:
    assert (key("x", user=u, cwd=c) == key("x", user=v, cwd=d)) == ((u, c) == (v, d))


def test_a_million_keys_do_not_collide_in_their_last_eight_characters_more_than_chance() -> None:
    maker = key_maker(user="ann", cwd="/w")
    seen = {maker(f"job {a} {b}", 0)[-8:] for a, b in product(range(100), range(200))}
    assert len(seen) > 19_990
