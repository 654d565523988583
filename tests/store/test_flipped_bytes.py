"""Any byte of a database, its log or a journal that is changed is told, or it means nothing. Never silent."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dose import dose
from tests.store.rows import a_world, an_add

from rota.boot import boot_id
from rota.core.attempts.leases import Finished
from rota.core.jobs.outcome import Outcome
from rota.errors import RotaError, StoreRefused
from rota.runner.report import journal
from rota.store.home.adopt import adopt
from rota.store.home.backup import back_up
from rota.store.home.checkup import wrong_with_database
from rota.store.home.restore import Restoration
from rota.store.sqlite import log_check
from rota.store.sqlite.store import SqliteStore


def content(home: Path) -> list[Any]:
    """Everything that a database says, whatever its pages are like."""
    with closing(sqlite3.connect(home / "rota.db")) as database:
        return list(database.iterdump())


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database that was closed."""
    home = tmp_path_factory.mktemp("closed")
    store = SqliteStore(home, reserve=0)
    store.commit(a_world())
    store.commit(an_add(*range(10, 300), submission="s9"))
    store.close()
    return home


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One whose manager was killed after some commits, on this machine and since it was started."""
    live, home = tmp_path_factory.mktemp("live"), tmp_path_factory.mktemp("crash") / "home"
    store = SqliteStore(live, reserve=0)
    store.commit(a_world())
    store._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    for number in range(3):
        store.commit(an_add(*range(100 * number + 10, 100 * number + 14), submission=f"t{number}"))
    shutil.copytree(live, home)
    store.close()
    (home / "rota.db-shm").unlink()
    (home / "manager.json").write_text(json.dumps({"boot": boot_id()}))
    return home


def told(home: Path) -> bool:
    """Does doctor tell of it, and does no manager start?"""
    found = list(wrong_with_database(home, in_use=False))
    try:
        SqliteStore(home, reserve=0).close()
    except StoreRefused as error:
        assert error.code in ("damaged", "foreign", "newer", "store"), error
        return bool(found)
    return False


@given(st.data())
@dose(40)
def test_any_byte_of_a_closed_database_that_is_changed_is_told(closed: Path, data: st.DataObject) -> None:
    with Copy(closed) as home:
        whole = (home / "rota.db").read_bytes()
        at = data.draw(st.integers(0, len(whole) - 1))
        flip = data.draw(st.integers(1, 255))
        (home / "rota.db").write_bytes(whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1 :])
        assert told(home)


@given(st.integers(0, 1_000_000))
@dose(10)
def test_a_closed_database_that_is_cut_or_of_which_a_page_is_zero_is_told(closed: Path, number: int) -> None:
    with Copy(closed) as home:
        whole = (home / "rota.db").read_bytes()
        (home / "rota.db").write_bytes(whole[: number % len(whole)])
        assert told(home)
        page = number % (len(whole) // 4096) * 4096
        (home / "rota.db").write_bytes(whole[:page] + bytes(4096) + whole[page + 4096 :])
        assert told(home) or not any(whole[page : page + 4096])


def test_a_zeroed_page_is_told_beside_a_running_manager(closed: Path) -> None:
    with Copy(closed) as home:
        (home / "checksums").unlink()
        with closing(sqlite3.connect(home / "rota.db")) as database:
            (page,) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'jobs'").fetchone()
        assert not list(wrong_with_database(home, in_use=True))
        with (home / "rota.db").open("r+b") as file:
            file.seek((page - 1) * 4096)
            file.write(bytes(4096))
        assert any("damaged" in sentence for sentence in wrong_with_database(home, in_use=True))


@given(st.data())
@dose(40)
def test_any_byte_of_a_log_that_is_changed_after_a_crash_is_told_or_means_nothing(
    crashed: Path, data: st.DataObject
) -> None:
    expected = _expected(crashed)
    with Copy(crashed) as home:
        log = home / "rota.db-wal"
        whole = log.read_bytes()
        at = data.draw(st.integers(0, len(whole) - 1))
        log.write_bytes(whole[:at] + bytes([whole[at] ^ data.draw(st.integers(1, 255))]) + whole[at + 1 :])
        assert told(home) or content(home) == expected


def test_any_bit_of_the_header_of_a_log_that_is_changed_is_told(crashed: Path, tmp_path: Path) -> None:
    whole = (crashed / "rota.db-wal").read_bytes()
    log = tmp_path / "log"
    for bit in range(32 * 8):
        at, mask = bit // 8, 1 << bit % 8
        log.write_bytes(whole[:at] + bytes([whole[at] ^ mask]) + whole[at + 1 :])
        assert log_check.left_out(log, same_boot=True) == "the header of its log is damaged"


def test_a_log_of_another_boot_may_lack_the_commit_that_was_torn_and_no_other(crashed: Path) -> None:
    with Copy(crashed) as home:
        (home / "manager.json").write_text(json.dumps({"boot": "another"}))
        log = home / "rota.db-wal"
        whole = log.read_bytes()
        assert log_check.left_out(log, same_boot=False) == ""
        log.write_bytes(whole[:-100] + 100 * b"x")  # the end of the last commit
        assert log_check.left_out(log, same_boot=False) == ""
        assert log_check.left_out(log, same_boot=True) == "", "so it is when its writer is killed meanwhile"
        log.write_bytes(whole[:3000] + 100 * b"x" + whole[3100:])  # the first commit
        assert log_check.left_out(log, same_boot=False)
        assert told(home)


def test_a_single_byte_of_the_last_frame_is_told_from_a_frame_that_was_being_written(crashed: Path) -> None:
    with Copy(crashed) as home:
        log = home / "rota.db-wal"
        whole = log.read_bytes()
        last = len(whole) - 4096 - 24
        for at in [*range(last, last + 40), *range(last + 40, len(whole), 97)]:
            for flip in (1, 0x80, 0xFF):
                log.write_bytes(whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1 :])
                assert log_check.left_out(log, valid=len(whole) // 4120 - 1, same_boot=True), (at - last, flip)


_said: dict[Path, list[Any]] = {}


def _expected(crashed: Path) -> list[Any]:
    if crashed not in _said:
        with Copy(crashed) as home:
            SqliteStore(home, reserve=0).close()
            _said[crashed] = content(home)
    return _said[crashed]


def _records() -> list[journal.Record]:
    outcome = Outcome(exit_code=0, started_at=1.0, ended_at=2.0)
    return [
        journal.Began("r", "m", "b", 1, 2),
        journal.Intent(1, 1, 7),
        journal.Spawned(1, 1, 7, 99, 5, 1, 1.5),
        journal.Over(Finished(1, 1, 7, 1, outcome)),
        journal.Intent(2, 1, 8),
    ]


def test_any_byte_of_a_journal_that_is_changed_is_told() -> None:
    records = _records()
    blocks = [journal.pack(records[:1]), journal.pack(records[1:3]), journal.pack(records[3:])]
    whole = b"".join(blocks)
    assert journal.unpack(whole) == (records, True)
    for at in range(len(whole)):
        for flip in (1, 0x80, 0xFF):
            changed = whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1 :]
            found, complete = journal.unpack(changed)
            assert not complete or found == records, f"byte {at} became {changed[at]}"


def test_a_journal_that_was_cut_in_the_middle_of_a_block_lost_only_what_had_no_effect() -> None:
    blocks = [journal.pack(_records()[:1]), journal.pack(_records()[1:])]
    for end in range(len(blocks[0]), len(b"".join(blocks))):
        assert journal.unpack(b"".join(blocks)[:end]) == (_records()[:1], True)


@pytest.mark.parametrize("what", ["pipe", "device", "directory", "socket"])
@pytest.mark.parametrize("name", ["rota.db", "rota.db-wal"])
def test_a_database_that_is_no_file_is_refused_without_waiting(
    closed: Path, tmp_path: Path, what: str, name: str
) -> None:
    with Copy(closed) as home:
        path = home / name
        path.unlink(missing_ok=True)
        match what:
            case "pipe":
                os.mkfifo(path)
            case "device":
                path.symlink_to("/dev/zero")
            case "directory":
                path.mkdir()
            case "socket":
                os.mknod(path, 0o140600)
        signal.alarm(20)  # a test that waits for a pipe would wait for ever
        try:
            with pytest.raises(StoreRefused, match="not a file"):
                SqliteStore(home, reserve=0)
            assert any("not a file" in sentence for sentence in wrong_with_database(home, in_use=False))
            with pytest.raises(RotaError, match="not a file"):
                back_up(home, str(tmp_path / "copy.db"), force=False)
            with pytest.raises(RotaError, match="not a file"):
                adopt(home, copy=True)
            with pytest.raises(RotaError, match=r"not a file|is a directory|in use"):
                Restoration(tmp_path / "other", home / "rota.db", replace=False)
        finally:
            signal.alarm(0)


@pytest.mark.parametrize("what", ["pipe", "directory", "link", "garbage"])
def test_checksums_that_are_none_keep_nobody_from_starting(closed: Path, what: str) -> None:
    with Copy(closed) as home:
        path = home / "checksums"
        path.unlink()
        match what:
            case "pipe":
                os.mkfifo(path)
            case "directory":
                path.mkdir()
            case "link":
                path.symlink_to("/dev/zero")
            case "garbage":
                path.write_bytes(b"x" * 1000)
        signal.alarm(20)
        try:
            assert not list(wrong_with_database(home, in_use=False))
            SqliteStore(home, reserve=0).close()
        finally:
            signal.alarm(0)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("UPDATE jobs SET state = 77 WHERE id = 1", "a state that does not exist"),
        ("UPDATE jobs SET spec = 999 WHERE id = 1", "a specification that is not there"),
        ("UPDATE jobs SET in_group = 999 WHERE id = 1", "a group that is not there"),
        ("UPDATE jobs SET state = 7 WHERE id = 1", "no attempt of it is under way"),
        ("UPDATE jobs SET state = 12, ended_at = NULL WHERE id = 1", "nobody knows when"),
        ("INSERT INTO edges VALUES (1, 999)", "waits for others and is not there"),
        ("INSERT OR REPLACE INTO tally VALUES ('nobody', 13, 5)", "than is counted"),
    ],
)
def test_rows_that_contradict_each_other_are_told(closed: Path, change: str, sentence: str) -> None:
    with Copy(closed) as home:
        assert not list(wrong_with_database(home, in_use=False))
        (home / "checksums").unlink()
        with closing(sqlite3.connect(home / "rota.db")) as database:
            database.execute(change)
            database.commit()
        assert any(sentence in found for found in wrong_with_database(home, in_use=False))


class Copy:
    """A directory of its own for an example."""

    def __init__(self, home: Path) -> None:
        self._from = home
        self._to = home.parent / f"{home.name}-example"

    def __enter__(self) -> Path:
        shutil.rmtree(self._to, ignore_errors=True)
        return Path(shutil.copytree(self._from, self._to))

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._to, ignore_errors=True)


def test_opening_a_database_keeps_the_locks_that_sqlite_has_on_it(crashed: Path, closed: Path) -> None:
    """A program that closes it meanwhile must not take itself for the last one, and the log for its own."""
    for left in (crashed, closed):
        with Copy(left) as home:
            store = SqliteStore(home, reserve=0)
            held = {line.split()[5].rpartition(":")[2] for line in Path("/proc/locks").read_text().splitlines()}
            for name in ("rota.db", "rota.db-shm"):
                assert str((home / name).stat().st_ino) in held, name
            store.close()
