"""Lists of hosts: what they stand for, what is wrong with them, and the way back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.errors import BadInput
from rota.plan.language.hostlist import expand, fold, natural


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", ["n1"]),
        ("n1,n2 , login.example.org", ["n1", "n2", "login.example.org"]),
        ("n[1-3,7]", ["n1", "n2", "n3", "n7"]),
        ("n[8-10]", ["n8", "n9", "n10"]),
        ("n[08-10]", ["n08", "n09", "n10"]),
        ("n[098-101]", ["n098", "n099", "n100", "n101"]),
        ("n[99-101]", ["n99", "n100", "n101"]),
        ("n[09-11,1]x", ["n09x", "n10x", "n11x", "n1x"]),
        ("n[0-1]", ["n0", "n1"]),
        ("a[1-2]b[1-2]", ["a1b1", "a1b2", "a2b1", "a2b2"]),
        ("[1-2]", ["1", "2"]),
        ("n[1-2],n2,n[2-3]", ["n1", "n2", "n3"]),
        ("n[1,1,01]", ["n1", "n01"]),
    ],
)
def test_a_list_stands_for_names(text: str, names: list[str]) -> None:
    assert expand(text) == names


def test_a_hundred_hosts_keep_their_zeros_and_fold_back() -> None:
    names = expand("n[001-100]")
    assert (len(names), names[0], names[-1]) == (100, "n001", "n100")
    assert fold(names) == "n[001-100]"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("  ", "empty"),
        (",", "column 1: a name is missing"),
        ("n1,", "column 4: a name is missing"),
        ("n1,,n2", "column 4: a name is missing"),
        ("n1 n2", "column 4: a comma is missing"),
        ("n[1-3", "column 2: the bracket is not closed"),
        ("n[", "column 3: a number is missing"),
        ("n[]", "column 3: a number is missing"),
        ("n[1,]", "column 5: a number is missing"),
        ("n[-3]", "column 3: a number is missing"),
        ("n[1-]", "column 4: '-' is no part"),
        ("n[1-3x]", "column 6: 'x' is no part"),
        ("n[a-b]", "column 3: a number is missing"),
        ("n]1", "column 2: ']' cannot be"),
        ("n{1}", "column 2: '{' cannot be"),
        ("nü", "column 2"),
        ("n1\x00", "column 3"),
        ("n[3-1]", "'3-1' runs backwards; write 1-3"),
        ("n[1-010]", "'1-010' begins and ends with different zeros; write 001-010"),
        ("n[001-10]", "'001-10' begins and ends with different zeros; write 001-010"),
        ("n[1-1000001]", "more than 1,000,000"),
        ("n[1-9999999999]", "too large"),
        ("a[1-1000]b[1-1001]", "too many names; write at most 1,000,000"),
        ("a[1-999999]b[1-999999]c[1-999999]d[1-999999]", "too many names"),
        ("n[1-600000],m[1-600000]", "too many names"),
        ("n" * 300, "too long"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, words: str) -> None:
    with pytest.raises(BadInput) as refused:
        expand(text)
    assert words in str(refused.value)
    assert refused.value.hint


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["n1"], "n1"),
        (["n1", "n2", "n3", "n5"], "n[1-3,5]"),
        (["n3", "n1", "n2", "n2"], "n[1-3]"),
        (["n8", "n9", "n10"], "n[8-10]"),
        (["n08", "n09", "n10", "n8"], "n[8,08-10]"),
        (["login", "n1", "n2"], "n[1-2],login"),
        (["a1b1", "a1b2", "a2b1", "a2b2"], "a[1-2]b[1-2]"),
        (["a1b1", "a1b2", "a2b1"], "a1b[1-2],a2b1"),
        (["n1-ib", "n2-ib", "n1"], "n[1-2]-ib,n1"),
        (["n12345678901", "n12345678902"], "n12345678901,n12345678902"),
    ],
)
def test_names_fold_into_a_short_list(names: list[str], text: str) -> None:
    assert fold(names) == text


NAMES = st.lists(
    st.one_of(
        st.from_regex(r"[a-c][0-9]{1,3}(-[0-9]{1,2})?", fullmatch=True),
        st.from_regex(r"[A-Za-z0-9._-]{1,20}", fullmatch=True),
    ),
    min_size=1,
    max_size=40,
)


@given(NAMES)
def test_folded_names_stand_for_the_same_names(names: list[str]) -> None:
    folded = fold(names)
    again = expand(folded)
    assert len(again) == len(set(again))
    assert set(again) == set(names)
    assert set(expand(fold(again))) == set(names)


@given(st.text(alphabet="n1[]-,0 a\x00ü", max_size=20))
def test_any_text_is_names_or_a_clear_error(text: str) -> None:
    try:
        names = expand(text)
    except BadInput as error:
        assert error.message
        assert "\n" not in str(error)
    else:
        assert names
        assert set(expand(fold(names))) == set(names)


def test_names_are_sorted_as_people_do() -> None:
    names = ["node10", "n", "node2", "node02", "node1-b3", "node1-b12", "login"]
    assert sorted(names, key=natural) == ["login", "n", "node1-b3", "node1-b12", "node02", "node2", "node10"]


@given(st.lists(st.text("ab-.019", min_size=1, max_size=12)))
def test_any_names_can_be_sorted_and_numbers_are(names: list[str]) -> None:
    assert sorted(sorted(names, key=natural)) == sorted(names)
    numbers = [f"n{len(name)}" for name in names]
    assert [int(each[1:]) for each in sorted(numbers, key=natural)] == sorted(map(len, names))
