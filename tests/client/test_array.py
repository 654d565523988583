"""Array specifications: what they pick, and what is wrong with those that pick nothing good."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.client.fields.array import Elements, throttle
from rota.core.fields.array import MAX_ELEMENTS, Array, array
from rota.errors import BadInput


def refusal(value: object) -> str:
    with pytest.raises(BadInput) as refused:
        array(value, True)
    assert refused.value.hint
    return refused.value.message


@pytest.mark.parametrize(
    ("text", "indexes", "at_once"),
    [
        ("1-100%5", list(range(1, 101)), 5),
        ("0-99:2", list(range(0, 100, 2)), None),
        ("1,3,7-9", [1, 3, 7, 8, 9], None),
        ("0", [0], None),
        ("5-5", [5], None),
        ("0-9:4", [0, 4, 8], None),
        ("9,1-3 % 2", [9, 1, 2, 3], 2),
        (" 1 , 3 ", [1, 3], None),
        ("1-3:7", [1], None),
        ("0-9:3,1-9:3", [0, 3, 6, 9, 1, 4, 7], None),
        ("%3", [], 3),
        ("007", [7], None),
    ],
)
def test_a_specification_picks_indexes_in_the_order_in_which_they_stand(
    text: str, indexes: list[int], at_once: int | None
) -> None:
    found = array(text, True)
    assert (list(found), len(found), found.at_once) == (indexes, len(indexes), at_once)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "'' (part 1) is not an index or a range"),
        ("   ", "'' (part 1)"),
        ("1,,3", "'' (part 2)"),
        ("1-3,", "'' (part 2)"),
        ("1,a", "'a' (part 2)"),
        ("-5", "'-5' (part 1)"),
        ("1--5", "'1--5' (part 1)"),
        ("1-", "'1-' (part 1)"),
        ("1-5:", "'1-5:' (part 1)"),
        ("5:2", "'5:2' (part 1)"),
        ("1.5", "'1.5' (part 1)"),
        ("1;2", "'1;2' (part 1)"),
        ("٣", "(part 1)"),
        ("1\n2", "'1\\n2' (part 1)"),
        ("1,9-7", "'9-7' (part 2) ends before it begins"),
        ("1-9:0", "'1-9:0' (part 1) has a step of 0"),
        ("1-3,2", "part 2 has index 2 again"),
        ("5,1,5", "part 3 has index 5 again"),
        ("0-8:2,1-9:2,4-5", "part 3 has index 4 again"),
        ("1-1000001", "has more than 1000000 elements"),
        ("1-1000000,1000001", "has more than 1000000 elements"),
        ("1-999999999999999", "is beyond 999999999"),
        ("1000000000", "is beyond 999999999"),
        ("9" * 40, "(part 1) is not an index"),
        ("1-9%", "'%'"),
        ("1-9%0", "'%0'"),
        ("1-9%-1", "'%-1'"),
        ("1-9%x", "'%x'"),
        ("1-9%5%5", "'%5%5'"),
        ("1-9%1000001", "'%1000001'"),
        ("%", "'%'"),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, expected: str) -> None:
    assert expected in refusal(text)


@pytest.mark.parametrize("value", [5, 1.5, True, ["1-3"], {"a": 1}])
def test_only_texts_are_specifications(value: object) -> None:
    assert "must be a text" in refusal(value)


def test_the_largest_array_is_allowed_and_cheap() -> None:
    assert len(array(f"0-{MAX_ELEMENTS - 1}", True)) == MAX_ELEMENTS
    assert len(array(f"0-{MAX_ELEMENTS * 2 - 1}:2", True)) == MAX_ELEMENTS


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=30, unique=True))
def test_any_indexes_written_out_are_read_back(indexes: list[int]) -> None:
    assert list(array(",".join(map(str, indexes)), False)) == indexes


@given(st.text(alphabet="0123456789-,:% x", max_size=12))
def test_any_text_is_distinct_indexes_or_a_refusal_in_one_line(text: str) -> None:
    try:
        found = array(text, True)
    except BadInput as error:
        assert "\n" not in str(error)
    else:
        if len(found) < 10_000:
            assert len(set(found)) == len(found)


def test_elements_are_cut_into_pieces_without_loss() -> None:
    elements = Elements("x", array("1-3,7,9", True), None)
    pieces = [(list(elements.indexes(at, 2)), elements.commands(at, 2, room=100)) for at in (0, 2, 4)]
    assert pieces == [([1, 2], ["x", "x"]), ([3, 7], ["x", "x"]), ([9], ["x"])]


def test_a_piece_has_at_least_one_command_and_no_more_than_there_is_room_for() -> None:
    same = Elements("xxxx", array("1-9", True), None)
    assert [len(same.commands(0, 9, room=room)) for room in (-5, 0, 4, 9, 1000)] == [1, 1, 1, 2, 9]
    other = Elements(["p"], None, ["aaa", "bbb", "ccc"])
    assert other.commands(0, 3, room=-5) == [["p", "aaa"]]
    assert other.commands(1, 3, room=5) == [["p", "bbb"], ["p", "ccc"]]


def test_every_array_has_a_limit_of_its_own() -> None:
    """Two equal ones are two arrays, each with so many at once."""
    spec = array("1-9%2", True)
    one, two = throttle(spec), throttle(spec)
    assert one is not None and two is not None  # noqa: PT018
    assert (one.number, two.number) == (2, 2)
    assert one.name != two.name
    assert throttle(Array("1-9", (range(1, 10),))) is None
