"""What only the SQLite store must do: refuse what it cannot trust, and stay within its statements."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from rows import a_world, an_add, attempt_row, changes, end_row, job_row, observation, state_row

from rota.core.states import State
from rota.core.stored import OBSERVATIONS
from rota.errors import RotaError, StoreRefused
from rota.store.base import Clause
from rota.store.home.files import file_system_of, prepare_home
from rota.store.home.home_lock import HomeLock
from rota.store.sqlite import database
from rota.store.sqlite.clauses import parts_of
from rota.store.sqlite.statements import migrations, statements
from rota.store.sqlite.store import SqliteStore

ALL = [Clause()]


@pytest.fixture
def db(home: Path) -> Path:
    """A database with a few hundred jobs, closed cleanly."""
    store = SqliteStore(home, reserve=0)
    store.commit(a_world())
    store.commit(an_add(*range(10, 1000), submission="s2"))
    store.close()
    return home / "rota.db"


def refusal(home: Path) -> StoreRefused:
    with pytest.raises(StoreRefused) as caught:
        SqliteStore(home, reserve=0).load()
    assert caught.value.hint
    assert "\n" not in str(caught.value)
    return caught.value


def test_files_are_private_and_the_log_is_gone_after_a_clean_close(home):
    store = SqliteStore(home, reserve=1 << 16)
    store.commit(a_world())
    store._ballast.fill()
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in home.iterdir()} == {0o600}
    store.close()
    assert sorted(path.name for path in home.iterdir()) == [
        "ballast",
        "checksums",
        "deployment",
        "rota.db",
    ]


def test_opening_leaves_the_umask_alone(home):
    old = os.umask(0o022)
    try:
        SqliteStore(home, reserve=0).close()
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(old)


def test_a_second_manager_is_refused_and_told_who_holds_the_home(home):
    lock = HomeLock(home)
    with pytest.raises(StoreRefused) as caught:
        HomeLock(home)
    assert caught.value.code == "locked"
    assert f"pid {os.getpid()}" in caught.value.message
    lock.release()
    HomeLock(home).release()


def test_a_file_that_is_not_a_database_is_refused(home):
    home.mkdir()
    (home / "rota.db").write_bytes(b"my thesis\n" * 100)
    assert "not a database" in refusal(home).message
    assert (home / "rota.db").read_bytes() == b"my thesis\n" * 100


def test_a_foreign_database_is_refused(home):
    home.mkdir()
    with sqlite3.connect(home / "rota.db") as other:
        other.execute("CREATE TABLE jobs (id)")
    other.close()
    assert refusal(home).code == "foreign"


def test_a_newer_database_is_refused(db):
    with sqlite3.connect(db) as connection:
        connection.execute("PRAGMA user_version=999")
    connection.close()
    assert refusal(db.parent).code == "newer"


def test_a_lost_database_is_not_replaced_by_an_empty_one(db):
    db.unlink()
    assert refusal(db.parent).code == "missing"
    assert not db.exists()


def test_a_log_without_its_database_is_not_taken_for_an_empty_home(home):
    home.mkdir()
    (home / "rota.db-wal").write_bytes(b"x")
    assert refusal(home).code == "missing"


def test_an_empty_file_is_not_taken_for_an_empty_home(db):
    db.write_bytes(b"")
    assert refusal(db.parent).code == "damaged"


def test_a_start_that_was_killed_while_making_the_database_is_repeated(home):
    home.mkdir()
    (home / "rota.db.new").write_bytes(b"half")
    store = SqliteStore(home, reserve=0)
    assert store.load().next_job == 1
    store.close()


def test_a_database_cut_at_any_page_is_refused(db):
    whole = db.read_bytes()
    for size in [1, 99, 100, 511, 4095, *range(4096, len(whole), 4096), len(whole) - 1]:
        db.write_bytes(whole[:size])
        assert refusal(db.parent).code == "damaged", size
        assert db.read_bytes() == whole[:size]


def test_a_flipped_byte_is_refused_or_harmless_but_never_a_traceback(db):
    whole = db.read_bytes()
    refused = 0
    for page in range(0, len(whole), 4096):
        for offset in (0, 3, 5, 9, 2048, 4090):
            flipped = bytearray(whole)
            flipped[page + offset] ^= 0xFF
            db.write_bytes(flipped)
            try:
                store = SqliteStore(db.parent, reserve=0)
            except StoreRefused:
                refused += 1
                continue
            try:
                store.load()
                store.find(ALL, above=0, limit=2000)
                store.jobs(list(range(1000)))
                store.commit(an_add(5000, submission="s3"))
            except RotaError:
                refused += 1
            finally:
                store.close()
            for name in ("rota.db-wal", "rota.db-shm"):
                (db.parent / name).unlink(missing_ok=True)
    assert refused > len(whole) // 4096


def test_damage_is_found_at_the_next_start_after_a_crash(db):
    copy = db.parent.parent / "crashed"
    store = SqliteStore(db.parent, reserve=0)
    store.commit(an_add(2000, submission="s3"))
    shutil.copytree(db.parent, copy)
    store.close()
    flipped = bytearray((copy / "rota.db").read_bytes())
    for page in range(2, len(flipped) // 4096):
        flipped[page * 4096] ^= 0xFF
    (copy / "rota.db").write_bytes(flipped)
    assert refusal(copy).code == "damaged"


def test_an_unclean_end_loses_nothing(db):
    copy = db.parent.parent / "crashed"
    store = SqliteStore(db.parent, reserve=0)
    store.commit(an_add(2000, submission="s3"))
    shutil.copytree(db.parent, copy)
    expected = store.load()
    store.close()
    again = SqliteStore(copy, reserve=0)
    assert again.load() == expected
    again.close()


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs", "9p", "lustre", "ceph", "beegfs"])
def test_a_network_file_system_is_refused_with_a_hint(tmp_path, kind):
    home = tmp_path / "with space"
    mounted = str(tmp_path / "with space").replace(" ", "\\040")
    table = tmp_path / "mountinfo"
    table.write_text(
        "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
        f"40 22 0:99 / {mounted} rw,relatime - {kind} server:/export rw\n"
    )
    with pytest.raises(StoreRefused, match="network file system") as caught:
        prepare_home(home, mountinfo=table)
    assert "ROTA_HOME" in caught.value.hint
    assert file_system_of(tmp_path, mountinfo=table) == "ext4"


def test_a_home_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "home").write_text("")
    assert "not a directory" in refusal(tmp_path / "home").message


def test_a_home_of_another_user_is_refused():
    assert os.geteuid() == 0, "this test needs root: it becomes another user"
    script = (
        "import os, sys; from pathlib import Path; from rota.errors import StoreRefused\n"
        "from rota.store.sqlite.store import SqliteStore\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "try: SqliteStore(Path(sys.argv[1]))\n"
        "except StoreRefused as error: print(error); sys.exit(error.exit_status)\n"
    )
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        done = subprocess.run(
            [sys.executable, "-c", script, directory], capture_output=True, text=True, check=False
        )
    assert done.returncode == 4, done.stderr
    assert "not writable" in done.stdout


def test_an_interrupted_migration_leaves_the_old_schema_and_is_run_again(db, monkeypatch):
    newest = max(migrations())
    good = "CREATE TABLE more (id INTEGER); INSERT INTO more VALUES (7);"
    monkeypatch.setattr(
        database, "migrations", lambda: migrations() | {newest + 1: f"{good} INSERT INTO nowhere VALUES (1);"}
    )
    refusal(db.parent)
    with sqlite3.connect(db) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (newest,)
        assert connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'more'").fetchone() == (0,)
    connection.close()
    monkeypatch.setattr(database, "migrations", lambda: migrations() | {newest + 1: good})
    for _ in range(2):
        store = SqliteStore(db.parent, reserve=0)
        assert store._writer.execute("SELECT id FROM more").fetchall() == [(7,)]
        assert store._writer.execute("PRAGMA user_version").fetchone() == (newest + 1,)
        store.close()


def a_batch(first: int, size: int):
    ids = range(first, first + size)
    made = changes(
        starts=[(n, 1, 1.0, 1, 1) for n in ids],
        voids=[(n, 2) for n in ids],
        events=[(1.0, n, 1, "kind", "text") for n in ids],
        runners=[(f"r{n}", "h", "b", 1, 1, 1.0) for n in ids],
        specs=[(n, "{}") for n in ids],
        envs=[(n, f"d{n}", "") for n in ids],
        respecified={n: (n, n, f"g{n}", "ann", n) for n in ids},
        edges=[(edge, n) for n in ids for edge in (n, f"g{n}")],
    )
    added = an_add(*ids, submission=f"s{first}")
    made.submissions, made.jobs = added.submissions, added.jobs
    made.attempts = [attempt_row(n) for n in ids]
    made.ends = [end_row(n) for n in ids]
    made.job_states = {n: state_row(n, State.COMPLETE, attempt=1) for n in ids}
    made.tally = {(f"g{n}", 12): 1 for n in ids}
    made.meta = {f"m{n}": "" for n in ids}
    made.dep_groups = {f"g{n}": 1 for n in ids}
    made.limits = {f"l{n}": "{}" if n % 2 else None for n in range(first, first + size + 1)}
    made.observations = [observation(f"g{n}") for n in ids]
    made.forgotten = [f"g{n}" for n in ids]
    made.removed = list(ids)
    return made


def test_a_commit_runs_the_same_statements_whatever_the_size_of_the_batch(home):
    store = SqliteStore(home, reserve=0)
    seen: list[str] = []
    store._writer.set_trace_callback(lambda text: seen.append(text.split("json_each")[0]))
    store.commit(a_batch(1, 1))
    few, seen[:] = list(seen), []
    store.commit(a_batch(2, 2000))
    # The first end of an hour is written down once more: in which block of jobs to look for it.
    assert len(seen) == len(few) - 1 <= 31
    seen.clear()
    store.commit(changes(meta={"a": "b"}))
    assert len(seen) == 3
    store.close()


def test_every_statement_has_a_description_and_parses(home):
    store = SqliteStore(home, reserve=0)
    for name, sql in statements().items():
        assert sql, name
        count = max((int(n) for n in re.findall(r"\?(\d)", sql)), default=sql.count("?"))
        marks = {"grp": "", "prefix": "", "user": ""} if ":grp" in sql else ["[]"] * count
        store._writer.execute(f"EXPLAIN {sql}", marks)
    store.close()


def test_readers_see_whole_batches_while_commits_go_on(home):
    store = SqliteStore(home, reserve=0)
    store.commit(an_add(1))
    stop = threading.Event()
    sizes: list[int] = []
    errors: list[BaseException] = []

    def read() -> None:
        try:
            while not stop.is_set():
                sizes.append(store.count(ALL))
                assert len(store.find(ALL, above=0, limit=10_000)) % 100 == 1
        except BaseException as error:
            errors.append(error)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for batch in range(30):
        first = 2 + batch * 100
        store.commit(an_add(*range(first, first + 100), submission=f"b{batch}"))
    stop.set()
    for reader in readers:
        reader.join()
    assert not errors
    assert {size % 100 for size in sizes} == {1}
    store.close()


def test_the_table_of_observations_does_not_grow_with_every_attempt(home):
    stored = "SELECT count(*) FROM observations"
    store = SqliteStore(home, reserve=0)
    for n in range(40):
        if n % 7 == 0:
            store.close()
            store = SqliteStore(home, reserve=0)
            store.load()
        store.commit(changes(observations=[observation("a", n * 300 + k) for k in range(300)]))
        assert store._writer.execute(stored).fetchone()[0] <= 2 * OBSERVATIONS
    store.commit(changes(forgotten=["a"]))
    assert store._writer.execute(stored).fetchone() == (0,)
    store.commit(changes(observations=[observation("a", k) for k in range(2 * OBSERVATIONS)]))
    assert store._writer.execute(stored).fetchone() == (2 * OBSERVATIONS,)
    store.commit(changes(observations=[observation("a", k) for k in range(5 * OBSERVATIONS)]))
    assert store._writer.execute(stored).fetchone() == (OBSERVATIONS,)
    store.close()


@pytest.mark.parametrize(
    "clause",
    [
        Clause(array=7),
        Clause(array=7, low=3, high=900),
        Clause(array=7, group="default", user="ann", state=State.FAILED),
        Clause(array=7, indexes=((3, 3),), state=State.READY),
        Clause(array=7, indexes=((3, 4), (9, 9)), low=5),
    ],
)
def test_elements_are_found_by_the_index_of_their_array(db, clause):
    store = SqliteStore(db.parent, reserve=0)
    (part,) = parts_of(store._writer, [clause], above=1)
    plan = store._writer.execute(f"EXPLAIN QUERY PLAN {part.ids()} ORDER BY j.id LIMIT 9", part.params).fetchall()
    steps = [row[3] for row in plan if " j " in row[3]]
    between = " AND array_index>? AND array_index<?" if clause.indexes else ""
    assert len(steps) == 1
    assert f"INDEX jobs_of_array (array_id=?{between}" in steps[0]
    store.close()


def test_text_with_a_nul_is_kept_to_its_end(home):
    store = SqliteStore(home, reserve=0)
    store.commit(
        changes(submissions=[("s1", "ann", 1.0, 1, "{}")], jobs=[job_row(1, reason_message="a\0b \\u0000")])
    )
    assert store.load().jobs[0].reason_message == "a\ufffdb \\u0000"
    store.close()
