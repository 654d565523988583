"""Kills, failing syncs and full disks: what was acknowledged is there, whole, and nothing else is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from committer import SIZE, batch
from rows import an_add, attempt_row, changes, end_row, state_row

from rota.core.states import State
from rota.errors import StoreFull, StoreRefused
from rota.store.sqlite.store import SqliteStore

COMMITTER = str(Path(__file__).with_name("committer.py"))


def check(home: Path, *, acknowledged: int) -> int:
    """Open, demand that batches 0 … n-1 are there whole and that n ≥ acknowledged; return n."""
    store = SqliteStore(home, reserve=0)
    try:
        snapshot = store.load()
        batches = int(snapshot.meta.get("batch", "-1")) + 1
        assert batches >= acknowledged
        assert snapshot.next_job == batches * SIZE + 1
        assert len(snapshot.jobs) == batches * SIZE // 2
        assert snapshot.outcomes == b"\xff" + (bytes([State.COMPLETE]) * 5 + bytes(5)) * batches
        assert snapshot.tally.get(("default", int(State.COMPLETE)), 0) == 5 * batches
        assert snapshot.open_attempts == []
    finally:
        store.close()
    return batches


def test_batches_acknowledged_before_a_kill_are_all_there(home):
    done = 0
    for acknowledgements in [1, 2, 3, 5, 8, 13, 1, 1, 21, 2]:
        command = [sys.executable, COMMITTER, str(home), str(done), "100000"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(acknowledgements):
                done = int(process.stdout.readline()) + 1
            process.kill()
            # More may have been acknowledged before the signal arrived.
            rest = process.stdout.read().split("\n")[:-1]
        done = check(home, acknowledged=int(rest[-1]) + 1 if rest else done)


def strace(*inject: str, home: Path, first: int = 0, batches: int = 3) -> subprocess.CompletedProcess[str]:
    assert shutil.which("strace"), "this test needs strace"
    expressions = [word for rule in inject for word in ("-e", f"inject={rule}")]
    return subprocess.run(
        ["strace", "-f", "-o", "/dev/null", *expressions, "-P", str(home), *paths(home),
         sys.executable, COMMITTER, str(home), str(first), str(batches)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def paths(home: Path) -> Iterator[str]:
    """Only calls on the store's own files count."""
    for name in ("rota.db", "rota.db-wal", "rota.db.new", "deployment"):
        yield from ("-P", str(home / name))


@pytest.mark.parametrize("call", ["fsync,fdatasync", "pwrite64", "rename", "unlink"])
def test_a_kill_at_any_system_call_loses_nothing_that_was_acknowledged(tmp_path, call):
    step = 5 if call == "pwrite64" else 1
    for nth in range(1, 400, step):
        home = tmp_path / f"{call}-{nth}"
        done = strace(f"{call}:signal=KILL:when={nth}", home=home)
        acknowledged = len(done.stdout.split())
        again = check(home, acknowledged=acknowledged)
        assert again <= acknowledged + 1
        shutil.rmtree(home)
        if done.returncode == 0:
            assert acknowledged == 3
            assert nth > 1
            return
    pytest.fail("no run ended without a kill")


def test_a_failed_sync_stops_the_acknowledgements(tmp_path):
    failed = 0
    for nth in range(1, 12):
        home = tmp_path / str(nth)
        done = strace(f"fsync,fdatasync:error=EIO:when={nth}", home=home)
        if done.returncode == 0:
            break
        assert "Traceback" not in done.stderr or "StoreRefused" in done.stderr
        said = done.stdout.split()
        failed += said[-1:] == ["store_failed"]
        check(home, acknowledged=sum(word.isdigit() for word in said))
    assert failed >= 3


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 4 MiB."""
    assert os.geteuid() == 0, "this test needs root: it mounts a small tmpfs"
    where = tmp_path / "disk"
    where.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(where)], check=True)
    yield where
    subprocess.run(["umount", "-l", str(where)], check=True)


def fill(disk: Path) -> Path:
    """Take all that is free."""
    path = disk / "someone else's file"
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
    return path


def ends(ids: range) -> object:
    return changes(
        ends=[end_row(n) for n in ids],
        job_states={n: state_row(n, State.COMPLETE, attempt=1, tries=1, ended_at=2.0) for n in ids},
    )


def test_a_full_disk_refuses_jobs_and_still_records_completions(small_disk):
    now = [0.0]
    store = SqliteStore(small_disk / "home", reserve=1 << 20, clock=lambda: now[0])
    first = an_add(*range(1, 101))
    first.attempts = [attempt_row(n) for n in range(1, 101)]
    store.commit(first)
    store._ballast.fill()
    assert store._ballast.held
    assert store.can_accept(100)
    assert not store.can_accept(10_000)
    taken = fill(small_disk)
    assert not store.can_accept(1)
    store.commit(ends(range(1, 51)))
    assert not store._ballast.held
    assert not store.can_accept(1)
    assert [job.state for job in store.jobs([50, 51])] == [State.COMPLETE, State.READY]
    taken.unlink()
    now[0] = 60.0
    assert store.can_accept(1)
    store._ballast.fill()
    assert store._ballast.held
    store.close()


def test_a_batch_that_does_not_fit_leaves_nothing_and_may_be_tried_again(small_disk):
    store = SqliteStore(small_disk / "home", reserve=1 << 16)
    store.commit(batch(0))
    store._ballast.fill()
    taken = fill(small_disk)
    large = an_add(*range(1000, 9000), submission="large")
    for _ in range(3):
        with pytest.raises(StoreFull):
            store.commit(large)
    assert store.load().next_job == 11
    assert store.submission("large") is None
    taken.unlink()
    store.commit(large)
    assert store.load().next_job == 9000
    store.close()


def test_a_home_on_a_full_disk_is_refused_and_not_half_made(small_disk):
    taken = fill(small_disk)
    with pytest.raises(StoreRefused):
        SqliteStore(small_disk / "home", reserve=0)
    taken.unlink()
    SqliteStore(small_disk / "home", reserve=0).close()


def test_a_read_only_disk_is_refused(small_disk):
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(StoreRefused, match="not writable"):
        SqliteStore(small_disk, reserve=0)
