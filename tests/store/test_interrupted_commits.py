"""A manager that is killed while it writes, or after a commit that failed, starts again. What was committed is
there, or it is told that it is not: as often as somebody asks."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.store.rows import a_world, an_add
from tests.store.test_flipped_bytes import told

from rota.boot import boot_id
from rota.errors import RotaError
from rota.store.home.adopt import adopt
from rota.store.home.backup import back_up
from rota.store.home.checkup import deployment_of, wrong_with_database
from rota.store.sqlite.batch import encode
from rota.store.sqlite.store import SqliteStore


class Interrupted:
    """A live store with little memory for pages, so that a transaction reaches the log before its commit."""

    def __init__(self, live: Path) -> None:
        self.live = live
        self.store = SqliteStore(live, reserve=0)
        self.store.commit(a_world())
        self.store._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self.store._writer.execute("PRAGMA cache_size=10")
        self.store.commit(an_add(*range(10, 14), submission="t0"))

    def spill(self) -> None:
        """Write much, and some of it again: pages are changed in the log, whose sums follow at the commit."""
        self.store._writer.execute("BEGIN IMMEDIATE")
        for first in range(100, 1300, 300):
            for name, lists in encode(an_add(*range(first, first + 300), submission=f"u{first}")):
                self.store._writer.execute(self.store._sql[name], lists)

    def killed(self, home: Path, *, index: bool) -> Path:
        """The home as it is now; without the log's index it is not known what was committed."""
        shutil.copytree(self.live, home)
        (home / "manager.json").write_text(json.dumps({"boot": boot_id()}))
        if not index:
            (home / "rota.db-shm").unlink()
        return home


@pytest.mark.parametrize("index", [True, False])
def test_a_manager_that_is_killed_in_the_middle_of_a_large_commit_starts_again(
    tmp_path: Path, index: bool
) -> None:
    manager = Interrupted(tmp_path / "live")
    manager.spill()
    home = manager.killed(tmp_path / "killed", index=index)
    manager.store.close()
    assert (home / "rota.db-wal").stat().st_size > 30 * 4096
    assert not list(wrong_with_database(home, in_use=False))
    store = SqliteStore(home, reserve=0)
    store.close()
    with closing(sqlite3.connect(home / "rota.db")) as database:
        ids = {id for (id,) in database.execute("SELECT id FROM jobs")}
    assert ids >= {*range(10, 14)}
    assert not ids & {*range(100, 1300)}


@pytest.mark.parametrize("index", [True, False])
def test_what_is_left_in_the_log_of_a_commit_that_failed_keeps_nobody_from_starting(
    tmp_path: Path, index: bool
) -> None:
    manager = Interrupted(tmp_path / "live")
    manager.spill()
    manager.store._writer.execute("ROLLBACK")  # as on a full disk
    manager.store.commit(an_add(14, submission="t1"))
    home = manager.killed(tmp_path / "killed", index=index)
    manager.store.close()
    assert not list(wrong_with_database(home, in_use=False))
    SqliteStore(home, reserve=0).close()


@pytest.mark.parametrize("damage", ["last", "cut", "first"])
def test_a_log_that_lacks_what_was_committed_is_refused_however_often_it_is_asked(
    tmp_path: Path, damage: str
) -> None:
    manager = Interrupted(tmp_path / "live")
    home = manager.killed(tmp_path / "killed", index=True)
    manager.store.close()
    log = home / "rota.db-wal"
    whole = log.read_bytes()
    changed = {
        "last": whole[:-4000] + 4000 * b"x",  # which might be torn, were it not known to be committed
        "cut": whole[: -4096 - 24],  # nothing in it says so
        "first": whole[:3000] + 100 * b"x" + whole[3100:],
    }[damage]
    log.write_bytes(changed)
    for _ in range(2):
        assert told(home)
        with pytest.raises(RotaError, match="log is damaged"):
            adopt(home, copy=True)
        with pytest.raises(RotaError, match="log is damaged"):
            back_up(home, str(tmp_path / "copy.db"), force=False)
        deployment_of(home, in_use=False)
    assert log.read_bytes() == changed, "nothing was changed"
