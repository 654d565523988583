"""Spools: every byte in its place, and no more memory than they may have."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from rota.launcher.spool import WINDOW, Spool

_KEEP = 256 * 1024


@pytest.fixture
def spool() -> Iterator[Spool]:
    made = Spool(os.memfd_create("test"))
    made.reset(_KEEP)
    yield made
    os.close(made.fd)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    os.set_blocking(read, False)
    yield read, write
    os.close(read)
    os.close(write)


def _pattern(at: int, size: int) -> bytes:
    return b"".join(b"%07d\n" % n for n in range(at // 8, (at + size) // 8))


def _fill(spool: Spool, pipe: tuple[int, int], size: int) -> None:
    end = spool.total + size
    while spool.total < end:
        os.write(pipe[1], _pattern(spool.total, min(32768, end - spool.total)))
        while spool.move(pipe[0]):
            pass


def test_bytes_are_moved_as_they_are(spool: Spool, pipe: tuple[int, int]) -> None:
    assert spool.move(pipe[0]) == 0
    _fill(spool, pipe, 100_000)
    assert os.pread(spool.fd, 200_000, 0) == _pattern(0, 100_000)
    os.write(pipe[1], b"the rest")
    assert spool.drain(pipe[0]) == 8
    assert os.fstat(spool.fd).st_size == spool.total == 100_008


def test_what_no_agent_takes_is_kept_as_head_and_tail_in_bounded_memory(
    spool: Spool, pipe: tuple[int, int]
) -> None:
    for _ in range(100):
        _fill(spool, pipe, 64 * 1024)
        spool.trim(spool.total)
    assert spool.total == 6_553_600
    assert os.pread(spool.fd, spool.head, 0) == _pattern(0, spool.head)
    assert spool.trimmed == spool.total - spool.tail
    assert os.pread(spool.fd, spool.tail, spool.trimmed) == _pattern(spool.trimmed, spool.tail)
    assert os.fstat(spool.fd).st_blocks * 512 <= _KEEP + 64 * 1024


def test_what_the_agent_lacks_is_never_given_up_and_the_job_waits(spool: Spool, pipe: tuple[int, int]) -> None:
    _fill(spool, pipe, WINDOW)
    assert spool.full
    spool.trim(0)
    assert spool.trimmed == 0
    spool.trim(200_000)
    assert not spool.full
    assert spool.trimmed == 200_000
    assert os.pread(spool.fd, spool.head, 0) == _pattern(0, spool.head)
    assert os.pread(spool.fd, 1 << 20, 200_000) == _pattern(200_000, WINDOW - 200_000)


def test_nothing_is_given_up_while_all_fits(spool: Spool, pipe: tuple[int, int]) -> None:
    _fill(spool, pipe, _KEEP)
    spool.trim(spool.total)
    assert spool.trimmed == 0
    assert os.pread(spool.fd, 1 << 20, 0) == _pattern(0, _KEEP)
