"""What every store promises about sums, minutes, states of hosts and points; old databases are added up."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows import a_world, attempt_row, changes, observation
from tests.core.machines.rows import machine_row
from tests.dose import dose

from rota.core.accounts.accounting import HOUR_US, MINUTES_KEPT, micros, spread
from rota.core.accounts.sums import AccountKey, AccountSums, HourAccount, MinuteRow, MinuteSums
from rota.core.changes import Changes
from rota.core.jobs.job import Spec
from rota.plan.placement.given import Given
from rota.plan.size import Size
from rota.store.home.backup import back_up
from rota.store.home.restore import Restoration
from rota.store.memory.store import MemoryStore
from rota.store.sqlite.database import APPLICATION_ID
from rota.store.sqlite.statements import migrations
from rota.store.sqlite.store import SqliteStore

ANN = ("ann", "p", "default")
BOB = ("bob", "", "night")
A_ROW = AccountSums(attempts=1, jobs=1, used=5, given=6, cpu=7, wait=8, asked=4, unasked=1)
A_MINUTE = MinuteSums(1, 2, 3, 4, 5, 6)


def times(number: int, row: AccountSums = A_ROW) -> AccountSums:
    return AccountSums(*(number * value for value in msgspec.structs.astuple(row)))


def key(hour: int, owner: tuple[str, str, str]) -> AccountKey:
    return AccountKey(hour, *owner)


def test_sums_are_added_up(store, reopen):
    store.commit(changes(accounts={key(5, ANN): A_ROW, key(5, BOB): A_ROW}))
    store.commit(changes(accounts={key(5, ANN): times(2), key(6, ANN): A_ROW}))
    store = reopen(store)
    assert store.accounts(first=0, end=99).rows == [
        HourAccount(5, *ANN, times(3)),
        HourAccount(5, *BOB, A_ROW),
        HourAccount(6, *ANN, A_ROW),
    ]
    assert [row.hour for row in store.accounts(first=6, end=7).rows] == [6]
    assert store.accounts(first=7, end=9).rows == []


def test_what_goes_on_from_before_is_a_step_at_the_first_hour(store):
    store.commit(
        changes(
            accounts={
                key(2, ANN): AccountSums(used=9, used_step=100, given=9, given_step=50, asked_step=3),
                key(3, ANN): AccountSums(used_step=7, given_step=-50),
            }
        )
    )
    store.commit(
        changes(
            accounts={
                key(1, BOB): AccountSums(used_step=4),
                key(2, BOB): AccountSums(used_step=-4),
            }
        )
    )
    assert store.accounts(first=4, end=9).rows == [HourAccount(4, *ANN, AccountSums(used_step=107, asked_step=3))]


def test_what_runs_is_told_with_what_accounts_for_it(store):
    store.commit(a_world())
    taken = Given(Size(cpus=300), "1-3", "0-2", (("h", 3),), 60.0)
    more = [attempt_row(3, size="[200,1,2,3.0,0]", given=msgspec.json.encode(taken).decode())]
    store.commit(changes(attempts=more, starts=[(3, 1, 1700000000.123456, 5, 1)]))
    (running,) = store.accounts(first=0, end=1).running
    assert (running.spec, running.size, running.given) == (1, Size(200, 1, 2, 3.0, 0), taken)
    assert running.started_at == 1700000000.123456


def test_minutes_are_added_up_and_kept_for_a_week(store, reopen):
    store.commit(changes(minutes={100: A_MINUTE, 101: MinuteSums(started=1)}))
    store.commit(changes(minutes={100: MinuteSums(1, 1, 1, 1, 1, 1)}))
    store = reopen(store)
    assert store.minutes(since=0) == [
        MinuteRow(100, MinuteSums(2, 3, 4, 5, 6, 7)),
        MinuteRow(101, MinuteSums(started=1)),
    ]
    assert [row.minute for row in store.minutes(since=101)] == [101]
    store.commit(changes(minutes={101 + MINUTES_KEPT: MinuteSums(started=1)}))
    assert [row.minute for row in store.minutes(since=0)] == [101, 101 + MINUTES_KEPT]


def test_states_of_hosts_begin_with_what_was_before(store, reopen):
    rows = [
        machine_row("a", 10, "idle"),
        machine_row("a", 20, "busy"),
        machine_row("a", 30, "away"),
        machine_row("b", 5, "idle"),
        machine_row("c", 5, "idle"),
        machine_row("c", 6, "gone"),
    ]
    store.commit(changes(machines=rows))
    store = reopen(store)
    assert store.machine_rows(host="", since=20, until=30) == [
        machine_row("a", 20, "busy"),
        machine_row("b", 5, "idle"),
        machine_row("c", 6, "gone"),
    ]
    assert store.machine_rows(host="a", since=0, until=99) == rows[:3]
    assert store.machine_rows(host="a", since=25, until=26) == [machine_row("a", 20, "busy")]
    assert store.machine_rows(host="a", since=20, until=30) == [machine_row("a", 20, "busy")]
    assert store.machine_rows(host="x", since=0, until=99) == []
    assert store.machine_hosts() == ["a", "b", "c"]
    assert store.load().machines == {"a": rows[2], "b": rows[3]}


def test_points_are_the_newest_first(store, reopen):
    store.commit(
        changes(
            observations=[
                observation("g", 0),
                observation("g", 1, outcome="memory", job=17, asked_mem=7, asked_time_s=0.3),
            ]
        )
    )
    store.commit(changes(observations=[observation("other", job=3)]))
    store = reopen(store)
    first, second = store.points("g", limit=9)
    assert (first.job, first.ok, second.job, second.ok) == (17, False, None, True)
    assert (first.at, first.used_mem, first.given_mem, first.used_time_s) == (1001.1, 1 << 33, 1 << 30, 0.1)
    assert (first.asked_mem, first.asked_time_s) == (7, 0.3)
    assert (second.asked_mem, second.asked_time_s) == (None, None), "nothing was asked for"
    assert [point.job for point in store.points("g", limit=1)] == [17]
    assert store.points("nothing", limit=9) == []


def test_a_batch_with_only_sums_is_not_empty():
    assert changes(accounts={key(1, ANN): A_ROW})
    assert changes(minutes={1: MinuteSums()})
    assert changes(machines=[machine_row("a", 1, "idle")])


def test_a_backup_has_the_sums(home: Path, tmp_path: Path) -> None:
    store = SqliteStore(home, reserve=0)
    store.commit(a_world())
    store.commit(
        changes(accounts={key(5, ANN): A_ROW}, minutes={3: A_MINUTE}, machines=[machine_row("a", 1, "idle")])
    )
    back_up(home, str(tmp_path / "backup.db"), force=False, store=store)
    store.close()
    with Restoration(tmp_path / "other", tmp_path / "backup.db", replace=False) as restoration:
        restoration.put_in_place(pause=False)
    again = SqliteStore(tmp_path / "other", reserve=0)
    assert again.accounts(first=0, end=9).rows == [HourAccount(5, *ANN, A_ROW)]
    assert (again.minutes(since=0), again.load().machines) == (
        [MinuteRow(3, A_MINUTE)],
        {"a": machine_row("a", 1, "idle")},
    )
    again.close()


hours = st.integers(1, 400 * HOUR_US)


@dose(20)
@given(
    st.lists(st.tuples(hours, hours, st.sampled_from([1, 100, 250]), st.sampled_from([ANN, BOB])), max_size=8),
    st.integers(0, 300),
)
def test_sqlite_adds_up_as_memory_does(tmp_path_factory: pytest.TempPathFactory, spans, first) -> None:
    memory, sqlite = MemoryStore(), SqliteStore(tmp_path_factory.mktemp("sums"), reserve=0)
    for start, length, cpus, who in spans:
        more = Changes()
        spread(more.accounts, who, start, start + length, cpus, "used")
        for store in (memory, sqlite):
            store.commit(more)
    assert sqlite.accounts(first=first, end=350) == memory.accounts(first=first, end=350)
    sqlite.close()


# ------------------------------------------------------------------ databases of earlier versions

SPECS = {
    1: Spec(user="ann", cwd="/", env=1, project="p"),
    2: Spec(user="bob", cwd="/", env=1, queue="night", walltime_s=7200.0, size=Size(cpus=250)),
}
TAKEN = Given(Size(cpus=200), "1-6", "0-1", (("h", 2), ("i", 4)), 86_400.0)
#: spec, size, given, started_at, ended_at, outcome
ATTEMPTS = [
    (1, None, None, 7000.0, 7300.25, "complete"),
    (1, Size(cpus=400, time_s=60.0), None, 7000.5, 400_000.0, "failed"),
    (2, None, None, 7100.0, 7200.0, "cancelled"),
    (2, None, TAKEN, 10_000.0, 20_000.123456, "complete"),
    (1, None, None, None, 7000.0, "failed"),
    (1, None, None, 7000.0, None, None),
]


@pytest.fixture
def third(home: Path) -> Path:
    """A home with a database of schema 3 and these attempts, each of a job of its own."""
    home.mkdir(mode=0o700)
    with closing(sqlite3.connect(home / "rota.db", isolation_level=None)) as db:
        scripts = " ".join(migrations()[n] for n in (1, 2, 3))
        db.executescript(f"PRAGMA application_id={APPLICATION_ID}; {scripts} PRAGMA user_version=3;")
        db.execute("INSERT INTO submissions VALUES (1, 's1', 'ann', 1.0, 6, 1, 6, '{}')")
        db.execute("INSERT INTO groups VALUES (1, 'red', 'ann')")
        for n, spec in SPECS.items():
            db.execute("INSERT INTO specs VALUES (?, ?)", (n, msgspec.json.encode(spec).decode()))
        for job, (spec, size, taken, started_at, ended_at, outcome) in enumerate(ATTEMPTS, 1):
            state = {"complete": 12, "failed": 13, "cancelled": 14}.get(outcome or "", 5)
            db.execute(
                "INSERT INTO jobs (id, state, attempt, in_group, in_submission, spec, submitted_at, ready_at,"
                " ended_at, key, cmd) VALUES (?, ?, 1, 1, 1, ?, 1.0, 6900.0, ?, ?, 'true')",
                (job, state, spec, ended_at, str(job)),
            )
            db.execute(
                "INSERT INTO attempts (job, number, token, runner, host, leased_at, started_at, ended_at, outcome,"
                " cpu_s, spec, size, given) VALUES (?, 1, 1, 'r', 'h', 6950.0, ?, ?, ?, 1.5, ?, ?, ?)",
                (
                    job, started_at, ended_at, outcome, spec,
                    size and msgspec.json.encode(size).decode(), taken and msgspec.json.encode(taken).decode(),
                ),
            )  # fmt: skip
    return home


def test_an_old_database_is_added_up_as_if_it_had_been_from_the_beginning(third: Path) -> None:
    expected: dict[AccountKey, AccountSums] = {}
    for spec_id, size, taken, started_at, ended_at, outcome in ATTEMPTS:
        if outcome is None:
            continue
        spec = SPECS[spec_id]
        its = size or spec.size
        who = (spec.user, spec.project, spec.queue)
        row = expected.setdefault(key(micros(ended_at) // HOUR_US, who), AccountSums())
        row.add(AccountSums(attempts=1, jobs=1, failed=int(outcome == "failed"), cpu=1_500_000))
        if started_at is not None:
            row.wait += micros(started_at) - micros(6900.0)
            start = micros(started_at)
            cpus = 600 if taken else its.cpus
            given_s = (taken and taken.walltime_s) or spec.walltime_s or its.time_s
            spread(expected, who, start, micros(ended_at), cpus, "used")
            spread(expected, who, start, start + micros(given_s), cpus, "given")
    store = SqliteStore(third, reserve=0)
    found = store.accounts(first=0, end=1000)
    assert found.asked_since == 1 + max(each.hour for each in expected), "nobody wrote down what was asked for"
    assert {row.key: row.sums for row in found.rows} == expected
    assert [row.key for row in found.rows] == sorted(expected)
    assert [(row.spec, row.started_at) for row in found.running] == [(1, 7000.0)]
    minutes = store.minutes(since=0)
    total = MinuteSums()
    for minute in minutes:
        total.add(minute.sums)
    assert (total.started, total.complete, total.failed, total.cancelled) == (4, 2, 2, 1)
    store.close()


def test_adding_up_an_old_database_that_is_interrupted_is_done_again(third: Path) -> None:
    whole = (third / "rota.db").read_bytes()
    script = migrations()[4]
    store = SqliteStore(third, reserve=0)
    expected = store.accounts(first=0, end=1000)
    store.close()
    for end in [n + 1 for n, letter in enumerate(script) if letter == ";"]:
        for left in [*third.glob("rota.db*"), third / "checksums"]:
            left.unlink()
        (third / "rota.db").write_bytes(whole)
        with closing(sqlite3.connect(third / "rota.db", isolation_level=None)) as db:
            db.executescript(f"BEGIN IMMEDIATE;\n{script[:end]}")
        store = SqliteStore(third, reserve=0)
        assert store.accounts(first=0, end=1000) == expected
        store.close()


@pytest.mark.parametrize("users", [1, 4, 5, 300])
def test_sums_are_the_same_however_many_there_are_in_a_batch(home: Path, users: int) -> None:
    with closing(SqliteStore(home, reserve=0)) as sqlite:
        memory = MemoryStore()
        names = ["ann\0", *(f"user{n}" for n in range(1, users))]
        for store in (sqlite, memory):
            for _ in range(2):
                accounts = {AccountKey(5, name, "p", "default"): A_ROW for name in names}
                store.commit(changes(accounts=accounts, minutes=dict.fromkeys(range(users), A_MINUTE)))
        found = sqlite.accounts(first=0, end=9).rows
        expected = {name.replace("\0", "\ufffd"): times(2) for name in names}
        assert {row.user: row.sums for row in found} == expected
        assert sqlite.minutes(since=0) == memory.minutes(since=0)


def test_a_sum_that_no_column_can_hold_does_not_stop_the_commit(home: Path) -> None:
    with closing(SqliteStore(home, reserve=0)) as store:
        most = AccountSums(1, 1, used=5, given=6, cpu=1 << 70, wait=8)
        store.commit(changes(accounts={key(5, ANN): most}, meta={"a": "b"}))
        store.commit(changes(accounts={key(5, ANN): A_ROW}))
        (row,) = store.accounts(first=0, end=9).rows
        assert (row.sums.attempts, row.sums.jobs, row.sums.used) == (2, 2, 10)
        assert store.load().meta["a"] == "b"
