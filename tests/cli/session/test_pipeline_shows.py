"""What is said about thousands of elements that one failure blocks."""

from __future__ import annotations

import pytest

from rota.cli.session.pipeline_board import Board
from rota.cli.session.pipeline_failures import Failures
from rota.cli.session.pipeline_screen import ScreenShow
from rota.cli.session.pipeline_shows import LinesShow
from rota.client.blocking import Client
from rota.wire.pipeline_views import PipelineEvent, PipelineItem
from tests.cli.session.test_pipeline_board import event

STAGES = ("build", "push")


class Unasked(Failures):
    """Nothing has failed that has a job, so the manager is asked nothing."""

    def __init__(self) -> None:
        super().__init__(Client.__new__(Client))


def blocked(first: int, last: int, *, by: str = "base") -> PipelineItem:
    events: list[PipelineEvent] = []
    for element in range(first, last):
        for stage in STAGES:
            each = event("blocked", f"e{element}", job=None, outcome="blocked")
            each.stage, each.by = stage, by
            events.append(each)
    return PipelineItem(session=1, events=events)


def test_lines_name_the_first_and_say_that_there_are_more(capsys: pytest.CaptureFixture[str]) -> None:
    show = LinesShow(Board(), Unasked())
    for first in range(0, 3000, 100):
        show.take(blocked(first, first + 100))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 21
    assert "blocked build e0 because of base" in lines[0]
    assert lines[-1] == "(what else base blocks is counted at the end)"
    show.take(blocked(0, 1, by="other"))
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_screen_has_room_for_other_messages(capsys: pytest.CaptureFixture[str]) -> None:
    show = ScreenShow(Board(), Unasked())
    for first in range(0, 10_000, 20):
        show.take(blocked(first, first + 20))
        show.leave()
    lines = [line for line in capsys.readouterr().out.splitlines() if "because base failed" in line]
    assert "e0, e1, e2 and 17 more" in lines[0]
    assert 3 < len(lines) < 8


def test_a_screen_names_each_of_a_few_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    show = ScreenShow(Board(), Unasked())
    for element in range(4):
        show.take(blocked(element, element + 1))
        show.leave()
    assert capsys.readouterr().out.count("because base failed") == 4
