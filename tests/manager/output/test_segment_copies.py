"""What nodes send of their outputs: bounded by leases, and told where it could not be written."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rota.core.jobs.outcome import Outcome
from rota.core.output.output_blocks import checksums
from rota.core.output.output_report import OutputReport
from rota.errors import WireError
from rota.manager.output.segment_copies import SegmentCopies

SEGMENT = "n-1-00000001-000001"
KEY = (1, 1, 77)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.getuid() != 0:
        pytest.fail("this test mounts a tmpfs: run it as root, or name it in ROTA_TEST_SKIP")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(tmp_path)], check=True)
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def ended(length: int, offset: int = 0) -> Outcome:
    data = bytes(length)
    return Outcome(
        0,
        segment=SEGMENT,
        offset=offset,
        out_len=length,
        out_total=length,
        kept=OutputReport(checksums(data, b"")),
    )


def test_a_full_disk_of_the_manager_is_told_and_when_there_is_room_it_is_kept(small_disk: Path) -> None:
    pieces = SegmentCopies(small_disk, keep_output=1 << 20)
    for at in range(0, 512 << 10, 64 << 10):
        pieces.keep(KEY, SEGMENT, at, bytes(64 << 10))
    told = pieces.settled(KEY, ended(512 << 10))
    assert told.kept is not None
    assert (told.kept.missing, told.segment, told.out_len, told.out_total) == ("disk_full", "", 0, 512 << 10)
    os.truncate(small_disk / SEGMENT, 0)
    pieces.keep(KEY, SEGMENT, 0, bytes(1000))
    assert pieces.settled(KEY, ended(1000)) == ended(1000)
    pieces.close()


def test_output_that_was_written_in_part_and_then_sent_again_is_whole(tmp_path: Path) -> None:
    pieces = SegmentCopies(tmp_path, keep_output=1 << 20)
    pieces.keep(KEY, SEGMENT, 50, bytes(100))
    pieces.keep(KEY, SEGMENT, 350, bytes(100))  # one between them is missing
    assert pieces.settled(KEY, ended(400, 50)).kept == OutputReport(
        missing="not_sent", message="its node did not send all of its output"
    )
    for _ in range(2):
        for at in range(50, 450, 100):
            pieces.keep(KEY, SEGMENT, at, bytes(100))
    assert pieces.settled(KEY, ended(400, 50)) == ended(400, 50)
    assert pieces.settled(KEY, ended(400, 50)) != ended(400, 50), "and is forgotten"
    pieces.close()


def test_nobody_writes_more_for_a_lease_than_an_attempt_may_keep(tmp_path: Path) -> None:
    pieces = SegmentCopies(tmp_path, keep_output=1 << 20)
    block = bytes(1 << 20)
    for at in range(0, 60 << 20, 1 << 20):
        pieces.keep(KEY, SEGMENT, at, block)
    assert (tmp_path / SEGMENT).stat().st_size == 32 << 20
    for name in ("../n-000001", "n", "n-1", "n-1-00000001-0000010000000"):
        with pytest.raises(WireError):
            pieces.keep((2, 1, 1), name, 0, b"x")
    with pytest.raises(WireError):
        pieces.keep((2, 1, 1), SEGMENT, 1 << 40, b"x")
    pieces.close()
    assert sorted(os.listdir(tmp_path)) == [SEGMENT]


def test_ranges_of_leases_that_are_over_are_forgotten(tmp_path: Path) -> None:
    pieces = SegmentCopies(tmp_path, keep_output=1 << 20)
    for job in range(2000):
        pieces.keep((job, 1, 1), SEGMENT, job, b"x")
        pieces.forget(lambda key: key[0] > 1900)
    assert len(pieces._ranges) <= 1100
    pieces.close()


RUNNER = SEGMENT.rpartition("-")[0]


def test_an_agent_of_the_first_release_does_not_say_whose_output_it_sends(tmp_path: Path) -> None:
    pieces = SegmentCopies(tmp_path, keep_output=1 << 20)
    for at in range(0, 400, 100):  # of two attempts, of 150 and 250 bytes
        pieces.keep_unnamed(RUNNER, 2, SEGMENT, at, bytes(100))
    first, second = ended(150), ended(250, 150)
    assert pieces.settled((1, 1, 77), first) == first
    assert pieces.settled((2, 1, 78), second) == second
    lost = pieces.settled((3, 1, 79), ended(10, 400)).kept
    assert lost is not None
    assert lost.missing == "not_sent"
    pieces.close()


def test_an_agent_of_the_first_release_writes_no_more_than_its_leases_could_need(tmp_path: Path) -> None:
    pieces = SegmentCopies(tmp_path, keep_output=1 << 20)
    pieces.keep_unnamed(RUNNER, 0, SEGMENT, 0, b"x")
    assert not (tmp_path / SEGMENT).exists()
    for number in range(100):
        pieces.keep_unnamed(RUNNER, 1, f"{RUNNER}-{number:06}", 0, bytes(1 << 20))
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) == 32 << 20
    pieces.close()
