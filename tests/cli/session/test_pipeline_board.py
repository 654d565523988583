"""What is known of a session while it is watched: its running jobs, and a time that stands still with it."""

from __future__ import annotations

from datetime import UTC, datetime

from rota.cli.session.pipeline_board import Board
from rota.wire.pipeline_views import (
    PipelineEvent,
    PipelineItem,
    PipelineView,
    ProgressView,
    QuestionView,
    RunningView,
)

_AT = datetime(2026, 1, 1, tzinfo=UTC)


def view(*running: RunningView, state: str = "running", elapsed_s: float = 0.0) -> PipelineView:
    return PipelineView(
        session=1, file="/p.yaml", user="u", state=state, total=2, stages={}, elements={}, elapsed_s=elapsed_s,
        started_at=_AT, running=[*running],
        question=QuestionView(element="a", stage="build", job=7) if state == "asking" else None,
    )  # fmt: skip


def event(what: str, element: str | None = "a", *, job: int | None = 7, outcome: str | None = None,
          progress: ProgressView | None = None) -> PipelineEvent:  # fmt: skip
    stage = None if element is None else "build"
    return PipelineEvent(
        event=what, element=element, stage=stage, job=job, attempt=1, outcome=outcome, at=_AT, progress=progress
    )


def board(*running: RunningView, now: float = 100.0, elapsed_s: float = 0.0) -> Board:
    made = Board()
    made.take(PipelineItem(session=1, view=view(*running, elapsed_s=elapsed_s)), now)
    return made


def happen(board: Board, now: float, *events: PipelineEvent, view: PipelineView | None = None) -> None:
    board.take(PipelineItem(session=1, events=[*events], view=view), now)


def run_s(board: Board, now: float) -> list[float]:
    return [board.elapsed_s(now) - job.began_s for job in board.running.values()]


def test_the_time_of_a_session_and_of_its_jobs_stands_still_while_it_is_paused() -> None:
    made = board()
    happen(made, 102.0, event("started"))
    happen(made, 105.0, event("suspended", None), event("suspended"))
    assert (made.state, made.elapsed_s(165.0), run_s(made, 165.0)) == ("paused", 5.0, [3.0])
    happen(made, 165.0, event("resumed", None), event("resumed"))
    assert (made.state, made.elapsed_s(167.0), run_s(made, 167.0)) == ("running", 7.0, [5.0])


def test_who_comes_later_sees_the_jobs_that_run_with_their_times() -> None:
    job = RunningView(element="a", stage="build", job=7, attempt=2, run_s=30.0, progress=ProgressView(done=1))
    made = board(job, elapsed_s=50.0)
    assert (made.elapsed_s(110.0), run_s(made, 110.0)) == (60.0, [40.0])
    assert next(iter(made.running.values())).progress == ProgressView(done=1)


def test_a_session_that_was_paused_before_stays_where_it_is() -> None:
    made = Board()
    made.take(PipelineItem(session=1, view=view(state="paused", elapsed_s=9.0)), 100.0)
    assert made.elapsed_s(500.0) == 9.0
    happen(made, 500.0, event("resumed", None))
    assert made.elapsed_s(501.0) == 10.0


def test_a_question_is_open_until_the_session_goes_on() -> None:
    made = board()
    happen(made, 101.0, event("started"), event("ended", outcome="failed"), event("asked", outcome="failed"),
           view=view(state="asking", elapsed_s=1.0))  # fmt: skip
    assert made.question == QuestionView(element="a", stage="build", job=7)
    assert made.failed == {("a", "build"): 7}
    happen(made, 109.0, event("retried"), event("resumed", None))
    assert made.question is None
    assert made.failed == {}
    assert made.elapsed_s(110.0) == 2.0


def test_what_ended_or_is_retried_runs_no_longer_and_progress_is_of_what_runs() -> None:
    made = board()
    happen(made, 101.0, event("started"), event("started", "b", job=8))
    half = ProgressView(done=1, of=2, text="x")
    happen(made, 102.0, event("progress", progress=half), event("progress", "c", progress=half))
    assert {name: job.progress for (name, _stage), job in made.running.items()} == {"a": half, "b": None}
    happen(made, 103.0, event("retried"), event("ended", "b", job=8, outcome="ok"))
    assert made.running == {}
    happen(made, 104.0, event("started"))
    assert run_s(made, 104.0) == [0.0]
    assert made.running["a", "build"].progress is None
