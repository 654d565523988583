"""Random histories: SQLite, closed and opened again at any point, equals the plain dictionaries."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from rows import SPEC, changes, end_row, key_of, observation
from tests.dose import dose, half

from rota.core.changes import Changes
from rota.core.rows import (
    AttemptRow,
    EdgeRow,
    EventRow,
    JobRow,
    JobStateRow,
    RekeyedRow,
    RespecifiedRow,
    RunnerRow,
    StartRow,
    SubmissionRow,
    VoidRow,
)
from rota.core.states import State
from rota.store.base import Clause
from rota.store.memory.store import MemoryStore
from rota.store.sqlite.store import SqliteStore

text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
times = st.floats(min_value=0, allow_nan=False, allow_infinity=False)
maybe_time = st.none() | times
reasons = st.none() | text
names = st.sampled_from(["a", "b", "c"])
ids = st.integers(1, 30)
states = st.sampled_from(list(State)).map(int)
parents = st.sampled_from([None, "[[1,1],[2,2]]", '[["1",1]]'])
either = st.integers(1, 4) | st.sampled_from(["a", "1", "2"])
spec_ids = st.sampled_from([1, 2])
#: input_bytes, array, index
rare = st.tuples(st.none() | ids, *[st.none()] * 2) | st.tuples(
    st.none() | ids, st.integers(1, 3), st.integers(0, 9)
)
sizes = st.sampled_from([None, "[100,5,0,0.1,0]"])
gifts = st.sampled_from([None, '[[100,5,0,0.1,0],"1-4","0-3",[["n1",4]],60.0]'])
floors = st.sampled_from([None, "[5,6,0.1]"])
behaviours = st.sampled_from([None, '[["run: x",false,"ü\\u0000"],["cleanup",true,""]]'])
GROUPED = SPEC.replace('"dep_groups":[]', '"dep_groups":["a"]')


@st.composite
def histories(draw: st.DrawFn) -> list[Changes | None]:
    """Batches that an engine could write; None closes the store and opens it again."""
    history: list[Changes | None] = [changes(specs=[(1, SPEC), (2, GROUPED)])]
    next_job = 1
    attempts: dict[int, int] = {}
    keys: dict[int, str] = {}
    for _ in range(draw(st.integers(1, 8))):
        if draw(st.booleans()) and draw(st.booleans()):
            history.append(None)
            continue
        batch = Changes()
        submission = f"{draw(names)}{len(history)}"
        answer = draw(st.none() | text)
        batch.submissions.append(SubmissionRow(submission, draw(names), draw(times), 1, answer))
        for _ in range(draw(st.integers(0, 5))):
            command = draw(text.map(lambda some: some.lstrip("\x01")) | st.just('\x01["x","y"]'))
            key = key_of(draw(st.integers(1, 6)))
            batch.jobs.append(
                JobRow(next_job, key, submission, draw(spec_ids), draw(names), draw(names), command, draw(states),
                 draw(times), draw(maybe_time), draw(reasons), draw(reasons), draw(parents), *draw(rare))
            )  # fmt: skip
            next_job += 1
        for job in draw(st.lists(ids, max_size=4)):
            number = attempts[job] = attempts.get(job, 0) + 1
            token = draw(st.integers(0, (1 << 63) - 1))
            batch.attempts.append(
                AttemptRow(
                    job,
                    number,
                    token,
                    draw(names),
                    draw(names),
                    draw(times),
                    draw(spec_ids),
                    draw(sizes),
                    draw(gifts),
                )
            )
        known = sorted(attempts.items())
        if known:
            some = st.lists(st.sampled_from(known), max_size=3)
            batch.starts += [StartRow(*attempt, draw(times), draw(ids), draw(ids)) for attempt in draw(some)]
            for attempt in draw(some):
                batch.ends.append(
                    end_row(*attempt, started_at=draw(maybe_time), segment=draw(text), behaviours=draw(behaviours))
                )
            batch.voids += [VoidRow(*attempt) for attempt in draw(some)]
        for job in draw(st.lists(ids, max_size=4)):
            batch.job_states[job] = JobStateRow(
                job, draw(states), attempts.get(job, 0), draw(ids), draw(maybe_time), draw(maybe_time),
                draw(maybe_time), draw(reasons), draw(reasons), draw(floors),
            )  # fmt: skip
        for job in draw(st.lists(ids, max_size=2)):
            batch.events.append(EventRow(draw(times), job, 1, draw(text), draw(text)))
        ended = st.tuples(names, st.integers(12, 14))
        batch.tally = draw(st.dictionaries(ended, st.integers(-2, 5), max_size=2))
        batch.meta = draw(st.dictionaries(names, text, max_size=2))
        batch.runners += [RunnerRow(draw(names), draw(text), draw(text), 1, draw(text | ids), draw(times))]
        for job in draw(st.lists(ids, max_size=2)):
            batch.respecified[job] = RespecifiedRow(
                job, draw(spec_ids), draw(names), draw(names), draw(st.none() | ids)
            )
        keys |= {row.id: row.key for row in batch.jobs}
        for job in draw(st.lists(st.sampled_from(sorted(keys)), max_size=3, unique=True)) if keys else ():
            batch.rekeyed[job] = RekeyedRow(
                job,
                key_of(draw(st.integers(0, 7))),
                draw(text.map(lambda some: some.lstrip("\x01"))),
                keys[job],
            )
        keys |= {job: row.key for job, row in batch.rekeyed.items()}
        batch.edges += draw(st.lists(st.builds(EdgeRow, either, ids), max_size=3))
        batch.dep_groups = draw(st.dictionaries(names, st.integers(-1, 2), max_size=2))
        batch.limits = draw(st.dictionaries(names, st.none() | text, max_size=2))
        batch.forgotten += draw(st.lists(names, max_size=1))
        for group in draw(st.lists(names, max_size=3)):
            batch.observations.append(
                observation(
                    group, draw(ids), at=draw(times), time_s=draw(times), input_bytes=draw(st.none() | ids)
                )
            )
        batch.removed += draw(st.lists(ids, max_size=1))
        history.append(batch)
    return history


def _ids(briefs):
    return sorted(brief.id for brief in briefs)


QUERIES = [
    [Clause()],
    [Clause(group="a"), Clause(user="b", low=3)],
    [Clause(state=13)],
    [Clause(state=12, group="b")],
    [Clause(host="a")],
    [Clause(submission="a1"), Clause(submission="b2", high=9)],
    [Clause(low=2, high=4), Clause(low=7)],
    [Clause(array=1)],
    [
        Clause(group_prefix="a"),
        Clause(name_prefix="x"),
        Clause(exits=(0, 0), state=12),
        Clause(before=5.0, high=20),
    ],
    [Clause(array=2, indexes=((3, 7), (5, 6), (9, 9), (8, 1))), Clause(array=1, state=13, group="a", high=9)],
]


@dose(half(60))
@given(histories())
def test_any_history_reads_the_same_from_both_stores(history):
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory) / "home"
        model, store = MemoryStore(), SqliteStore(home, reserve=0, run=8)
        try:
            for batch in history:
                if batch is None:
                    store.close()
                    store = SqliteStore(home, reserve=0, run=8)
                    assert store.load() == model.load()
                else:
                    model.commit(batch)
                    store.commit(batch)
            for clauses in QUERIES:
                found = model.find(clauses, above=1, limit=5)
                assert store.find(clauses, above=1, limit=5) == found
                assert store.count(clauses) == model.count(clauses)
                assert store.tally(clauses) == model.tally(clauses)
            everything = list(range(40))
            assert store.jobs(everything) == model.jobs(everything)
            keys = [key_of(n) for n in range(8)]
            assert store.known_keys("a", keys) == model.known_keys("a", keys)
            assert _ids(store.namesakes(keys)) == _ids(model.namesakes(keys))
            for user in "abc":
                assert store.last_submission(user) == model.last_submission(user)
            for job in everything:
                assert store.attempts(job) == model.attempts(job)
                assert store.events(job) == model.events(job)
                assert store.dependents([job, str(job)]) == model.dependents([job, str(job)])
                assert store.dependents([str(job)]) == model.dependents([str(job)])
            assert store.segments_in_use() == model.segments_in_use()
            store.close()
            store = SqliteStore(home, reserve=0, run=8)
            assert store.load() == model.load()
        finally:
            store.close()
