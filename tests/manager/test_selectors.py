"""Selectors: commas mean AND, words mean OR, anything else is refused with a hint."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.job import Element, Job, Spec
from rota.core.states import State
from rota.errors import BadInput
from rota.manager.selectors import Matching, matches, parse
from rota.store.base import Clause


def test_every_form_is_understood() -> None:
    words = ["12", "12-20", "@grp", "state=failed", "user=x", "host=h", "queue=q", "project=p", "all", "last"]
    assert parse(words, last=[(3, 5), (9, 9)]) == [
        Clause(low=12, high=12),
        Clause(low=12, high=20),
        Clause(group="grp"),
        Clause(state=int(State.FAILED)),
        Clause(user="x"),
        Clause(host="h"),
        Clause(queue="q"),
        Clause(project="p"),
        Clause(),
        Clause(low=3, high=5),
        Clause(low=9, high=9),
    ]


def test_last_may_be_narrowed() -> None:
    assert parse(["last,state=failed", "last,4-20"], last=[(3, 5), (9, 9)]) == [
        Clause(low=3, high=5, state=int(State.FAILED)),
        Clause(low=9, high=9, state=int(State.FAILED)),
        Clause(low=4, high=5),
        Clause(low=9, high=9),
    ]


def test_commas_join_conditions() -> None:
    assert parse(["@g,state=failed,10-20"], last=[]) == [
        Clause(low=10, high=20, group="g", state=int(State.FAILED))
    ]


@pytest.mark.parametrize(
    "word",
    [
        "",
        "0",
        "20-12",
        "x",
        "state=",
        "state=nothing",
        "12_7-3",
        "state=failed,state=ready",
        "@",
        "12,13",
        "\u0661\u0662",
        "1-\u0662",
        "\u0661_1",
        "12_\u0662",
    ],
)
def test_what_cannot_be_meant_is_refused(word: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse([word], last=[])
    assert refused.value.hint


@given(st.text(max_size=30))
def test_any_text_is_parsed_or_refused(word: str) -> None:
    try:
        parse([word], last=[(1, 2)])
    except BadInput as error:
        assert error.message


_one = st.just(1)
_names = st.sampled_from(["", "a", "b"])
_clauses = st.builds(
    Clause,
    low=st.sampled_from([0, 2]),
    high=st.just(3),
    group=_names,
    user=_names,
    host=_names,
    queue=_names,
    project=_names,
    submission=_names,
    state=st.sampled_from([0, int(State.READY)]),
    array=st.sampled_from([0, 1]),
)
_jobs = st.builds(
    Job,
    id=st.integers(1, 4),
    key=st.just("k"),
    spec=st.builds(Spec, user=_names, cwd=st.just("/"), env=_one, group=_names, queue=_names, project=_names),
    spec_id=st.just(1),
    cmd=st.just("true"),
    state=st.sampled_from([State.READY, State.HELD]),
    submission=_names,
    submitted_at=st.just(0.0),
    element=st.sampled_from([None, Element(1, 1)]),
)


@given(st.lists(_clauses, max_size=4), st.lists(_jobs, min_size=1, max_size=4), _names)
def test_clauses_that_are_compared_together_say_what_each_alone_says(
    clauses: list[Clause], jobs: list[Job], host: str
) -> None:
    together = Matching(clauses, lambda job: host)
    for job in jobs:
        assert together.has(job) == any(matches(clause, job, host) for clause in clauses)


@pytest.mark.parametrize("word", ["0_3", "0_*", "0_", "00_1-2"])
def test_there_is_no_array_0_and_it_does_not_mean_everything(word: str) -> None:
    with pytest.raises(BadInput, match="no array 0"):
        parse([word], last=[])
