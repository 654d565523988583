"""A database that the first version made is upgraded in place and loses nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from rows import attempt_row, changes, key_of, observation

from rota.core.jobs.job import After
from rota.core.states import State
from rota.store.base import Clause
from rota.store.sqlite.database import APPLICATION_ID
from rota.store.sqlite.statements import migrations
from rota.store.sqlite.store import SqliteStore

#: As the first version wrote it: without the fields that came later.
OLD_SPEC = '{"user":"ann","cwd":"/home/ann","env":1,"group":"red","size":[100,1024,0,60.0,0],"limits":[]}'


@pytest.fixture
def first(home: Path) -> Path:
    """A home with a database of schema 1: job 1 is complete, 2 is leased, 3 failed, 4 waits for 2."""
    home.mkdir(mode=0o700)
    with closing(sqlite3.connect(home / "rota.db", isolation_level=None)) as db:
        db.executescript(
            f"PRAGMA application_id={APPLICATION_ID}; PRAGMA journal_mode=WAL; {migrations()[1]}"
            "PRAGMA user_version=1;"
        )
        db.execute("INSERT INTO submissions VALUES (1, 's1', 'ann', 1.0, 4, 1, 4, '{}')")
        db.execute("INSERT INTO envs VALUES (1, 'digest', 'QT0x')")
        db.execute("INSERT INTO specs VALUES (1, ?)", (OLD_SPEC,))
        db.execute("INSERT INTO groups VALUES (1, 'red', 'ann')")
        for n, state, attempt, parents in [
            (1, 12, 1, None),
            (2, 5, 1, None),
            (3, 13, 1, None),
            (4, 1, 0, "[[2,1]]"),
        ]:
            db.execute(
                "INSERT INTO jobs VALUES (?, ?, ?, 0, 1, 1, 1, 1.5, NULL, NULL, NULL, ?, NULL, NULL, ?, 'echo')",
                (n, state, attempt, key_of(n), parents),
            )
        for n, outcome in [(1, "complete"), (2, None), (3, "failed")]:
            db.execute(
                "INSERT INTO attempts (job, number, token, runner, host, leased_at, outcome)"
                " VALUES (?, 1, ?, 'r', 'h', 2.5, ?)",
                (n, n, outcome),
            )
        db.execute("INSERT INTO tally VALUES ('red', 12, 1), ('red', 13, 1)")
    return home


def test_a_database_of_the_first_schema_is_upgraded_and_loads(first):
    for _ in range(2):
        store = SqliteStore(first, reserve=0)
        assert store._writer.execute("PRAGMA user_version").fetchone() == (max(migrations()),)
        snapshot = store.load()
        assert [(job.id, job.state, job.after) for job in snapshot.jobs] == [
            (2, State.SCHEDULED, ()),
            (4, State.DEPENDENT, (After(2),)),
        ]
        assert {(job.floor, job.input_bytes, job.array, job.index) for job in snapshot.jobs} == {(None,) * 4}
        (attempt,) = snapshot.open_attempts
        assert (attempt.job, attempt.token, attempt.spec, attempt.size, attempt.behaviours) == (
            2,
            2,
            None,
            None,
            (),
        )
        assert (snapshot.specs[1].group, snapshot.specs[1].dep_groups, snapshot.specs[1].live) == ("red", (), True)
        assert snapshot.outcomes == bytes([255, State.COMPLETE, 0, State.FAILED, 0])
        assert (snapshot.limits, snapshot.dep_groups, snapshot.bad_members) == ({}, {}, [])
        assert (snapshot.edges, snapshot.edge_specs, snapshot.observations) == ([], {}, [])
        assert [job.newest and job.newest.outcome for job in store.jobs([1, 2, 3, 4])] == [
            "complete", None, "failed", None,
        ]  # fmt: skip
        assert store.jobs([1])[0].newest.spec is None
        assert store.children(2, limit=9) == ([4], 1)
        assert [attempt.number for attempt in store.attempts(3)] == [1]
        assert store.find([Clause(array=1)], above=0, limit=9) == []
        assert store.known_keys("ann", [key_of(3)]) == {key_of(3): (3, State.FAILED)}
        store.close()


def test_an_upgraded_database_takes_new_rows_beside_the_old_ones(first):
    store = SqliteStore(first, reserve=0)
    store.load()
    store.commit(
        changes(
            attempts=[attempt_row(3, 2, spec_id=1)],
            respecified={4: (4, 1, "blue", "ann", 9)},
            edges=[("g", 4)],
            observations=[observation("echo")],
            limits={"a": "{}"},
        )
    )
    assert [attempt.spec for attempt in store.attempts(3)] == [None, 1]
    assert [(job.group, job.input_bytes) for job in store.jobs([3, 4])] == [("red", None), ("blue", 9)]
    store.close()


def test_an_upgrade_that_is_interrupted_at_any_statement_is_run_again(first):
    whole = (first / "rota.db").read_bytes()
    script = migrations()[2]
    ends = [n + 1 for n, letter in enumerate(script) if letter == ";"]
    assert len(ends) > 10
    for end in ends:
        with closing(sqlite3.connect(first / "rota.db", isolation_level=None)) as db:
            # Closing without COMMIT is what a kill leaves behind.
            db.executescript(f"BEGIN IMMEDIATE;\n{script[:end]}")
        store = SqliteStore(first, reserve=0)
        assert [job.id for job in store.load().jobs] == [2, 4]
        store.close()
        (first / "checksums").unlink()
        (first / "rota.db").write_bytes(whole)


def test_the_states_of_hosts_become_the_history_of_machines(first):
    old = {
        "busy": ("automated", "running", "alive"),
        "draining": ("automated", "running", "drained"),
        "idle": ("automated", "idle", "alive"),
        "drained": ("automated", "idle", "drained"),
        "suspected": ("automated", "idle", "suspected"),
        "closed": ("automated", "idle", "closed"),
        "asleep": ("automated", "idle", "asleep"),
        "away": ("automated", "idle", "away"),
        "unseen": ("automated", "idle", "unknown"),
        "gone": ("removed", "idle", "unknown"),
    }
    with closing(sqlite3.connect(first / "rota.db", isolation_level=None)) as db:
        for version in range(2, 9):
            db.executescript(f"{migrations()[version]}; PRAGMA user_version={version};")
        for at, state in enumerate(old, 1):
            db.execute("INSERT INTO host_states VALUES ('h', ?, ?)", (at, state))
        db.execute("INSERT INTO host_states VALUES ('other', 7, 'busy')")
    store = SqliteStore(first, reserve=0)
    rows = store.machine_rows(host="h", since=0, until=99)
    assert [(row.at, row.condition, row.usage, row.state) for row in rows] == [
        (at, *states) for at, states in enumerate(old.values(), 1)
    ]
    assert store.load().machines.keys() == {"other"}, "the other one is gone"
    store.close()
