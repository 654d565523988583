"""Stacked bars of how machines spent their time, in the terminal and as pictures."""

from __future__ import annotations

import zlib
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.cli.render.chart_style import ChartStyle
from rota.cli.render.text import cells
from rota.cli.render.usage_parts import (
    PARTS,
    Window,
    busy_share,
    by_key,
    contract_rows,
    part_of,
    parts,
    windows_of,
)
from rota.cli.render.usage_plot import plot, shares, window_for
from rota.pictures.rendering import rendered_bars
from rota.pictures.stacked import Panel, Stack, StackedBars
from rota.wire.usage_views import MachineUsageRow, MachineUsageView

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def row(condition: str, usage: str, state: str, seconds: float = 1.0, day: int = 0) -> MachineUsageRow:
    at = START + day * DAY
    return MachineUsageRow(host="a", condition=condition, usage=usage, state=state, seconds=seconds, at=at)


@pytest.mark.parametrize(
    ("what", "part"),
    [
        (("automated", "running", "alive"), "busy"), (("automated", "scheduled", "drained"), "busy"),
        (("automated", "installing", "alive"), "installing"), (("automated", "waiting", "alive"), "installing"),
        (("automated", "idle", "alive"), "idle"), (("automated", "pending", "alive"), "idle"),
        (("automated", "idle", "drained"), "down"), (("automated", "running", "away"), "down"),
        (("automated", "idle", "asleep"), "asleep"), (("manual", "running", "alive"), "manual"),
        (("broken", "idle", "alive"), "broken"), (("removed", "idle", "unknown"), "removed"),
        (("automated", "idle", "unknown"), "unknown"), (("unknown", "unknown", "unknown"), "unknown"),
    ],
)  # fmt: skip
def test_every_state_is_one_part(what: tuple[str, str, str], part: str) -> None:
    assert part_of(row(*what)) == part


def view() -> MachineUsageView:
    rows = [
        row("automated", "running", "alive", 43_200.0), row("automated", "idle", "away", 21_600.0),
        row("automated", "idle", "alive", 21_600.0), row("broken", "idle", "alive", 86_400.0, day=1),
    ]  # fmt: skip
    edges = [START, START + DAY, START + 2 * DAY]
    return MachineUsageView(since=edges[0], until=edges[2], rows=rows, machines={"a": 1}, edges=edges)


def test_rows_of_the_contract_sum_over_days_and_states() -> None:
    assert contract_rows(view()) == [
        {"host": "a", "condition": "automated", "usage": "running", "seconds": 43_200.0},
        {"host": "a", "condition": "automated", "usage": "idle", "seconds": 43_200.0},
        {"host": "a", "condition": "broken", "usage": "idle", "seconds": 86_400.0},
    ]


def test_small_amounts_are_not_lost_in_a_sum() -> None:
    assert parts([row("automated", "idle", "alive", 0.1)] * 10) == {"idle": 1.0}


def test_sleep_is_capacity_and_what_is_broken_is_not() -> None:
    assert busy_share({"busy": 1.0, "idle": 1.0, "asleep": 2.0, "down": 9.0, "broken": 9.0}) == 0.25
    assert busy_share({"broken": 1.0}) is None


def test_a_bar_for_each_day() -> None:
    first, second = (f"{(START + day * DAY).astimezone():%Y-%m-%d}" for day in (0, 1))
    lines = plot(windows_of(view()), ChartStyle(width=38), names={"a": "a"})
    assert lines == [
        "a",
        f"{first} ██████████·····!!!!!  67 %",
        f"{second} bbbbbbbbbbbbbbbbbbbb     -",
        "",
        "█ busy  · idle  ! down  b broken",
    ]
    plain = plot(windows_of(view()), ChartStyle(width=38, plain=True), names={})
    assert plain[0] == f"{first} ##########.....!!!!!  67 %"
    assert all(line.isascii() for line in plain)


@given(st.dictionaries(st.sampled_from(PARTS), st.floats(0.001, 1e9), min_size=1), st.integers(1, 200))
def test_the_parts_of_a_bar_fill_it(seconds: dict[str, float], columns: int) -> None:
    assert sum(shares(seconds, columns).values()) == columns


@given(st.dictionaries(st.sampled_from(PARTS), st.floats(0.001, 1e9)), st.integers(40, 200))
def test_no_line_is_wider_than_the_screen(seconds: dict[str, float], width: int) -> None:
    window = Window(START, START + DAY, {part: seconds[part] for part in PARTS if part in seconds})
    assert max(map(cells, plot({"a": [window]}, ChartStyle(width=width), names={}))) <= width


def test_pictures_show_each_part_of_each_day() -> None:
    panels = [
        Panel(f"<{key}>", [Stack(f"{each.at:%d}", each.seconds) for each in its])
        for key, its in windows_of(view()).items()
    ]
    picture = StackedBars(title="T", note="n", panels=panels, parts=PARTS)
    tree = ElementTree.fromstring(rendered_bars(picture, ".svg"))
    said = [each.text for each in tree.iter("{http://www.w3.org/2000/svg}title")]
    assert said == ["01: busy 50.0 %", "01: idle 25.0 %", "01: down 25.0 %", "02: broken 100.0 %"]
    png = rendered_bars(picture, ".png")
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    start = png.index(b"IDAT") + 4
    zlib.decompress(png[start : png.index(b"IEND") - 8])
    nothing = StackedBars(title="T", panels=[], parts=PARTS)
    assert b"nothing is known" in rendered_bars(nothing, ".svg")
    assert rendered_bars(nothing, ".png")


def test_a_key_without_rows_has_no_time() -> None:
    edges = [START, START + DAY]
    empty = MachineUsageView(since=START, until=START + DAY, rows=[], machines={"a": 1}, edges=edges)
    assert by_key(empty) == {"a": {}}
    assert plot(windows_of(empty), ChartStyle(width=40), names={})[0].split()[1:] == ["-"]


@pytest.mark.parametrize(
    ("days", "window"), [(1, "day"), (31, "day"), (32, "week"), (217, "week"), (218, "month")]
)
def test_a_plot_of_a_longer_time_has_a_bar_for_each_week_or_month(days: int, window: str) -> None:
    assert window_for(days * 86_400.0) == window
