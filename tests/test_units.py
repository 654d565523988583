"""Durations and sizes: what is written is what is meant, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.errors import BadInput
from rota.units import (
    MAX_BYTES,
    MAX_SECONDS,
    about_duration,
    about_size,
    format_duration,
    format_size,
    parse_duration,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("2m", 120),
        ("1h30m", 5400),
        ("2d", 172_800),
        ("1-12:00:00", 129_600),
        ("12:00:00", 43_200),
        ("0.5s", 0.5),
        ("1.1m", 66),
        ("100:00:01", 360_001),
        (" 2H ", 7200),
    ],
)
def test_times_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [("500M", 500 << 20), ("4G", 4 << 30), ("1.5T", 3 << 39), ("1k", 1024), ("7B", 7), ("4GiB", 4 << 30)],
)
def test_sizes_are_read_as_powers_of_1024(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "hint"),
    [("90", "90s for seconds"), ("1:30", "1h30m or 1m30s"), ("0", "0s"), ("1.5", "1.5h")],
)
def test_a_bare_time_is_refused_with_what_was_likely_meant(text: str, hint: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_duration(text)
    assert hint in refused.value.hint


@pytest.mark.parametrize(
    ("text", "hint"), [("500", "500M for megabytes"), ("4", "4G for gigabytes"), ("2000000", "2000000B for bytes")]
)
def test_a_bare_size_is_refused_with_what_was_likely_meant(text: str, hint: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_size(text)
    assert hint in refused.value.hint


@pytest.mark.parametrize(
    "text",
    ["", " ", "-1s", "s", "1m1h", "1h1h", "1x", "1-24:00:00", "1:60:00", "1-2", "inf", "nan", "1e3s", "٣s", "1 h",
     "1_0s", "9" * 13 + "s", "1d" * 50],
)  # fmt: skip
def test_what_is_not_a_time_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        parse_duration(text)


@pytest.mark.parametrize(
    "text", ["", "G", "-1G", "1GG", "1.G", "nanG", "1e3G", "٣G", "1025P", "1X", "1 G", "0x1G"]
)
def test_what_is_not_a_size_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        parse_size(text)


@given(st.integers(0, MAX_SECONDS * 1000))
def test_times_survive_a_round_trip(milliseconds: int) -> None:
    seconds = milliseconds / 1000
    assert parse_duration(format_duration(seconds)) == pytest.approx(seconds, abs=1e-6)


@given(st.integers(0, MAX_SECONDS))
def test_whole_seconds_survive_exactly(seconds: int) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@given(st.integers(0, MAX_BYTES) | st.integers(0, 4096).map(lambda n: n << 28))
def test_sizes_survive_a_round_trip_exactly(size: int) -> None:
    assert parse_size(format_size(size)) == size


@given(st.text(max_size=30) | st.from_regex(r"[0-9.:dhmsGMK -]{1,20}"))
def test_any_text_is_a_value_or_a_refusal_in_one_printable_line(text: str) -> None:
    for parse, most in ((parse_duration, MAX_SECONDS), (parse_size, MAX_BYTES)):
        try:
            assert 0 <= parse(text) <= most
        except BadInput as refused:
            error = refused
        else:
            continue
        assert str(error).isprintable()
        assert error.hint
        assert len(str(error)) < 250


@given(st.floats(0, 1e10), st.integers(0, MAX_BYTES))
def test_what_tables_show_is_short(seconds: float, size: int) -> None:
    assert len(about_duration(seconds)) < 12
    assert len(about_size(size)) < 8
