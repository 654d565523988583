"""Any byte of a segment flipped, any cut: a reader gets verified bytes, and is told what is missing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rota.core.output.output_blocks import Output, block_size, blocks, checksums
from rota.core.output.output_report import OutputReport
from rota.store import segments
from rota.store.segments import Missing

SEGMENT = "r-1-000001"

_LONG = bytes(range(251)) * 300
streams = st.one_of(st.binary(max_size=40), st.integers(1, 60_000).map(lambda n: _LONG[:n]))


def kept(directory: Path, before: bytes, out: bytes, err: bytes, *, sums: bool = True) -> Output:
    (directory / SEGMENT).write_bytes(before + out + err + b"the output of somebody else")
    known = OutputReport(checksums(out, err)) if sums else None
    return Output(SEGMENT, len(before), len(out), len(err), len(out), len(err), known)


def pread(directory: Path) -> segments.Pread:
    def read(segment: str, offset: int, length: int) -> bytes:
        with (directory / segment).open("rb") as file:
            return segments.pread_all(file.fileno(), length, offset)

    return read


def read_all(directory: Path, output: Output, stream: int, limit: int) -> tuple[list[tuple[int, bytes]], set[str]]:
    """(offset, bytes) of what was given, and why the rest was not."""
    offset, given_, codes = 0, [], set()
    while offset < output.length(stream):
        span = segments.read(pread(directory), output, stream, offset=offset, limit=limit)
        assert span.data or span.lost, "a reader would ask for ever"
        assert bool(span.lost) == (span.missing is not None)
        given_.append((offset, span.data))
        offset += len(span.data) + span.lost
        if span.missing:
            codes.add(span.missing.code)
    assert offset == output.length(stream)
    return given_, codes


@given(before=st.binary(max_size=9), out=streams, err=streams, limit=st.integers(1, 70_000))
def test_what_is_whole_is_read_byte_for_byte_in_parts_of_any_size(
    tmp_path_factory: pytest.TempPathFactory, before: bytes, out: bytes, err: bytes, limit: int
) -> None:
    directory = tmp_path_factory.getbasetemp()
    limit = max(limit, (len(out) + len(err)) // 50)
    for sums in (True, False):
        output = kept(directory, before, out, err, sums=sums)
        assert list(segments.check(directory, [("it", output)])) == []
        for stream, data in ((1, out), (2, err)):
            parts, codes = read_all(directory, output, stream, limit)
            assert b"".join(part for _, part in parts) == data
            assert not codes


@given(data=st.data(), out=streams, err=streams)
def test_any_flipped_byte_is_told_and_never_printed(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, out: bytes, err: bytes
) -> None:
    directory = tmp_path_factory.getbasetemp()
    output = kept(directory, b"before", out, err)
    if not out + err:
        return
    at = data.draw(st.integers(0, len(out + err) - 1))
    text = bytearray((directory / SEGMENT).read_bytes())
    text[6 + at] ^= data.draw(st.integers(1, 255))
    (directory / SEGMENT).write_bytes(text)
    ((name, missing),) = segments.check(directory, [("it", output)])
    assert (name, missing.code) == ("it", "damaged")
    told = set()
    for stream, right in ((1, out), (2, err)):
        parts, codes = read_all(directory, output, stream, 20_000)
        told |= codes
        assert all(right[offset : offset + len(part)] == part for offset, part in parts)
        lost = len(right) - sum(len(part) for _, part in parts)
        assert lost <= block_size(len(right)), "one byte costs its block, not more"
    assert told == {"damaged"}


@given(data=st.data(), out=streams, err=streams, sums=st.booleans())
def test_any_cut_is_told_and_what_is_there_is_right(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, out: bytes, err: bytes, sums: bool
) -> None:
    directory = tmp_path_factory.getbasetemp()
    output = kept(directory, b"before", out, err, sums=sums)
    if not out + err:
        return
    cut = data.draw(st.integers(0, 6 + len(out + err) - 1))
    os.truncate(directory / SEGMENT, cut)
    ((_, missing),) = segments.check(directory, [("it", output)])
    assert missing.code == "cut"
    told = set()
    for stream, right in ((1, out), (2, err)):
        parts, codes = read_all(directory, output, stream, 20_000)
        told |= codes
        assert all(right[offset : offset + len(part)] == part for offset, part in parts)
    assert told == {"cut"}


def test_a_segment_that_is_gone_or_no_file_is_told(tmp_path: Path) -> None:
    output = kept(tmp_path, b"", b"out", b"err")
    (tmp_path / SEGMENT).unlink()
    assert [missing.code for _, missing in segments.check(tmp_path, [("it", output)])] == ["gone"]
    (tmp_path / SEGMENT).mkdir()
    assert [missing.code for _, missing in segments.check(tmp_path, [("it", output)])] == ["unreadable"]
    (tmp_path / SEGMENT).rmdir()
    os.mkfifo(tmp_path / SEGMENT)
    assert [missing.code for _, missing in segments.check(tmp_path, [("it", output)])] == ["unreadable"]


def test_what_could_not_be_kept_is_told_by_its_row(tmp_path: Path) -> None:
    output = Output("", 0, 0, 0, 400_000, 7, OutputReport(missing="disk_full", message="the disk was full"))
    why = Missing("disk_full", "the disk was full")
    assert list(segments.check(tmp_path, [("it", output)])) == [("it", why)]
    assert segments.read(pread(tmp_path), output, 1, offset=0, limit=10) == (b"", 400_000, why)
    assert segments.read(pread(tmp_path), output, 2, offset=0, limit=10) == (b"", 7, why)
    silent = replace(output, err_total=0)
    assert segments.read(pread(tmp_path), silent, 2, offset=0, limit=10) == (b"", 0, None), "nothing was written"
    unknown = replace(silent, out_total=0)
    assert segments.read(pread(tmp_path), unknown, 2, offset=0, limit=10) == (b"", 0, why)


def test_lengths_that_a_liar_claims_cost_nothing(tmp_path: Path) -> None:
    (tmp_path / SEGMENT).write_bytes(b"short")
    output = Output(SEGMENT, 0, 1 << 61, 0, 1 << 61, 0, OutputReport((1,)))
    span = segments.read(pread(tmp_path), output, 1, offset=0, limit=1 << 20)
    assert (span.data, span.lost) == (b"", 1 << 61)


def test_a_large_output_has_few_blocks() -> None:
    assert [blocks(n) for n in (0, 1, 16 << 10, (16 << 10) + 1)] == [0, 1, 1, 2]
    assert blocks(16 << 20) == blocks(1 << 30) == 1024
