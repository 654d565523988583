"""Selectors: commas mean AND, words mean OR, anything else is refused with a hint."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.attempts.parts import closing_jobs
from rota.core.jobs.element import Element
from rota.core.jobs.job import Job, Spec
from rota.core.pipelines.session import StageJob
from rota.core.states import State
from rota.errors import BadInput
from rota.manager.loop import clock
from rota.manager.views import matching as matching_module
from rota.manager.views import selectors
from rota.manager.views.matching import IdRanges, Matching, matches
from rota.manager.views.queries import Queries
from rota.plan.size import Size
from rota.store.base import Clause, Order
from rota.store.memory.store import MemoryStore
from rota.store.sqlite.store import SqliteStore
from tests.core import machine
from tests.core.attempts.test_parts import TWO, cluster, running, silence
from tests.core.machine import Machine

#: The time in these tests.
NOW = 1_000_000.0
parse = partial(selectors.parse, now=NOW)


def test_every_form_is_understood() -> None:
    words = [
        "12",
        "12-20",
        "@grp",
        "state=failed",
        "user=x",
        "host=h",
        "queue=q",
        "project=p",
        "pool=l",
        "all",
        "last",
    ]
    assert parse(words, last=[(3, 5), (9, 9)]) == [
        Clause(low=12, high=12),
        Clause(low=12, high=20),
        Clause(group="grp"),
        Clause(state=int(State.FAILED)),
        Clause(user="x"),
        Clause(host="h"),
        Clause(queue="q"),
        Clause(project="p"),
        Clause(pool="l"),
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


def test_the_newest_session_of_a_pipeline_is_selected_by_its_name() -> None:
    assert parse(["last,state=running"], last=[], now=0.0, last_session="s") == [
        Clause(submission="s", state=int(State.RUNNING))
    ]


@pytest.mark.parametrize(("word", "last"), [("last", []), ("last,9-20", [(3, 5)])])
def test_what_selects_nothing_does_not_select_everything(word: str, last: list[tuple[int, int]]) -> None:
    (clause,) = parse([word], last=last)
    assert clause.low == clause.high > 1 << 60


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


@pytest.mark.parametrize(
    ("word", "clause"),
    [
        ("name=blast", Clause(name="blast")),
        ("name=bl*", Clause(name_prefix="bl")),
        (r"name=bl\*", Clause(name="bl*")),
        ("cmd~a=b~c d", Clause(cmd_text="a=b~c d")),
        (r"cmd~a\,b,state=failed", Clause(cmd_text="a,b", state=int(State.FAILED))),
        ("exit=0", Clause(exits=(0, 0))),
        ("exit=1-125,@g", Clause(exits=(1, 125), group="g")),
        ("@par*", Clause(group_prefix="par")),
        (r"@par\*", Clause(group="par*")),
        ("group=par*,user=x", Clause(group_prefix="par", user="x")),
        ("@*", Clause()),
        ("older=1d", Clause(before=NOW - 86_400)),
        ("older=1h30m,state=ready", Clause(before=NOW - 5400, state=int(State.READY))),
        ("older=50d", Clause(before=1e-6)),
    ],
)
def test_what_a_part_says(word: str, clause: Clause) -> None:
    assert parse([word], last=[]) == [clause]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("exit=one", "selector 'exit=one': 'one' is not an exit code from 0 to 255; write exit=1, or exit=1-125"),
        ("exit=3-1", "selector 'exit=3-1': '3-1' is not an exit code from 0 to 255; write exit=1, or exit=1-125"),
        ("@g,exit=", "selector 'exit=' is not understood; write exit=1, or exit=1-125"),
        ("exit=256", "selector 'exit=256': '256' is not an exit code from 0 to 255; write exit=1, or exit=1-125"),
        ("older=1", "selector 'older=1': '1' has no unit; write 1s for seconds, 1m for minutes, 1h for hours"),
        ("cmd=x", "selector 'cmd=x' is not understood; write cmd~TEXT for commands that contain the text"),
        ("cmd~", "selector 'cmd~' is not understood; write cmd~TEXT for commands that contain the text"),
        ("name~x", "selector 'name~x' is not understood; write name=NAME, or name=PART* for names that begin so"),
        ("nmae=x", "selector 'nmae=x' is not understood; did you mean 'name=x'?"),
        ("cmdd~x", "selector 'cmdd~x' is not understood; did you mean 'cmd~x'?"),
        ("user=", "selector 'user=' is not understood; write user=USER"),
    ],
)
def test_a_refusal_names_the_part_and_what_to_write(word: str, message: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse([word], last=[])
    assert str(refused.value) == message


_one = st.just(1)
_names = st.sampled_from(["", "a", "b"])
_named = st.sampled_from(["", "a", "a b", "a b c"])
_clauses = st.builds(
    Clause,
    low=st.sampled_from([0, 2]),
    high=st.just(3),
    group=_names,
    user=_names,
    host=_names,
    queue=_names,
    project=_names,
    pool=_names,
    pool_hosts=st.sampled_from([(), ("b",)]),
    submission=_names,
    state=st.sampled_from([0, int(State.READY)]),
    array=st.sampled_from([0, 1]),
    group_prefix=_names,
    name=_named,
    name_prefix=_named,
    cmd_text=st.sampled_from(["", "RU", "x"]),
    exits=st.sampled_from([None, (1, 2), (3, 3)]),
    before=st.sampled_from([0.0, 0.5]),
)
_jobs = st.builds(
    StageJob,
    id=st.integers(1, 4),
    key=st.just("k"),
    spec=st.builds(
        Spec,
        user=_names,
        cwd=st.just("/"),
        env=_one,
        group=_names,
        queue=_names,
        project=_names,
        name=_named,
        pool=_names,
    ),
    spec_id=st.just(1),
    cmd=st.just("true"),
    state=st.sampled_from([State.READY, State.HELD]),
    submission=_names,
    submitted_at=st.sampled_from([0.0, 1.0]),
    element=st.sampled_from([None, Element(1, 1)]),
    pipeline_element=st.sampled_from([None, "b", "b c"]),
)


_hosts = st.sampled_from([(), ("a",), ("b", "a")])


@given(
    st.lists(_clauses, max_size=4), st.lists(_jobs, min_size=1, max_size=4), _hosts, st.sampled_from([None, 1, 3])
)
def test_clauses_that_are_compared_together_say_what_each_alone_says(
    clauses: list[Clause], jobs: list[Job], hosts: tuple[str, ...], exit_code: int | None
) -> None:
    together = Matching(clauses, lambda job: hosts, lambda job: exit_code)
    for job in jobs:
        assert together.has(job) == any(matches(clause, job, hosts, exit_code) for clause in clauses)


@pytest.mark.parametrize("word", ["0_3", "0_*", "0_", "00_1-2"])
def test_there_is_no_array_0_and_it_does_not_mean_everything(word: str) -> None:
    with pytest.raises(BadInput, match="no array 0"):
        parse([word], last=[])


# ------------------------------------------------------------------ hosts


@pytest.fixture(params=["memory", "sqlite"])
def _each_store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Machines keep their jobs in this one."""
    made = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "home", reserve=0, run=8)
    monkeypatch.setattr(machine, "MemoryStore", lambda: made)
    yield
    made.close()


def _queries(m: Machine) -> Queries:
    return Queries(m.world, m.store, m.store.load().specs)


def _found(m: Machine, word: str) -> list[list[int]]:
    """What is acted on, listed, and counted."""
    queries = _queries(m)
    clauses = queries.clauses([word], "ann")
    page = queries.page(clauses, limit=10, cursor=0)
    listed = [view.id for view in page.jobs]
    assert page.total == len(listed) == sum(queries.status(clauses).counts.values())
    in_order, number = queries.ordered(clauses, "", Order(), limit=10)
    assert (list(in_order), number) == (listed, len(listed))
    return [queries.live_ids(clauses), listed]


@pytest.mark.usefixtures("_each_store")
def test_a_job_is_found_by_each_of_its_hosts() -> None:
    m, _runners, job = running(3)
    for host in ("h1", "h2", "h3"):
        assert _found(m, f"host={host}") == [[job], [job]]
        assert _found(m, f"state=running,host={host}") == [[job], [job]]
    assert _found(m, "host=h") == [[], []]


@pytest.mark.usefixtures("_each_store")
def test_a_job_is_found_by_the_pool_that_it_is_in_or_names() -> None:
    m, _runners, job = running(1)
    (named,) = m.add("true", fresh=True, pool="nodes", size=Size(cpus=100_000)).added
    m.world.capacity["h1"] = msgspec.structs.replace(m.world.capacity["h1"], pool="nodes")
    assert _found(m, "pool=nodes") == [[job, named], [job, named]]
    assert _found(m, "pool=nodes,state=running") == [[job], [job]]
    assert _found(m, "pool=local") == [[], []]
    m.end(job)
    live, listed = _found(m, "pool=nodes")
    assert job not in live
    assert {job, named} <= {*listed}


@pytest.mark.usefixtures("_each_store")
def test_a_job_that_only_waits_for_its_parts_is_found_by_its_state_and_its_hosts() -> None:
    m, runners, job = running(3)
    silence(m, runners, "h3")
    m.end(job)
    assert m.state(job) is State.LOST
    assert closing_jobs(m.world) == {job}
    for word in ("state=lost", "host=h1", "host=h2", "state=lost,host=h3"):
        assert _found(m, word) == [[job], [job]]


@pytest.mark.usefixtures("_each_store")
def test_a_job_that_has_ended_is_listed_by_each_of_its_hosts() -> None:
    m, _runners, job = running(2)
    m.do("kill", m.world.next_job - 1)
    m.end(job)
    m.pump()
    for host in ("h1", "h2"):
        assert _found(m, f"host={host}") == [[], [job]]
        assert _queries(m).ended_ids([Clause(host=host)], [State.COMPLETE]) == [job]


@pytest.mark.usefixtures("_each_store")
def test_a_job_that_waits_to_run_again_is_on_no_host() -> None:
    m, _runners = cluster(2)
    (job,) = m.add("job", request=TWO, retries=1).added
    m.end(job, exit_code=1)
    assert m.state(job) is State.DELAYED
    assert _found(m, "host=h1") == _found(m, "host=h2") == [[], []]


# ------------------------------------------------------------------ names, commands, exit codes, ages


@pytest.mark.usefixtures("_each_store")
def test_live_and_ended_jobs_are_found_by_name_command_exit_code_and_age(monkeypatch: pytest.MonkeyPatch) -> None:
    m, _runners = cluster(2)
    monkeypatch.setattr(clock, "now", lambda: m.wall)
    (failed,) = m.add("Make it", name="one", group="part-a").added
    m.end(failed, exit_code=3)
    m.advance(100)
    (delayed, running_) = m.add("make that", ["make", "so"], name="only", group="part-b", retries=1).added
    m.end(delayed, exit_code=3)
    for word, live, listed in [
        ("exit=3", [delayed], [failed, delayed]),
        ("exit=3,state=failed", [], [failed]),
        ("exit=3,state=delayed", [delayed], [delayed]),
        ("exit=0-2", [], []),
        ("exit=3,host=h1", [], [failed]),
        ("name=one", [], [failed]),
        ("name=on*", [delayed, running_], [failed, delayed, running_]),
        ("cmd~MAKE", [delayed, running_], [failed, delayed, running_]),
        ("cmd~so,name=only", [running_], [running_]),
        ("@part*", [delayed, running_], [failed, delayed, running_]),
        ("@part*,@part-b", [delayed, running_], [delayed, running_]),
        ("older=50s", [], [failed]),
        ("older=0s", [delayed, running_], [failed, delayed, running_]),
    ]:
        m.advance(0.5)
        assert _found(m, word) == [live, listed], word


# ------------------------------------------------------------------ how many


@pytest.mark.parametrize(
    "words",
    [
        [str(id) for id in range(1, 3_000_001)],
        ["1"] * (selectors.MOST_WORDS + 1),
        [f"@group{number}" for number in range(selectors.MOST_OTHERS + 1)],
        ["@" + "x" * 100_000],
    ],
    ids=["ids", "repeated", "groups", "long"],
)
def test_more_selectors_than_anybody_needs_are_refused(words: list[str]) -> None:
    with pytest.raises(BadInput, match=r"too many|too long"):
        parse(words, last=[])


def test_last_with_many_gaps_cannot_be_multiplied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "_MOST_CLAUSES", 10_000)
    gaps = [(id, id) for id in range(1, 2000, 2)]
    with pytest.raises(BadInput, match="too many"):
        parse([f"last,user=u{number}" for number in range(1000)], last=gaps)


def test_a_hundred_thousand_ids_are_looked_up_together(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    monkeypatch.setattr(matching_module, "matches", lambda *_: compared.append(1))
    clauses = parse([str(id) for id in range(1, 2 * selectors.MOST_WORDS, 2)], last=[])
    matching = Matching(clauses, lambda _job: (), lambda _job: None)
    spec = Spec(user="u", cwd="/", env=1)
    jobs = [
        Job(id=id, key="", spec=spec, spec_id=1, cmd="x", state=State.READY, submission="s", submitted_at=0.0)
        for id in range(1, 1001)
    ]
    assert [job.id for job in jobs if matching.has(job)] == list(range(1, 1001, 2))
    assert compared == []


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(0, 9)), max_size=12), st.integers(1, 80))
def test_spans_hold_exactly_their_ids(spans: list[tuple[int, int]], id: int) -> None:
    ranges = [(low, low + more) for low, more in spans]
    assert (id in IdRanges(ranges)) is any(low <= id <= high for low, high in ranges)
