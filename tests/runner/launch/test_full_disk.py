"""The disk of an agent is full: nothing starts, what runs goes on, the manager is told, and it recovers."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.leftovers import end_all_of
from tests.runner.manager import FakeManager, ref

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")


@pytest.fixture
def manager() -> Iterator[FakeManager]:
    """Its runners have a disk of 3 MB."""
    with tempfile.TemporaryDirectory(prefix="rota-") as home:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", home], check=True)
        fake = FakeManager(Path(home))
        fake.lasting = True
        try:
            yield fake
        finally:
            fake.finish()
            end_all_of(home)
            subprocess.run(["umount", "-l", home], check=True)


def _fill(manager: FakeManager) -> Path:
    path = manager.home / "fill"
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    return path


def _told(manager: FakeManager) -> list[str]:
    """What its agent has said about the host, in order."""
    return [report.unfit for report in manager.reports if report.unfit is not None]


def test_nothing_starts_until_there_is_room_and_the_manager_is_told_why(manager: FakeManager) -> None:
    manager.begin()
    manager.run("true")  # its journals have pages of their own from now on
    filled = _fill(manager)
    witness = Path(tempfile.gettempdir()) / f"{manager.home.name}.ran"
    spec = manager.spec()
    grants = [manager.grant(number, f"echo {number} >> {witness}", spec) for number in range(2, 9)]
    manager.work(grants, spec, seats=2)
    manager.until(lambda: len(manager.returned) == 1)
    manager.until(lambda: any("the disk of its agent is full" in said for said in _told(manager)))
    manager.until(lambda: len(manager.returned) >= 3)  # it tries the others one by one
    assert not witness.exists()
    assert [done.job for done in manager.ended] == [1]
    filled.unlink()
    manager.until(lambda: _told(manager)[-1] == "")
    back = [grant for grant in grants if ref(grant) in manager.returned]
    again = [manager.grant(grant.job, grant.cmd, spec) for grant in back]
    manager.work(again, spec, seats=2)
    manager.wait_for(list(range(2, 9)))
    assert sorted(witness.read_text().split()) == [str(number) for number in range(2, 9)]
    witness.unlink()


def test_a_job_that_runs_goes_on_and_its_output_is_exact_or_said_to_be_missing(manager: FakeManager) -> None:
    manager.begin()
    gate = Path(tempfile.gettempdir()) / f"{manager.home.name}.gate"
    command = f"while [ ! -e {gate} ]; do sleep 0.05; done; seq %d; exit 3"
    spec = manager.spec()
    small, large = manager.grant(1, command % 100, spec), manager.grant(2, command % 50_000, spec)
    manager.work([small, large], spec, seats=2)
    manager.until(lambda: len(manager.started) == 2)
    manager.run("echo first")  # the file of outputs has a page
    filled = _fill(manager)
    gate.touch()
    short, long = manager.wait_for([1, 2])
    gate.unlink()
    assert (short.outcome.exit_code, long.outcome.exit_code) == (3, 3)
    assert long.outcome.kept is not None
    assert long.outcome.kept.missing == "disk_full"
    expected = "".join(f"{number}\n" for number in range(1, 50_001)).encode()
    assert (long.outcome.out_len, long.outcome.out_total) == (0, len(expected))
    if short.outcome.kept is None or not short.outcome.kept.missing:
        assert manager.output(short)[0] == b"".join(b"%d\n" % number for number in range(1, 101))
    filled.unlink()
    (after,) = manager.run("seq 50000")
    assert manager.output(after)[0] == expected


def test_an_agent_that_comes_back_to_a_full_disk_says_so_when_it_joins(manager: FakeManager) -> None:
    manager.begin()
    manager.run("true")
    _fill(manager)
    spec = manager.spec()
    manager.work([manager.grant(2, "true", spec)], spec)
    manager.until(lambda: _told(manager))
    manager.hang_up()
    assert "the disk of its agent is full" in manager.accept().unfit
