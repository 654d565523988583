"""The region of a terminal that is drawn again and again, below messages that scroll by."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rota.cli.render.text import harmless
from rota.cli.session.pipeline_screen import Region
from tests.picture import Picture

_LINE = st.text("abc ", min_size=1, max_size=19).map(lambda text: text.rstrip() or "x")


def draw(picture: Picture, region: Region, messages: list[str], lines: list[str]) -> None:
    said = [harmless(message) for message in messages]
    picture.write(region.picture(said, [harmless(line) for line in lines], columns=picture.cols))


@given(st.lists(st.tuples(st.lists(_LINE, max_size=4), st.lists(_LINE, max_size=6)), max_size=12))
def test_messages_stay_in_order_above_what_was_drawn_last(steps: list[tuple[list[str], list[str]]]) -> None:
    picture, region = Picture(rows=8, cols=20), Region()
    said: list[str] = []
    for messages, lines in steps:
        draw(picture, region, messages, lines)
        said += messages
        assert picture.lines == [*said, *lines]


def test_a_message_that_is_wider_than_the_terminal_is_wrapped_and_kept() -> None:
    picture, region = Picture(rows=6, cols=10), Region()
    draw(picture, region, [], ["stage 1", "stage 2"])
    draw(picture, region, ["0123456789abc"], ["stage 1", "stage 2"])
    assert picture.lines == ["0123456789", "abc", "stage 1", "stage 2"]


def test_lines_that_a_narrower_terminal_has_wrapped_are_erased() -> None:
    picture, region = Picture(rows=8, cols=10), Region()
    region.picture([], [harmless("x" * 19), harmless("y")], columns=20)
    picture.write("kept\r\n" + "x" * 19 + "\r\ny")  # as the terminal shows them after it became narrower
    draw(picture, region, [], ["stage 1"])
    assert picture.lines == ["kept", "stage 1"]
