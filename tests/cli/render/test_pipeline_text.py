"""Sessions of pipelines as text: stages, running jobs, the end of what failed jobs print."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.cli.render.pipeline_text import (
    JobCell,
    clock,
    event_line,
    outcome_line,
    output_lines,
    running_lines,
    stage_lines,
)
from rota.cli.render.status_text import Canvas
from rota.cli.render.text import cells, unsafe
from rota.wire.pipeline_views import PipelineEvent, ProgressView, StageSums


def sums(**counts: int) -> StageSums:
    words = ("processed", "skipped", "failed", "blocked", "terminated", "waiting", "running")
    return StageSums(**{word: counts.get(word, 0) for word in words})


def job(element: str, stage: str = "build", run_s: float = 7.0, progress: ProgressView | None = None) -> JobCell:
    return JobCell(element, stage, run_s, progress)


_STAGES = {
    "fetch": sums(processed=9_000, skipped=1_000),
    "build": sums(processed=40, failed=2, blocked=1_230, waiting=8_724, running=4),
}


def test_one_line_a_stage_at_80_columns() -> None:
    assert stage_lines(_STAGES, Canvas(80)) == [
        "STAGE                         DONE  SKIPPED  FAILED  BLOCKED  WAITING  RUNNING",
        "fetch  ████████████████████  9,000    1,000       .        .        .        .",
        "build  ██▌░░░░░░░░░░░░░░░░░     40        .       2    1,230    8,724        4",
    ]


def test_the_bar_makes_room_for_a_column_that_is_rare() -> None:
    stages = _STAGES | {"push": sums(terminated=10_000)}
    head, *_rest, push = stage_lines(stages, Canvas(79))
    assert head.split() == "STAGE DONE SKIPPED FAILED BLOCKED TERMINATED WAITING RUNNING".split()
    assert push.split()[-3:] == ["10,000", ".", "."]


def test_where_nothing_may_be_cut_there_is_no_bar() -> None:
    assert stage_lines({"a-stage-with-a-very-long-name": sums(processed=1)}, Canvas())[1].split() == [
        "a-stage-with-a-very-long-name", "1", ".", ".", ".", ".", "."
    ]  # fmt: skip


@given(
    st.dictionaries(st.text(min_size=1, max_size=40), st.integers(0, 10**7), min_size=1, max_size=5),
    st.integers(20, 200),
    st.booleans(),
)
def test_lines_of_stages_fit_and_are_one_line_each(names: dict[str, int], columns: int, many: bool) -> None:
    stages = {name: sums(processed=number, terminated=number * many) for name, number in names.items()}
    lines = stage_lines(stages, Canvas(columns))
    assert len(lines) == 1 + len(stages)
    assert all(cells(line) <= columns and not unsafe().search(line) for line in lines)


def test_running_jobs_are_in_two_columns_of_80_and_in_five_of_200() -> None:
    jobs = [job(f"element-{n}", run_s=60.0 * n) for n in range(7)]
    assert running_lines(jobs, 7, columns=80, lines=9, colour=False) == [
        " 0:00 build element-0                     1:00 build element-1",
        " 2:00 build element-2                     3:00 build element-3",
        " 4:00 build element-4                     5:00 build element-5",
        " 6:00 build element-6",
    ]
    wide = running_lines(jobs, 7, columns=200, lines=9, colour=False)
    assert [len(line.split("build")) - 1 for line in wide] == [5, 2]


def test_what_has_no_room_is_counted() -> None:
    jobs = (job(f"e{n}") for n in range(10_000))
    lines = running_lines(jobs, 10_000, columns=80, lines=3, colour=False)
    assert lines[2:] == ["… and 9,996 jobs more running"]
    assert running_lines(iter([job("a"), job("b"), job("c")]), 3, columns=40, lines=1, colour=False) == [
        "3 jobs running"
    ]


def test_progress_is_shown_behind_the_name_which_keeps_half_of_the_room() -> None:
    progress = ProgressView(done=34, of=120, text="compiling main.c")
    assert job("app", progress=progress).text(60) == " 0:07 build app 34/120 compiling main.c"
    narrow = job("a-long-name-of-an-element", progress=progress).text(38)
    assert cells(narrow) == 38
    assert narrow.startswith(" 0:07 build a-long-name-")
    assert " 34/120" in narrow
    assert job("app", progress=ProgressView(done=3)).text(60) == " 0:07 build app 3"


@given(st.text(max_size=60), st.text(max_size=60), st.integers(8, 120), st.integers(1, 4))
def test_running_jobs_never_leave_their_columns(name: str, said: str, columns: int, lines: int) -> None:
    jobs = [job(name, progress=ProgressView(done=1, of=2, text=said))] * 9
    drawn = running_lines(jobs, 9, columns=columns, lines=lines, colour=False)
    assert 1 <= len(drawn) <= lines
    assert all(cells(line) <= columns and not unsafe().search(line) for line in drawn)


def test_hostile_names_are_escaped() -> None:
    (line,) = running_lines([job("a\x1b[2Jb\n")], 1, columns=80, lines=1, colour=False)
    assert line == " 0:07 build a\\e[2Jb\\n"


@pytest.mark.parametrize(
    ("seconds", "shown"), [(-1, "0:00"), (59.9, "0:59"), (61, "1:01"), (3599, "59:59"), (90_061, "25:01:01")]
)
def test_a_clock_counts_whole_seconds(seconds: float, shown: str) -> None:
    assert clock(seconds) == shown


def test_the_end_of_an_output_is_what_a_terminal_would_show_of_it() -> None:
    printed = b"half a line\n\x1b[31merror:\x1b[0m no\tway\r\n 10%\r 20%\r100%\r\n\x1b]0;title\x07\x07 bell\n\n"
    assert output_lines(printed, most=9, whole=False) == ["error: no       way", "100%", "\\x07 bell"]
    assert output_lines(printed, most=1, whole=True) == ["\\x07 bell"]
    assert output_lines(b"one line that is not whole", most=9, whole=False) == ["one line that is not whole"]
    assert output_lines(b"", most=9, whole=True) == []


@given(st.binary(max_size=80))
def test_nothing_that_a_job_prints_controls_the_terminal(printed: bytes) -> None:
    assert not any(unsafe().search(line) for line in output_lines(printed, most=10, whole=True))


def test_an_event_is_a_line_with_what_is_known() -> None:
    at = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
    time = f"{at.astimezone():%H:%M:%S}"

    def line(event: str, element: str | None, stage: str | None, **more: object) -> str:
        known = {"job": None, "attempt": None, "outcome": None} | more
        said = PipelineEvent(event=event, element=element, stage=stage, at=at, **known)  # type: ignore[arg-type]
        return event_line(said)

    assert line("started", "a", "build", job=7, attempt=2) == f"{time} started build a (job 7, attempt 2)"
    assert line("ended", "a", "build", job=7, attempt=1, outcome="ok") == f"{time} ok build a (job 7)"
    assert line("blocked", "b", "push", outcome="blocked", by="a") == f"{time} blocked push b because of a"
    assert line("suspended", None, None) == f"{time} suspended session"
    assert line("ended", None, "clean", outcome="ok", job=9) == f"{time} ok clean (job 9)"


def test_outcomes_are_counted_in_one_order() -> None:
    elements = {"a": "blocked", "b": "ok", "c": "failed", "d": "ok"}
    assert outcome_line(elements, 80.2) == "4 elements: 2 ok, 1 failed, 1 blocked; 1m20s"
    assert outcome_line({}, 1.0) == "0 elements; 1.0s"
