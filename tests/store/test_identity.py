"""Whose home a directory is: copied, moved, linked and mixed-up homes, without a manager."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from rota.core.changes import Changes
from rota.errors import BadInput, NotFound, StoreRefused
from rota.store.home import identity
from rota.store.home.adopt import adopt
from rota.store.home.backup import back_up, deployment_of
from rota.store.home.home_lock import HomeLock
from rota.store.home.restore import Restoration
from rota.store.sqlite.store import SqliteStore


def start(home: Path) -> str:
    """As a manager starts: the deployment that it then is one of."""
    found = ""

    def approve(stored: str) -> None:
        nonlocal found
        found = identity.settled(home, stored)

    store = SqliteStore(home, reserve=0, approve=approve)
    try:
        changes = Changes()
        changes.meta = {"deployment": found}
        store.commit(changes)
    finally:
        store.close()
    return found


def refused(home: Path) -> str:
    with pytest.raises(StoreRefused) as caught:
        start(home)
    assert "rota manager adopt" in caught.value.hint
    return caught.value.code


@pytest.fixture
def home(tmp_path: Path) -> Path:
    start(tmp_path / "a")
    return tmp_path / "a"


@pytest.fixture
def copy(home: Path) -> Path:
    shutil.copytree(home, home.parent / "b")
    return home.parent / "b"


def test_a_home_says_whose_it_is_and_where_it_was_made(home: Path) -> None:
    said = json.loads((home / "identity.json").read_bytes())
    assert said == {"id": deployment_of(home), "path": str(home), "inode": home.stat().st_ino}
    assert (home / "identity.json").stat().st_mode & 0o777 == 0o600
    assert start(home) == said["id"]


@pytest.mark.parametrize("left", [None, b"", b"{", b"\xff\xfe", b'{"id": ""}', b'{"id": 5}'])
def test_a_home_without_an_identity_gets_one_and_is_never_refused(home: Path, left: bytes | None) -> None:
    before = deployment_of(home)
    (home / "identity.json").unlink()
    if left is not None:
        (home / "identity.json").write_bytes(left)
    assert start(home) == before
    assert identity.read(home) == identity.Identity(before, str(home), home.stat().st_ino)


def test_a_copy_is_refused_while_the_original_is_there(home: Path, copy: Path) -> None:
    before = (copy / "rota.db").read_bytes(), (copy / "identity.json").read_bytes()
    assert refused(copy) == "copied"
    assert before == ((copy / "rota.db").read_bytes(), (copy / "identity.json").read_bytes())
    assert start(home)
    assert refused(copy) == "copied"


def test_a_home_that_was_moved_goes_on(home: Path, copy: Path) -> None:
    id = deployment_of(home)
    shutil.rmtree(home)
    assert start(copy) == id, "the original is gone: this is it now"
    moved = copy.rename(home.parent / "c")
    assert start(moved) == id
    found = identity.read(moved)
    assert found is not None
    assert found.path == str(moved)


def test_a_copy_in_the_place_of_the_original_is_refused_and_so_is_the_original_until_it_is_adopted(
    home: Path,
) -> None:
    id = deployment_of(home)
    original = home.rename(home.parent / "aside")
    shutil.copytree(original, home)
    assert refused(home) == "copied"
    assert refused(original) == "copied"
    adopt(original, copy=False)
    assert start(original) == id
    assert refused(home) == "copied"


def test_names_of_one_directory_are_no_copies(home: Path) -> None:
    id = deployment_of(home)
    link = home.parent / "link"
    link.symlink_to(home)
    assert start(link) == id
    assert start(home) == id
    real = home.rename(home.parent / "elsewhere")
    home.symlink_to(real)
    assert start(home) == id
    assert start(real) == id


def test_homes_that_changed_places_go_on(home: Path) -> None:
    other = home.parent / "other"
    ids = start(home), start(other)
    home.rename(home.parent / "t")
    other.rename(home)
    (home.parent / "t").rename(other)
    assert (start(other), start(home)) == ids


def test_a_pipe_where_the_original_was_is_not_waited_for(home: Path, copy: Path) -> None:
    (home / "identity.json").unlink()
    os.mkfifo(home / "identity.json")
    assert start(copy)


def test_the_database_of_another_deployment_is_refused_before_it_is_touched(home: Path) -> None:
    other = home.parent / "other"
    start(other)
    shutil.copy(other / "rota.db", home / "rota.db")
    before = (home / "rota.db").read_bytes()
    assert refused(home) == "foreign"
    assert (home / "rota.db").read_bytes() == before
    taken = adopt(home, copy=False)
    assert start(home) == taken.id == deployment_of(other)


def test_what_is_adopted_as_a_copy_has_nothing_of_the_original(home: Path, copy: Path) -> None:
    for name in (
        "tls/ca.pem",
        "tokens/admin.token",
        "runners/x-1-ab/journal",
        "manager.json",
        "tls.port",
        "output/1",
    ):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text("of the original")
    done = adopt(copy, copy=True)
    assert (done.before, done.doubted) == (deployment_of(home), [])
    assert start(copy) == done.id != start(home)
    left = {str(path.relative_to(copy)) for path in copy.rglob("*") if not path.is_dir()}
    assert left >= {"output/1", "rota.db"}
    assert not {name for name in left if name.startswith(("tls", "tokens", "runners", "manager.json"))}


def test_leases_of_a_copy_are_doubted_as_those_of_a_backup_are(home: Path, copy: Path) -> None:
    (copy / "checksums").unlink()  # since we change it ourselves
    with sqlite3.connect(copy / "rota.db") as database:
        columns = [row[1:4] for row in database.execute("PRAGMA table_info(attempts)")]
        needed = [(name, kind) for name, kind, required in columns if required and name not in ("job", "number")]
        names = ", ".join(["job", "number", *(name for name, _ in needed)])
        values = [7, 2, *("" if kind == "TEXT" else 0 for _, kind in needed)]
        database.execute(f"INSERT INTO attempts ({names}) VALUES ({', '.join('?' * len(values))})", values)
        database.execute("UPDATE attempts SET outcome = NULL")
    database.close()
    assert adopt(copy, copy=True).doubted == [7]
    with sqlite3.connect(copy / "rota.db") as database:
        meta = dict(database.execute("SELECT key, value FROM meta"))
        assert json.loads(meta["restored_leases"]) == [[7, 2]]
        assert meta["restored_from"] == "a copied home"
        assert "copy" in database.execute("SELECT text FROM events WHERE job = 7").fetchone()[0]
    database.close()


def test_adopting_that_was_interrupted_is_said_again(
    home: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(home: Path, id: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(identity, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            adopt(copy, copy=True)
    assert refused(copy) == "foreign"
    assert start(copy if adopt(copy, copy=True) else home) != deployment_of(home)


def test_nobody_adopts_a_home_in_use_or_without_a_database(home: Path) -> None:
    lock = HomeLock(home)
    with pytest.raises(StoreRefused) as caught:
        adopt(home, copy=True)
    assert caught.value.code == "locked"
    lock.release()
    with pytest.raises(NotFound):
        adopt(home.parent / "nothing", copy=False)
    (home / "runners" / "x").mkdir(parents=True)
    (home / "runners" / "x" / "lock").touch()
    with (home / "runners" / "x" / "lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(BadInput, match="at work"):
            adopt(home, copy=True)


def test_restoring_rewrites_the_identity(home: Path, copy: Path) -> None:
    """A home stays that of its deployment, whose runners know it; one without any becomes that of the backup."""
    id = deployment_of(home)
    backup = home.parent / "backup.db"
    back_up(home, str(backup), force=False)
    other = home.parent / "other"
    its = start(other)
    for target, expected in ((other, its), (copy, id), (home.parent / "new", id)):
        with Restoration(target, backup, replace=True) as restoration:
            restoration.put_in_place(pause=False)
        assert start(target) == expected
        assert identity.read(target) == identity.Identity(expected, str(target), target.stat().st_ino)
