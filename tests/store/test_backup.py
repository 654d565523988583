"""Backups: a whole copy or none, made while the database is being written to; and the way back."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from committer import SIZE, batch
from rows import an_add, changes

from rota.core.recovery.restored_leases import RESTORED_AT, RESTORED_LEASES
from rota.core.site.manager_pause import PAUSED, YES
from rota.errors import BadInput, EnvironmentFault, NotFound, RotaError, StoreRefused
from rota.store.home.backup import back_up
from rota.store.home.home_lock import HomeLock
from rota.store.home.restore import Restoration, Restored
from rota.store.sqlite.store import SqliteStore

BACKER = str(Path(__file__).with_name("backer.py"))


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A file in an empty directory that a backup may be written to."""
    directory = tmp_path / "backups"
    directory.mkdir()
    return directory / "copy.db"


def filled(home: Path, *, batches: int = 3) -> None:
    """A home with some jobs, closed properly."""
    store = SqliteStore(home, reserve=0)
    store.load()
    for k in range(batches):
        store.commit(batch(k))
    store.close()


def copied(home: Path, target: Path) -> None:
    back_up(home, str(target), force=False)


def restored(home: Path, file: Path, *, replace: bool = False, pause: bool = False) -> Restored:
    with Restoration(home, file, replace=replace) as restoration:
        return restoration.put_in_place(pause=pause)


def whole_batches(home: Path) -> int:
    """How many batches a home holds. Fails if it holds a part of one."""
    store = SqliteStore(home, reserve=0)
    try:
        snapshot = store.load()
    finally:
        store.close()
    batches = int(snapshot.meta["batch"]) + 1
    assert snapshot.next_job == batches * SIZE + 1
    assert len(snapshot.jobs) == batches * SIZE // 2
    return batches


# ------------------------------------------------------------------ backup


def test_a_backup_made_while_jobs_are_added_is_one_state_of_the_database(home: Path, target: Path) -> None:
    store = SqliteStore(home, reserve=0)
    store.load()
    store.commit(batch(0))
    done, number = threading.Event(), 1

    def write() -> None:
        nonlocal number
        while not done.is_set():
            store.commit(batch(number))
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    made = []
    try:
        for n in range(5):
            file = target.with_name(f"{n}.db")
            before = number
            made.append((before, file, back_up(home, str(file), force=False, store=store)))
    finally:
        done.set()
        writer.join()
        store.close()
    for before, file, backup in made:
        elsewhere = target.with_name(f"home-{file.name}")
        restored(elsewhere, file)
        batches = whole_batches(elsewhere)
        assert before <= batches <= number
        assert backup.jobs == batches * SIZE
        assert backup.bytes > 0
    assert number > made[0][0], "nothing was committed during the backups"


def test_a_backup_is_readable_by_its_owner_alone_and_nothing_lies_beside_it(home: Path, target: Path) -> None:
    filled(home)
    copied(home, target)
    assert target.stat().st_mode & 0o777 == 0o600
    assert os.listdir(target.parent) == [target.name]


def test_an_upload_that_is_not_finished_is_not_counted(home: Path, target: Path) -> None:
    store = SqliteStore(home, reserve=0)
    store.load()
    store.commit(batch(0))
    store.commit(an_add(100, 101, submission="open", answer=None))
    assert back_up(home, str(target), force=False, store=store).jobs == SIZE
    store.close()


def test_a_file_that_exists_is_replaced_only_by_force(home: Path, target: Path) -> None:
    filled(home)
    copied(home, target)
    older = target.read_bytes()
    with pytest.raises(BadInput, match="exists already"):
        copied(home, target)
    assert target.read_bytes() == older
    for _ in range(2):
        back_up(home, str(target), force=True)
        assert target.read_bytes().startswith(b"SQLite format 3\0")
        target.write_bytes(b"")  # as `mktemp` makes it
    assert os.listdir(target.parent) == [target.name]


def _text(path: Path) -> None:
    path.write_text("precious")


def _foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE jobs (id)")


def _link(path: Path) -> None:
    path.with_name("linked").touch()
    path.symlink_to(path.with_name("linked"))


@pytest.mark.parametrize("make", [_text, _foreign, _link, os.mkfifo])
def test_even_by_force_only_backups_are_replaced(home: Path, target: Path, make: Callable[[Path], None]) -> None:
    filled(home)
    make(target)
    before = os.lstat(target)
    with pytest.raises(BadInput, match="is not") as refused:
        back_up(home, str(target), force=True)
    assert refused.value.hint
    assert os.lstat(target)[:-3] == before[:-3]  # the same file; the times are last


def test_a_file_that_becomes_another_during_a_forced_backup_is_not_replaced(home: Path, target: Path) -> None:
    filled(home)
    with pytest.raises(BadInput, match="not a backup"):
        back_up(home, str(target), force=True, progress=lambda _: target.write_text("precious") and None)
    assert target.read_text() == "precious"
    assert os.listdir(target.parent) == [target.name]


def test_the_database_of_another_deployment_is_never_replaced(home: Path, tmp_path: Path) -> None:
    filled(home)
    other = tmp_path / "other"
    other.mkdir()
    filled(other)
    before = (other / "rota.db").read_bytes()
    with pytest.raises(BadInput, match="of a deployment"):
        back_up(home, str(other / "rota.db"), force=True)
    assert (other / "rota.db").read_bytes() == before


def test_a_file_that_appears_during_the_backup_is_not_replaced(home: Path, target: Path) -> None:
    filled(home)
    with pytest.raises(BadInput, match="exists already"):
        back_up(home, str(target), force=False, progress=lambda _: target.write_text("faster") and None)
    assert target.read_text() == "faster"
    assert os.listdir(target.parent) == [target.name]


def test_a_backup_that_is_stopped_leaves_nothing(home: Path, target: Path) -> None:
    filled(home)

    def stop(_share: float) -> None:
        raise EnvironmentFault("stopped")

    with pytest.raises(EnvironmentFault, match="stopped"):
        back_up(home, str(target), force=False, progress=stop)
    assert os.listdir(target.parent) == []


def test_places_where_no_backup_can_be_are_named(home: Path, target: Path) -> None:
    filled(home)
    wrong = [
        "",
        "relative.db",
        "/nul\0byte",
        str(target.parent),
        f"/tmp/{'x' * 300}",
        str(target.parent / "no" / "x"),
    ]
    wrong += [str(home / "rota.db"), str(home / "sub" / ".." / "manager.lock"), "/dev/null"]
    for place in wrong:
        with pytest.raises(RotaError) as caught:
            back_up(home, place, force=True)
        assert caught.value.hint, place
    assert whole_batches(home) == 3


def test_there_must_be_a_database(tmp_path: Path, target: Path) -> None:
    with pytest.raises(NotFound, match="no database"):
        copied(tmp_path / "nothing", target)
    assert os.listdir(target.parent) == []


def test_a_damaged_database_is_not_passed_on_as_a_good_backup(home: Path, target: Path) -> None:
    filled(home, batches=200)
    damage(home / "rota.db")
    with pytest.raises(StoreRefused) as caught:
        copied(home, target)
    assert caught.value.code == "damaged"
    assert os.listdir(target.parent) == []


def strace(rule: str, home: Path, target: Path) -> subprocess.CompletedProcess[str]:
    assert shutil.which("strace"), "this test needs strace"
    return subprocess.run(
        ["strace", "-f", "-o", "/dev/null", "-e", f"inject={rule}", sys.executable, BACKER, home, target],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize("call", ["pwrite64", "fsync,fdatasync", "link,linkat,rename", "unlink"])
def test_a_kill_at_any_system_call_leaves_no_part_under_the_final_name(
    home: Path, target: Path, tmp_path: Path, call: str
) -> None:
    filled(home)
    for nth in range(1, 200, 5 if call == "pwrite64" else 1):
        file = target.with_name(f"{nth}.db")
        done = strace(f"{call}:signal=KILL:when={nth}", home, file)
        if file.exists():
            restored(tmp_path / f"home-{nth}", file)
            assert whole_batches(tmp_path / f"home-{nth}") == 3
        if done.returncode == 0:
            assert nth > 1, "nothing was ever killed"
            return
        assert done.stdout == ""
    raise AssertionError("it never got through")


@pytest.mark.parametrize(
    "rule",
    [
        "pwrite64:error=ENOSPC:when=1+",
        "pwrite64:error=ENOSPC:when=20+",
        "fsync,fdatasync:error=ENOSPC",
        "link,linkat:error=EIO",
    ],
)
def test_a_full_or_failing_disk_is_told_and_leaves_nothing(home: Path, target: Path, rule: str) -> None:
    filled(home)
    done = strace(rule, home, target)
    if "link" in rule:  # there is another way to give it its name
        assert done.returncode == 0
    else:
        assert (done.returncode, done.stdout) == (9, "disk_full\n")
        assert os.listdir(target.parent) == []
    assert whole_batches(home) == 3


# ------------------------------------------------------------------ restore


def test_a_restored_backup_holds_what_was_backed_up(home: Path, target: Path, tmp_path: Path) -> None:
    filled(home)
    copied(home, target)
    done = restored(tmp_path / "other", target)
    assert whole_batches(tmp_path / "other") == 3
    assert (done.backup.jobs, done.backup.waiting, done.backup.next_job, done.kept) == (30, 15, 31, None)
    assert done.backup.made_at


def test_leases_of_the_backup_are_marked(home: Path, target: Path, tmp_path: Path) -> None:
    store = SqliteStore(home, reserve=0)
    store.load()
    store.commit(batch(0))
    store.commit(changes(attempts=[(6, 1, 77, "r", "h", 1.0)], meta={"generation": "4"}))
    store.close()
    copied(home, target)
    done = restored(tmp_path / "other", target, pause=True)
    assert (done.backup.leased, done.backup.waiting) == ([6], 4)
    again = SqliteStore(tmp_path / "other", reserve=0)
    meta = again.load().meta
    (told,) = again.events(6)
    again.close()
    assert meta[RESTORED_AT]
    assert msgspec.json.decode(meta[RESTORED_LEASES]) == [[6, 1]]
    assert (meta[PAUSED], meta["generation"]) == (YES, "4")
    assert told.kind == "restored"


def test_a_database_that_is_there_is_replaced_only_when_asked_and_kept_whole(home: Path, target: Path) -> None:
    filled(home, batches=1)
    copied(home, target)
    store = SqliteStore(home, reserve=0)
    store.load()
    store.commit(batch(1))
    store.commit(changes(meta={"generation": "9"}))
    # As after a crash: the newest batches are only in the log.
    crashed = target.with_name("crashed")
    shutil.copytree(home, crashed)
    store.close()
    assert (crashed / "rota.db-wal").stat().st_size > 0

    with pytest.raises(BadInput, match="--replace"):
        restored(crashed, target)
    done = restored(crashed, target, replace=True)
    assert whole_batches(crashed) == 1
    again = SqliteStore(crashed, reserve=0)
    assert again.load().meta["generation"] == "9"  # no start is counted twice
    again.close()
    assert done.kept is not None
    kept = target.with_name("kept")
    kept.mkdir(mode=0o700)
    shutil.copy(done.kept, kept / "rota.db")
    assert whole_batches(kept) == 2


def test_a_damaged_database_can_be_replaced_and_is_kept_as_it_is(home: Path, target: Path) -> None:
    filled(home)
    copied(home, target)
    (home / "rota.db").write_bytes(b"rubbish")
    (home / "rota.db-wal").write_bytes(b"more rubbish")
    done = restored(home, target, replace=True)
    assert done.kept is not None
    assert Path(done.kept).read_bytes() == b"rubbish"
    assert Path(f"{done.kept}-wal").read_bytes() == b"more rubbish"
    assert whole_batches(home) == 3


def test_a_lost_database_can_be_restored_without_replacing_anything(home: Path, target: Path) -> None:
    filled(home)
    copied(home, target)
    (home / "rota.db").unlink()
    assert restored(home, target).kept is None
    assert whole_batches(home) == 3


def test_nothing_is_restored_under_a_running_manager(home: Path, target: Path) -> None:
    filled(home)
    copied(home, target)
    lock = HomeLock(home)
    try:
        with pytest.raises(StoreRefused) as caught:
            Restoration(home, target, replace=True)
        assert caught.value.code == "locked"
    finally:
        lock.release()


def test_a_restoration_that_is_given_up_changes_nothing(home: Path, target: Path, tmp_path: Path) -> None:
    filled(home)
    copied(home, target)
    before = (home / "rota.db").read_bytes()
    with Restoration(home, target, replace=True) as restoration:
        assert restoration.replaces
    assert (home / "rota.db").read_bytes() == before
    assert not list(home.glob("rota.db?*"))


def damage(path: Path) -> None:
    """Overwrite pages in the middle."""
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(size // 2 // 4096 * 4096)
        file.write(b"\xff" * 4096 * 3)


def _foreign(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE jobs (id)")


def _newer(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version=9999")
    database.close()


def _as_old_as_nothing(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version=0")
    database.close()


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda path: path.write_bytes(b""), "damaged"),
        (lambda path: path.write_bytes(path.read_bytes()[:50]), "damaged"),
        (lambda path: path.write_bytes(path.read_bytes()[:-4096]), "damaged"),
        (lambda path: path.write_text("jobs, as it were\n" * 100), "foreign"),
        (damage, "damaged"),
        (_foreign, "foreign"),
        (_newer, "newer"),
        (_as_old_as_nothing, "damaged"),
        (lambda path: path.unlink(), "not_found"),
        (lambda path: (path.unlink(), path.mkdir()), "bad_input"),
        (lambda path: Path(f"{path}-wal").write_bytes(b"log"), "bad_input"),
    ],
    ids=["empty", "cut in the header", "cut", "text", "damaged", "foreign", "newer", "no version", "missing",
         "directory", "in use"],
)  # fmt: skip
def test_what_is_not_a_whole_backup_is_refused_and_nothing_changes(home, target, tmp_path, spoil, code):
    filled(home, batches=200)
    copied(home, target)
    spoil(target)
    for place in (home, tmp_path / "other"):
        with pytest.raises(RotaError) as caught:
            restored(place, target, replace=True)
        assert caught.value.code == code
        assert caught.value.hint
    assert not (tmp_path / "other" / "rota.db").exists()
    assert not list(home.glob("rota.db?*"))
    assert whole_batches(home) == 200


def test_the_database_itself_is_not_a_backup(home: Path) -> None:
    filled(home)
    with pytest.raises(BadInput, match="the database itself"):
        restored(home, home / "rota.db", replace=True)
    assert whole_batches(home) == 3
