"""Whole up to a bound, beyond it head and tail; without what a terminal would have overwritten."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rota.runner.output.capture import Capture, collapsed

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
    assert b"".join(capture.parts()) == expected


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
    assert seen == b"".join(capture.parts())


def test_of_a_progress_bar_the_last_step_is_kept() -> None:
    assert collapsed(b"begin\n 1%\r 50%\r100%\nend\n") == b"begin\n100%\nend\n"
    assert collapsed(b"\r1\r22\r\r333") == b"333"


def test_ends_of_lines_are_not_progress() -> None:
    for text in (b"a\r\nb\r\n", b"waits\r", b"a\r\r\nb", b"\r\n"):
        assert collapsed(text) == text


def test_what_is_not_text_is_kept_byte_for_byte() -> None:
    for data in (b"\x00a\rb", b"ab\xff\rc and more", "é".encode("latin-1") + b" text\rmore"):
        assert collapsed(data) == data


def test_a_character_that_was_cut_does_not_make_it_binary() -> None:
    text = "é 1%\ré 2%é".encode()
    assert collapsed(text[1:-1]) == "é 2%é".encode()[:-1]


@given(st.binary(max_size=200))
def test_collapsing_twice_is_collapsing_once(data: bytes) -> None:
    assert collapsed(collapsed(data)) == collapsed(data)


@given(pieces, st.integers(0, 60))
def test_what_is_said_to_be_missing_was_left_out_and_not_overwritten(chunks: list[bytes], keep: int) -> None:
    capture = Capture(keep)
    for chunk in chunks:
        capture.add(chunk)
    kept, written, head = capture.kept()
    assert written - len(kept) == max(0, capture.total - keep)
    whole = b"".join(chunks)
    if len(whole) > keep:
        assert kept[:head] == collapsed(whole[: keep // 2])
        assert kept[head:] == collapsed(whole[len(whole) - (keep - keep // 2) :])
