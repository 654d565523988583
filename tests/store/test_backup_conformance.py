"""What every store promises of its backups, and of the way back."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from committer import SIZE, batch
from rows import a_world, an_add, changes

from rota.core.accounts.sums import AccountKey, AccountSums, MinuteSums
from rota.core.recovery.restored_leases import RESTORED_AT, RESTORED_LEASES
from rota.core.site.manager_pause import PAUSED, YES
from rota.errors import BadInput, EnvironmentFault, NotFound, StoreRefused
from rota.store.base import Store
from rota.store.home.adopt import adopt
from rota.store.home.backup import back_up
from rota.store.home.restore import Restoration, Restored
from rota.store.opening import closed_store, default_url, open_store

Restore = Callable[..., Restored]


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "copy.db"


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Another home."""
    return tmp_path / "other"


@pytest.fixture
def other_url(url: str, other: Path) -> str:
    """Its store, of the same kind."""
    return f"memory:{other}" if url.startswith("memory:") else default_url(other)


@pytest.fixture
def restored(other: Path, other_url: str) -> Restore:
    def restore(file: Path, *, replace: bool = False, pause: bool = False) -> Restored:
        with Restoration(other, file, replace=replace, url=other_url) as restoration:
            return restoration.put_in_place(pause=pause)

    return restore


def everything(store: Store) -> list[object]:
    """All that a store tells, apart from what a restore writes down."""
    snapshot = store.load()
    snapshot.meta = {}
    jobs = store.jobs(list(range(1, snapshot.next_job)))
    return [
        snapshot, jobs, [store.attempts(job.id) for job in jobs], store.accounts(first=0, end=9),
        store.minutes(since=0), store.machine_rows(host="", since=0, until=9), store.points("g", limit=9),
        store.pruned(["seg-1", "seg-2"]), store.env(1), store.last_submission("ann"), store.dependents(["g"]),
    ]  # fmt: skip


def test_a_restored_store_holds_all_that_was_backed_up(
    store: Store, home: Path, target: Path, restored: Restore, other_url: str
) -> None:
    store.commit(a_world())
    store.commit(
        changes(
            site={("queue", "night"): '{"priority":1}'}, pruned=["seg-2"], meta={"generation": "4"},
            accounts={AccountKey(5, "ann", "", ""): AccountSums(jobs=3)}, minutes={3: MinuteSums(started=2)},
            machines=[("a", 1, "automated", "idle", "alive")],
        )
    )  # fmt: skip
    made = back_up(home, str(target), force=False, store=store)
    assert (made.jobs, made.generation, made.path) == (3, 4, str(target))
    assert made.bytes == target.stat().st_size
    expected = everything(store)
    store.commit(an_add(4, submission="later"))
    done = restored(target)
    assert (done.backup.jobs, done.backup.waiting, done.backup.leased, done.backup.next_job) == (3, 1, [2], 4)
    assert done.backup.made_at
    assert done.kept is None
    again = open_store(other_url)
    held = everything(again)
    events = again.events(2)
    assert again.load().meta[RESTORED_LEASES] == "[[2,1]]"
    assert [(event.attempt, event.kind) for event in events][-1] == (1, "restored")
    again.close()
    assert held == expected


def test_a_backup_made_during_commits_is_one_committed_state(
    store: Store, home: Path, target: Path, restored: Restore, other_url: str
) -> None:
    store.load()
    store.commit(batch(0))
    done, number = threading.Event(), 1

    def write() -> None:
        nonlocal number
        while not done.is_set() and number < 200:
            store.commit(batch(number))
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        made = back_up(home, str(target), force=False, store=store)
    finally:
        done.set()
        writer.join()
    restored(target)
    again = open_store(other_url)
    snapshot = again.load()
    again.close()
    batches = int(snapshot.meta["batch"]) + 1
    assert (snapshot.next_job, made.jobs) == (batches * SIZE + 1, batches * SIZE)


def test_jobs_of_unfinished_uploads_are_not_counted(store: Store, home: Path, target: Path) -> None:
    store.load()
    store.commit(batch(0))
    store.commit(an_add(100, 101, submission="open", answer=None))
    assert back_up(home, str(target), force=False, store=store).jobs == SIZE


def test_a_closed_store_is_backed_up_and_tells_its_deployment(
    store: Store, url: str, home: Path, target: Path
) -> None:
    store.commit(a_world())
    store.commit(changes(meta={"deployment": "d1"}))
    store.close()
    assert closed_store(url).deployment() == "d1"
    assert back_up(home, str(target), force=False, url=url).jobs == 3


def test_a_store_that_is_replaced_is_kept_and_its_generation_goes_on(
    store: Store, home: Path, target: Path, restored: Restore, other: Path, other_url: str
) -> None:
    store.commit(a_world())
    store.commit(changes(meta={"generation": "2"}))
    back_up(home, str(target), force=False, store=store)
    newer = open_store(other_url)
    newer.commit(an_add(1))
    newer.commit(changes(meta={"generation": "7", "deployment": "d2"}))
    newer.close()
    with pytest.raises(BadInput, match="already"):
        restored(target)
    done = restored(target, replace=True, pause=True)
    assert done.kept
    again = open_store(other_url)
    meta = again.load().meta
    assert (meta["generation"], meta[PAUSED]) == ("7", YES)
    assert meta[RESTORED_AT]
    assert len(again.jobs([1, 2, 3])) == 3
    again.close()


def test_what_is_no_backup_is_refused_and_nothing_changes(
    store: Store, home: Path, target: Path, restored: Restore, other_url: str
) -> None:
    with pytest.raises(NotFound, match="no file"):
        restored(target)
    target.write_text("precious")
    with pytest.raises(StoreRefused, match="is not a backup") as caught:
        restored(target)
    assert caught.value.code == "foreign"
    target.unlink()
    store.commit(a_world())
    back_up(home, str(target), force=False, store=store)
    target.write_bytes(target.read_bytes()[:-50])
    with pytest.raises(StoreRefused) as caught:
        restored(target)
    assert caught.value.code == "damaged"
    assert not closed_store(other_url).exists()


def test_a_backup_that_is_stopped_leaves_nothing(store: Store, home: Path, target: Path) -> None:
    store.commit(a_world())

    def stop(_share: float) -> None:
        raise EnvironmentFault("stopped")

    with pytest.raises(EnvironmentFault, match="stopped"):
        back_up(home, str(target), force=False, store=store, progress=stop)
    assert [each.name for each in target.parent.iterdir() if each != home] == []


def test_there_must_be_a_store(home: Path, target: Path, url: str) -> None:
    with pytest.raises(NotFound, match="there is no"):
        back_up(home, str(target), force=False, url=url)
    assert not target.exists()


def test_a_restore_that_is_given_up_changes_nothing(
    store: Store, home: Path, target: Path, other: Path, other_url: str
) -> None:
    store.commit(a_world())
    back_up(home, str(target), force=False, store=store)
    with Restoration(other, target, replace=False, url=other_url) as restoration:
        assert restoration.found.jobs == 3
    assert not closed_store(other_url).exists()


def test_a_store_becomes_that_of_another_deployment_and_doubts_its_leases(
    store: Store, home: Path, url: str
) -> None:
    store.commit(a_world())
    store.commit(changes(meta={"deployment": "d1"}))
    store.close()
    done = adopt(home, copy=True, url=url)
    assert (done.before, done.doubted) == ("d1", [2])
    again = open_store(url)
    meta = again.load().meta
    assert meta["deployment"] == done.id
    assert json.loads(meta[RESTORED_LEASES]) == [[2, 1]]
    assert again.events(2)[-1].kind == "restored"
    again.close()


def test_a_moved_store_keeps_its_deployment(store: Store, home: Path, url: str) -> None:
    store.commit(a_world())
    store.commit(changes(meta={"deployment": "d1"}))
    store.close()
    done = adopt(home, copy=False, url=url)
    assert (done.id, done.before, done.doubted) == ("d1", "d1", [])
    again = open_store(url)
    assert RESTORED_LEASES not in again.load().meta
    again.close()
