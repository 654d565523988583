"""Types of a job: the words, what they need, and which exclude each other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.errors import BadInput
from rota.plan.language.type_parser import TYPES, check_reservation, parse_types, type_words
from rota.plan.language.types import Types


def moment(text: str) -> float:
    if not text.isdecimal():
        raise BadInput(f"'{text}' is not a time", hint="write a number")
    return float(text)


def refusal(*words: str) -> BadInput:
    with pytest.raises(BadInput) as refused:
        parse_types(words, moment=moment)
    return refused.value


def test_no_words_are_plain_terms() -> None:
    assert parse_types([], moment=moment) == Types()


@pytest.mark.parametrize("name", [name for name, value in TYPES.items() if not value])
def test_a_word_is_a_type(name: str) -> None:
    types = parse_types([f" {name} "], moment=moment)
    assert getattr(types, name) is True
    assert type_words(types) == (name,)


def test_types_have_values() -> None:
    words = ["inner=12", "placeholder=yop", "allowed = other", "deadline=30", "postpone=10", "expire=10"]
    assert parse_types(words, moment=moment) == Types(
        inner="12", placeholder="yop", allowed="other", deadline=30.0, postpone=10.0, expire=10.0
    )


@pytest.mark.parametrize(
    ("word", "shared"),
    [
        ("timesharing", ("*", "*")),
        ("timesharing=*,*", ("*", "*")),
        ("timesharing=user,*", ("user", "*")),
        ("timesharing= * , name", ("*", "name")),
        ("timesharing=user,name", ("user", "name")),
    ],
)
def test_timesharing_says_what_must_be_equal(word: str, shared: tuple[str, str]) -> None:
    assert parse_types([word], moment=moment).timesharing == shared


@pytest.mark.parametrize(
    "words",
    [
        ("besteffort", "container"),
        ("besteffort", "idempotent"),
        ("inner=1", "placeholder=a"),
        ("container", "inner=outer"),
        ("deploy", "container"),
    ],
)
def test_types_that_go_together(words: tuple[str, ...]) -> None:
    assert sorted(type_words(parse_types(words, moment=moment))) == sorted(words)


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["bestefort"], "unknown type 'bestefort'", "did you mean 'besteffort'?"),
        (["Container"], "unknown type 'Container'", "did you mean 'container'?"),
        (["zzz"], "unknown type 'zzz'", "types: besteffort, idempotent"),
        ([""], "a type is empty", "types: besteffort"),
        (["=1"], "a type is empty", "types: besteffort"),
        (["noop,deploy"], "unknown type 'noop,deploy'", "give -t once for each type"),
        (["type:"], "type 'type:' cannot be one of the site's own", "type:NAME"),
        (["type:a b"], "type 'type:a b' cannot be one of the site's own", "type:NAME"),
        (["type:é"], "type 'type:é' cannot be one of the site's own", "type:NAME"),
        (["type:a", "type:a=1"], "type 'type:a' is given twice", "give it once"),
        (["type:a="], "type 'type:a': '' is not a value", "type:a=WORD"),
        (["yop"], "unknown type 'yop'", "one of the site's own is written type:yop"),
        (["noop", "noop"], "type 'noop' is given twice", "give it once"),
        (["inner=1", "inner=2"], "type 'inner' is given twice", "give it once"),
        (["noop=1"], "type 'noop' takes no value", "write noop"),
        (["noop="], "type 'noop' takes no value", "write noop"),
        (["inner"], "type 'inner' needs a value", "write inner=ID"),
        (["inner= "], "type 'inner' needs a value", "write inner=ID"),
        (["inner=a\nb"], "type 'inner': 'a\\nb' is not printable", "write inner=ID"),
        (["deadline"], "type 'deadline' needs a value", "write deadline=TIME"),
        (["deadline=soon"], "type 'deadline': 'soon' is not a time", "write a number"),
        (["timesharing="], "type 'timesharing': '' is not understood", "timesharing=user,*"),
        (["timesharing=user"], "type 'timesharing': 'user' is not understood", "timesharing=user,*"),
        (["timesharing=name,user"], "type 'timesharing': 'name,user' is not understood", "timesharing=user,*"),
        (["deploy", "noop"], "types 'deploy' and 'noop' exclude each other", "give one"),
        (["cosystem", "deploy"], "types 'deploy' and 'cosystem' exclude each other", "give one"),
        (["postpone=5", "deadline=5"], "type 'postpone' is not before 'deadline'", "start before"),
        (["postpone=6", "expire=5"], "type 'postpone' is after 'expire'", "start before"),
        (["inner=" + "x" * 300], "the value of type 'inner' has 300 characters", "at most 255"),
    ],
)
def test_a_mistake_is_named_with_its_fix(words: list[str], message: str, hint: str) -> None:
    refused = refusal(*words)
    assert refused.message == message
    assert hint in refused.hint


def test_a_site_may_have_types_of_its_own() -> None:
    types = parse_types(["type:yop", "noop", "type:cost=5"], moment=moment)
    assert types == Types(noop=True, free=("type:cost=5", "type:yop"))
    assert type_words(types) == ("noop", "type:cost=5", "type:yop")
    assert parse_types(type_words(types)) == types


def test_kept_times_are_unix_seconds() -> None:
    assert type_words(Types(deadline=1_700_000_000.25)) == ("deadline=1700000000.25",)
    with pytest.raises(BadInput, match="not a time in Unix seconds"):
        parse_types(["deadline=now+1h"])


@pytest.mark.parametrize(
    "types",
    [Types(besteffort=True), Types(inner="1"), Types(postpone=6.0), Types(expire=4.0), Types(deadline=5.0)],
)
def test_some_terms_leave_no_room_for_a_reservation(types: Types) -> None:
    with pytest.raises(BadInput):
        check_reservation(types, 5.0)


def test_other_terms_do() -> None:
    check_reservation(Types(container=True, postpone=5.0, expire=5.0, deadline=6.0), 5.0)


labels = st.text(st.characters(exclude_categories=["C", "Z"]), max_size=9)
moments = st.none() | st.integers(0, 10**15).map(lambda micros: micros / 1_000_000)


@given(
    st.builds(
        Types,
        besteffort=st.booleans(),
        idempotent=st.booleans(),
        container=st.booleans(),
        inner=labels,
        timesharing=st.none() | st.tuples(st.sampled_from(["user", "*"]), st.sampled_from(["name", "*"])),
        placeholder=labels,
        allowed=labels,
        noop=st.booleans(),
        deadline=moments,
        expire=moments,
    )
)
def test_kept_words_are_read_back(types: Types) -> None:
    assert parse_types(type_words(types)) == types
