"""A full disk, no descriptors, no processes: leases are handed back, ends are still told, it recovers."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from rota.runner.output.segments import Segments
from tests.runner.manager import FakeManager, ref

UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


def test_a_full_disk_keeps_jobs_from_starting_and_they_start_when_there_is_room(manager: FakeManager) -> None:
    process = manager.begin()
    manager.run("true")
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    spec = manager.spec()
    grant = manager.grant(2, "true", spec)
    manager.work([grant], spec)
    manager.until(lambda: manager.returned == [ref(grant)])
    assert [done.job for done in manager.ended] == [1]
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, UNLIMITED)
    again = manager.grant(2, "true", spec)
    manager.work([again], spec)
    (done,) = manager.wait_for([2])
    assert done.outcome.exit_code == 0


def test_output_that_cannot_be_written_does_not_lose_the_end(manager: FakeManager) -> None:
    process = manager.begin()
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
    (done,) = manager.run("head -c 300000 /dev/zero; exit 3")
    assert done.outcome.exit_code == 3
    assert done.outcome.kept is not None
    assert done.outcome.kept.missing == "not_written"
    assert (done.outcome.out_len, done.outcome.out_total) == (0, 300000)
    (after,) = manager.run("echo fits")
    assert manager.output(after)[0] == b"fits\n"


def test_a_segment_that_was_removed_or_cut_takes_no_later_output_with_it(manager: FakeManager) -> None:
    manager.begin()
    for spoil in (
        Path.unlink,
        lambda path: os.truncate(path, 2),
        lambda path: path.write_bytes(b"something else"),
    ):
        (first,) = manager.run("echo before")
        spoil(manager.home / "output" / first.outcome.segment)
        (after,) = manager.run("echo after")
        assert after.outcome.segment != first.outcome.segment
        assert manager.output(after)[0] == b"after\n"


def test_without_descriptors_leases_are_handed_back(manager: FakeManager) -> None:
    process = manager.begin()
    in_use = len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (in_use, in_use))
    spec = manager.spec()
    grant = manager.grant(1, "true", spec)
    manager.work([grant], spec)
    manager.until(lambda: manager.returned == [ref(grant)])
    assert manager.ended == []


def test_a_low_limit_of_descriptors_is_raised_when_seats_need_it(manager: FakeManager) -> None:
    process = manager.begin()
    in_use = len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
    hard = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)[1]
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (in_use + 6, hard))
    manager.run(*["sleep 0.1"] * 6, seats=6)


def test_segments_rotate_and_never_overlap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.runner.output.segments.ROTATE_OVER", 10)
    segments = Segments(str(tmp_path / "output"), "r")
    places = [segments.append(b"abcdef") for _ in range(4)]
    assert places == [("r-000001", 0), ("r-000001", 6), ("r-000002", 0), ("r-000002", 6)]
    assert (tmp_path / "output" / "r-000001").stat().st_mode & 0o777 == 0o600
