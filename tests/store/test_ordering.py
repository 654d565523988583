"""Jobs in any order, found by text: what every store promises, checked on each of them."""

from __future__ import annotations

import random

import pytest
from rows import an_add, attempt_row, changes, end_row, job_row, state_row

from rota.core.jobs.command import command_to_text
from rota.core.states import State
from rota.store.base import ORDERS, Clause, Order
from rota.store.memory.store import MemoryStore

ALL = [Clause()]


def _ids(store, *asked, **more) -> list[int]:
    return store.ordered(*asked, **more).tolist()


def _filled(store):
    """Jobs of which some have not begun, some run, and some ended, with ties in everything."""
    jobs = [job_row(n, spec_id=1 + n % 3, submitted_at=1000.0 + n // 3, group=f"g{n % 2}") for n in range(1, 13)]
    store.commit(changes(submissions=[("s1", "ann", 1.0, 12, "{}")], jobs=jobs))
    store.commit(
        changes(
            attempts=[attempt_row(n) for n in range(3, 13)],
            starts=[(n, 1, 2000.0 - n // 2, 7, 0) for n in range(3, 13)],
            ends=[
                end_row(n, started_at=None, ended_at=2100.0 + n // 4, cpu_s=n % 3 / 2, peak_mem=(n % 4) << 20)
                for n in range(6, 13)
            ],
            job_states={
                n: state_row(n, State.COMPLETE, attempt=1, ended_at=2100.0 + n // 4)
                if n >= 6
                else state_row(n, State.RUNNING, attempt=1)
                for n in range(3, 13)
            },
        )
    )
    return store


def _value(store, id: int, by: str, priorities: dict[int, int]) -> float | None:
    (job,) = store.jobs([id])
    newest = job.newest
    match by:
        case "id":
            return 0
        case "submitted":
            return job.submitted_at
        case "ended":
            return job.ended_at
        case "priority":
            return priorities.get(job.spec_id)
        case "started":
            return newest.started_at if newest else None
        case "cpu":
            return newest.cpu_s if newest else None
        case "mem":
            return newest.peak_mem if newest else None
    if newest is None or newest.ended_at is None:
        return None
    return newest.ended_at - newest.started_at


def test_an_attempt_that_goes_on_counts_as_the_last_start(store):
    _filled(store)
    # Nothing is written about a job itself when an attempt begins: 1 runs for the first time, 4 for the second.
    store.commit(changes(ends=[end_row(4, started_at=None, ended_at=2050.0)]))
    store.commit(changes(attempts=[attempt_row(1), attempt_row(4, 2)]))
    store.commit(changes(starts=[(1, 1, 3001.0, 7, 0), (4, 2, 3000.0, 7, 0)]))
    assert list(store.ordered(ALL, Order("started", descending=True)))[:3] == [1, 4, 3]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("by", ORDERS)
def test_jobs_come_in_order_ties_by_id_and_what_is_not_known_last(store, by, descending):
    _filled(store)
    priorities = {1: 5, 2: -1}  # the third specification has none
    found = _ids(store, ALL, Order(by, descending), specs=priorities)
    known = [n for n in range(1, 13) if _value(store, n, by, priorities) is not None]
    unknown = [n for n in range(1, 13) if n not in known]
    expected = sorted(known, key=lambda n: (_value(store, n, by, priorities), n), reverse=descending)
    assert found == expected + sorted(unknown, reverse=descending)


def test_every_order_is_one_that_can_be_asked_for(store):
    _filled(store)
    for by in ORDERS:
        assert sorted(store.ordered(ALL, Order(by))) == list(range(1, 13))


@pytest.mark.parametrize("by", ORDERS)
def test_a_limit_gives_the_beginning_of_the_whole_order(store, by):
    _filled(store)
    whole = _ids(store, ALL, Order(by, descending=True))
    assert _ids(store, ALL, Order(by, descending=True), limit=5) == whole[:5]
    assert _ids(store, ALL, Order(by, descending=True), limit=99) == whole
    assert _ids(store, ALL, Order(by, descending=True), limit=0) == []


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("by", ["started", "wall", "cpu", "mem"])
def test_attempts_before_the_newest_do_not_count(store, by, descending):
    _filled(store)
    # The newest attempts of these are the second ones, and the first ones would come before all others.
    again = range(7, 13)
    ended = {"started_at": 1.0 if not descending else 9e9, "ended_at": 9.9e9, "cpu_s": 1e6, "peak_mem": 1 << 50}
    store.commit(changes(ends=[end_row(n, **ended) for n in again]))
    store.commit(changes(attempts=[attempt_row(n, 2) for n in again]))
    store.commit(
        changes(
            starts=[(n, 2, 2000.0 + n % 2, 7, 0) for n in again],
            ends=[
                end_row(n, 2, started_at=None, ended_at=2100.0 + n // 4, cpu_s=n % 3, peak_mem=n % 4)
                for n in again
            ],
            job_states={n: state_row(n, State.COMPLETE, attempt=2, ended_at=2100.0 + n // 4) for n in again},
        )
    )
    order = Order(by, descending)
    known = [n for n in range(1, 13) if _value(store, n, by, {}) is not None]
    expected = sorted(known, key=lambda n: (_value(store, n, by, {}), n), reverse=descending)
    for limit in (1, 2, 4, 6):
        assert _ids(store, ALL, order, limit=limit) == expected[:limit]


def test_a_running_job_is_listed_once_by_its_start(store):
    _filled(store)
    store.commit(changes(ends=[end_row(4, started_at=None, ended_at=2050.0)]))
    store.commit(changes(job_states={4: state_row(4, State.DELAYED, attempt=1)}))
    store.commit(changes(attempts=[attempt_row(4, 2)]))
    store.commit(changes(starts=[(4, 2, 3000.0, 7, 0)]))
    for descending in (False, True):
        whole = _ids(store, ALL, Order("started", descending))
        for limit in (1, 3, 6, 9):
            assert _ids(store, ALL, Order("started", descending), limit=limit) == whole[:limit]


def _commands(store, *commands):
    jobs = [job_row(n, cmd=command_to_text(cmd)) for n, cmd in enumerate(commands, 1)]
    store.commit(changes(submissions=[("s1", "ann", 1.0, len(jobs), "{}")], jobs=jobs))


def _found(store, text: str, **more) -> list[int]:
    found = _ids(store, ALL, Order(), search=text, **more)
    assert store.count(ALL, search=text, **more) == len(found)
    return found


def test_a_search_finds_text_within_commands_whatever_the_case_of_its_letters(store):
    _commands(store, "run BLAST now", "blastp -x", "echo nothing", ["blast", "a b"])
    assert _found(store, "Blast") == [1, 2, 4]
    assert _found(store, "BLAST NOW") == [1]


def test_only_letters_of_ascii_are_equal_in_both_cases(store):
    _commands(store, "echo ÄRGER", "echo ärger", "echo straße", "echo STRASSE")
    assert _found(store, "ÄRGER") == [1]
    assert _found(store, "ärger") == [2]
    assert _found(store, "STRASSE") == [4]


def test_signs_that_mean_something_elsewhere_mean_themselves_in_a_search(store):
    _commands(store, "echo 100%", "echo 100x", "a_b", "axb", "it's", 'say "x"', "back\\slash", "a*b")
    assert _found(store, "100%") == [1]
    assert _found(store, "a_b") == [3]
    assert _found(store, "'") == [5]
    assert _found(store, "a*b") == [8]
    assert _found(store, "%") == [1]
    assert _found(store, "\\") == [7]
    assert _found(store, "\\s") == [7]
    assert _found(store, "echo\0") == []


def test_a_search_also_finds_the_jobs_of_named_specifications(store):
    store.commit(
        changes(
            submissions=[("s1", "ann", 1.0, 3, "{}")],
            jobs=[job_row(n, spec_id=n, cmd=f"echo {'x' if n == 3 else 'y'}") for n in (1, 2, 3)],
        )
    )
    assert _found(store, "x", named=[1]) == [1, 3]
    assert _found(store, "x", named=[]) == [3]


def test_no_search_finds_all_whatever_is_named(store):
    _filled(store)
    assert len(_found(store, "", named=[1])) == 12


def test_of_many_clauses_each_job_is_listed_once(store):
    store.commit(an_add(*range(1, 1201)))
    apart = [Clause(low=n, high=n, group="default") for n in range(1, 1201, 2)]
    overlapping = [Clause(low=n, high=n + 3) for n in range(1, 40, 2)]
    for clauses in (apart, overlapping, apart + overlapping):
        for by in ("id", "priority", "started"):
            found = _ids(store, clauses, Order(by, descending=True), specs={1: 0})
            assert found == sorted(store.find(clauses, above=0, limit=9999), reverse=True)
            assert store.count(clauses) == len(found)


def test_clauses_that_match_nothing_list_nothing(store):
    _filled(store)
    for clauses in ([], [Clause(group="no such")], [Clause(user="nobody")]):
        assert _ids(store, clauses, Order("ended")) == []
        assert store.count(clauses, search="echo") == 0


def test_jobs_of_an_upload_in_progress_are_not_listed(store):
    store.commit(an_add(1, 2))
    store.commit(an_add(3, submission="s2", answer=None))
    for by in ORDERS:
        assert sorted(store.ordered(ALL, Order(by), search="echo", specs={1: 1})) == [1, 2]


def test_ranges_and_arrays_can_be_searched_and_sorted(store):
    store.commit(an_add(1, 2, 3, 4))
    jobs = [job_row(n, submission="s2", array=5, index=n - 5, cmd=f"task {n}") for n in range(5, 10)]
    store.commit(changes(submissions=[("s2", "ann", 2.0, 5, "{}")], jobs=jobs))
    some = [Clause(array=5, indexes=((1, 2), (4, 4)))]
    assert _ids(store, some, Order("priority"), specs={1: 3}) == [6, 7, 9]
    assert _ids(store, some, Order("priority"), specs={1: 3}, search="K 7") == [7]
    spans = [Clause(low=1, high=2), Clause(low=4, high=6)]
    assert _ids(store, spans, Order("priority", True), specs={1: 3}, search="task") == [6, 5]


def test_both_stores_agree_on_whatever_there_is(home):
    from rota.store.sqlite.store import SqliteStore

    draw = random.Random(7)
    memory, sqlite = MemoryStore(), SqliteStore(home, reserve=0, run=8)
    try:
        words = ["alpha", "Beta", "GAMMA", "délta", "x y"]
        jobs = [
            job_row(n, spec_id=draw.randint(1, 4), group=draw.choice("ab"), submitted_at=float(draw.randint(0, 9)),
                    cmd=" ".join(draw.choices(words, k=3)))
            for n in range(1, 200)
        ]  # fmt: skip
        begun = draw.sample(range(1, 200), 120)
        ended = begun[:80]
        batch = changes(
            submissions=[("s1", "ann", 1.0, 199, "{}")],
            jobs=jobs,
            attempts=[attempt_row(n) for n in begun],
            starts=[(n, 1, float(draw.randint(0, 9)), 7, 0) for n in begun],
            ends=[end_row(n, started_at=None, ended_at=float(draw.randint(9, 20)), cpu_s=None) for n in ended],
            job_states={n: state_row(n, State.FAILED if n in ended else State.RUNNING, attempt=1) for n in begun},
        )
        memory.commit(batch)
        sqlite.commit(batch)
        for _ in range(200):
            clauses = draw.choice([ALL, [Clause(group="a")], [Clause(state=int(State.FAILED)), Clause(high=50)]])
            asked = {
                "search": draw.choice(["", "ALPHA", "beta g", "é", "É", "x Y"]),
                "named": draw.sample(range(1, 5), draw.randint(0, 2)),
                "specs": {1: 5, 2: 5, 3: 0},
                "limit": draw.choice([-1, 10]),
            }
            order = Order(draw.choice(ORDERS), draw.random() < 0.5)
            assert _ids(memory, clauses, order, **asked) == _ids(sqlite, clauses, order, **asked)
    finally:
        sqlite.close()
