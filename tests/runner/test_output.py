"""Whole up to a bound, beyond it head and tail."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rota.runner.output import Capture

pieces = st.lists(st.binary(min_size=1, max_size=30), max_size=30)


@given(pieces, st.integers(0, 60))
def test_kept_is_the_whole_or_its_two_ends(chunks: list[bytes], keep: int) -> None:
    capture = Capture(keep)
    for chunk in chunks:
        capture.add(chunk)
    whole = b"".join(chunks)
    assert capture.total == len(whole)
    half = keep // 2
    expected = whole if len(whole) <= keep else whole[:half] + whole[len(whole) - (keep - half) :]
    assert capture.kept() == expected


@given(pieces, st.integers(1, 60), st.integers(1, 10))
def test_reading_on_gives_every_kept_byte_at_its_offset(chunks: list[bytes], keep: int, limit: int) -> None:
    capture = Capture(keep)
    whole = b"".join(chunks)
    for chunk in chunks:
        capture.add(chunk)
    offset, seen = 0, b""
    while offset < capture.total:
        at, data = capture.read(offset, limit)
        assert data
        assert whole[at : at + len(data)] == data
        seen += data
        offset = at + len(data)
    assert seen == capture.kept()
