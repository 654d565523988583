"""What counts as progress in a line of a job, and what is left of a hostile one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.attempts.leases import JobProgress
from rota.core.attempts.progress_lines import read_progress, sane_progress

_KEY = (1, 2, 3)


@pytest.mark.parametrize(
    ("line", "done", "of", "text"),
    [
        (b"3/10 linking", 3, 10, "linking"),
        (b"3 / 10", 3, 10, ""),
        (b" 7 files read ", 7, None, "files read"),
        (b"0.5/1.25 half", 0.5, 1.25, "half"),
        (b"1/2 a\tb \x1b[31mred\x07 \xff", 1, 2, "a b [31mred \N{REPLACEMENT CHARACTER}"),
    ],
)
def test_a_line_says_how_much_of_how_much_and_what(line: bytes, done: float, of: float | None, text: str) -> None:
    assert read_progress(line, _KEY) == JobProgress(*_KEY, done, of, text)


@pytest.mark.parametrize("line", [b"", b"linking", b"-1/2", b"1e9", b"1/x", b"3/10linking", b"9" * 20, b"\xff"])
def test_other_lines_say_nothing(line: bytes) -> None:
    assert read_progress(line, _KEY) is None


@given(st.binary(max_size=300))
def test_what_is_read_of_any_line_is_short_and_can_be_printed(line: bytes) -> None:
    told = read_progress(b"1/2 " + line, _KEY)
    assert told is None or (told.text.isprintable() and len(told.text) <= 100)


@pytest.mark.parametrize(("done", "of"), [(float("nan"), None), (-1.0, None), (1.0, float("inf")), (1e300, 1.0)])
def test_numbers_of_a_runner_that_cannot_be_true_are_dropped(done: float, of: float | None) -> None:
    assert sane_progress(JobProgress(*_KEY, done, of)) is None


def test_texts_of_a_runner_are_cut_and_cleaned() -> None:
    told = sane_progress(JobProgress(*_KEY, 1.0, 2.0, "\x1b]0;title\x07" + "x" * 1000))
    assert told is not None
    assert told.text.startswith("]0;title xx")
    assert len(told.text) == 100
