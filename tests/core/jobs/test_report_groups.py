"""Several report groups in one text: taken apart as they were put together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rota.core.jobs.report_groups import by_name, first_of, is_in, joined, names_of

names = st.lists(st.sampled_from(["a", "b", "a,b", "ab", " ", "ä"]), min_size=1, max_size=4)


@given(names)
def test_names_come_back_each_once_and_in_order(given_names: list[str]) -> None:
    group = joined(given_names)
    assert list(names_of(group)) == list(dict.fromkeys(given_names))
    assert first_of(group) == given_names[0]


@given(names, st.sampled_from(["a", "b", "a,b", "c"]))
def test_a_job_is_in_the_groups_that_it_names_and_in_no_other(given_names: list[str], name: str) -> None:
    assert is_in(name, joined(given_names)) is (name in given_names)


def test_one_group_is_its_name() -> None:
    assert joined(["a"]) == "a"
    assert by_name(["a", joined(["a", "b"])]) == {"a": ["a", "a\nb"], "b": ["a\nb"]}
