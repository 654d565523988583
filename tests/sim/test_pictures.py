"""Pictures of schedules: they are well formed, hold every job, and nothing in a name gets out of its place."""

from __future__ import annotations

import re
import struct
import xml.etree.ElementTree as ElementTree
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.errors import BadInput
from rota.pictures.png import Canvas, png
from rota.pictures.rendering import SUFFIXES, rendered, suffix_of
from rota.pictures.schedule import COLOURS, Drawn, Layout, Picture, colour_of, runs, time_text
from rota.pictures.svg import svg
from rota.sim.drawing import picture_of_replay, picture_of_site
from rota.sim.metrics import Metrics
from rota.sim.replay import RanJob, ReplayResult
from rota.sim.swf import SwfJob

SVG = "{http://www.w3.org/2000/svg}"


def picture(*drawn: Drawn, rows: tuple[int, int] = (1, 8), title: str = "a title", note: str = "") -> Picture:
    return Picture(title=title, note=note, drawn=drawn, rows=rows)


TWO = picture(Drawn(1, "alice", 0, 3600, [(1, 4)]), Drawn(2, "bob", 1800, 7200, [(5, 6), (8, 8)]))


def paths(text: str) -> list[ElementTree.Element]:
    return ElementTree.fromstring(text.encode()).findall(f".//{SVG}path")


def points(data: bytes) -> list[bytes]:
    """The rows of a PNG file, each point the number of a colour; every checksum is looked at."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks: dict[bytes, bytes] = {}
    at = 8
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        name, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert struct.unpack_from(">I", data, at + 8 + size)[0] == zlib.crc32(name + body)
        chunks[name] = body
        at += 12 + size
    width, height, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert rest == [8, 3, 0, 0, 0]
    raw = zlib.decompress(chunks[b"IDAT"])
    assert len(raw) == (width + 1) * height
    rows = [raw[n * (width + 1) : (n + 1) * (width + 1)] for n in range(height)]
    assert {row[0] for row in rows} == {0}
    assert max(max(row[1:]) for row in rows) < len(chunks[b"PLTE"]) // 3
    return [row[1:] for row in rows]


def test_every_job_is_one_path_that_tells_about_it() -> None:
    found = paths(svg(TWO))
    assert [path.findtext(f"{SVG}title") for path in found] == [
        "1 (alice): 0s – 1h, 1h on 4",
        "2 (bob): 30m – 2h, 1h30m on 3",
    ]
    assert [path.attrib["d"].count("M") for path in found] == [1, 2]


def test_a_job_is_where_its_time_and_its_rows_are() -> None:
    layout = Layout(TWO)
    (box,) = layout.boxes(TWO.drawn[0])
    assert (box.x, box.y) == (0, 0)
    assert box.width == pytest.approx(layout.plot_width / 2)
    assert box.height == pytest.approx(layout.plot_height / 2)
    upper, lower = layout.boxes(TWO.drawn[1])
    assert upper.x == pytest.approx(layout.plot_width / 4)
    assert lower.y + lower.height == pytest.approx(layout.plot_height)


def test_the_points_of_a_png_have_the_colour_of_their_job() -> None:
    layout = Layout(TWO)
    rows = points(png(TWO))
    assert (len(rows), len(rows[0])) == (layout.height, layout.width)
    for job in TWO.drawn:
        for box in layout.boxes(job):
            x, y = int(layout.left + box.x + 5), int(layout.top + box.y + 5)
            assert rows[y][x] == 5 + colour_of(job)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_same_jobs_make_the_same_picture(suffix: str) -> None:
    assert rendered(TWO, suffix) == rendered(TWO, suffix)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_picture_without_jobs_says_so(suffix: str) -> None:
    data = rendered(picture(), suffix)
    assert b"no jobs" in data or suffix == ".png"


@given(st.text(max_size=30))
def test_no_text_breaks_a_picture(text: str) -> None:
    hostile = picture(Drawn(text, text, 0, 10, [(1, 8)], group=text), title=text, note=text)
    drawn = svg(hostile)
    (path,) = paths(drawn)
    assert path.findtext(f"{SVG}title") is not None
    page = rendered(hostile, ".html").decode()
    assert page.count("<script>") == page.count("</script>") == 1
    points(png(hostile))


def test_markup_in_a_name_is_shown_not_run() -> None:
    evil = "</title><script>alert(1)</script>\"'&"
    page = rendered(picture(Drawn(evil, evil, 0, 10, [(1, 8)]), title=evil), ".html").decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert ElementTree.fromstring(svg(picture(title=evil)).encode()).findtext(f"{SVG}text") == evil


def test_a_page_needs_nothing_from_elsewhere() -> None:
    page = rendered(TWO, ".html").decode()
    addresses = set(re.findall(r"\w+://[^\s\"'<]+", page))
    assert addresses == {"http://www.w3.org/2000/svg"}  # the name of a language, not a place to look at
    assert not re.search(r"\b(src|href|@import|url)\b", page)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(("start", "end"), [(0, 0.001), (-30, 5), (5e9, 5e9 + 1), (0, 4e9), (0, 1e-9)])
def test_any_span_of_time_has_readable_marks(start: float, end: float, suffix: str) -> None:
    shown = picture(Drawn(1, "", start, end, [(1, 1)]))
    ticks = Layout(shown).time_ticks()
    assert 1 <= len(ticks) <= 20
    assert len({tick.text for tick in ticks}) == len(ticks)
    assert all(-1 <= tick.at <= Layout(shown).plot_width + 1 for tick in ticks)
    assert rendered(shown, suffix)


@pytest.mark.parametrize("count", [1, 2, 9, 100, 4096, 300_000])
def test_rows_are_numbered_as_far_as_there_is_room(count: int) -> None:
    ticks = list(Layout(picture(rows=(1, count))).row_ticks())
    assert 1 <= len(ticks) <= 40
    numbers = [int(tick.text) for tick in ticks]
    assert numbers == sorted(set(numbers))
    assert 1 <= numbers[0] <= numbers[-1] <= count


def test_many_processors_do_not_make_a_huge_picture() -> None:
    scattered = Drawn(1, "", 0, 10, [(n, n) for n in range(1, 100_000, 2)])
    assert len(rendered(picture(scattered, rows=(1, 100_000)), ".svg")) < 10_000


def test_jobs_of_one_user_have_one_colour() -> None:
    of_alice = {colour_of(Drawn(n, "", 0, 1, [(1, 1)], group="alice")) for n in range(50)}
    assert len(of_alice) == 1
    assert len({colour_of(Drawn(n, "", 0, 1, [(1, 1)])) for n in range(500)}) == len(COLOURS)


def test_moments_before_the_beginning_have_a_sign() -> None:
    assert (time_text(-90), time_text(0), time_text(3661.5)) == ("-1m30s", "0s", "1h1m1.5s")


@pytest.mark.parametrize("name", ["plan.pdf", "png", "plan", "plan.png.gz", ""])
def test_other_kinds_of_pictures_are_refused(name: str) -> None:
    with pytest.raises(BadInput, match=r"not the name of a picture file; end it with \.png, \.svg, \.html"):
        suffix_of(name)
    assert suffix_of("A.PNG") == ".png"


def test_what_lies_outside_a_canvas_is_not_drawn() -> None:
    canvas = Canvas(4, 3)
    canvas.fill(-5, -5, 6, 6, 1)
    canvas.fill(3, 2, 100, 100, 2)
    canvas.fill(50, 50, 5, 5, 3)
    canvas.text(-30, -30, "x")
    assert [bytes(row) for row in canvas.rows] == [b"\1\0\0\0", b"\0\0\0\0", b"\0\0\0\2"]


def test_runs_of_numbers() -> None:
    assert runs([]) == []
    assert runs([1, 2, 3, 5, 8, 9]) == [(1, 3), (5, 5), (8, 9)]


# ------------------------------------------------------------------ of simulations


def ran(id: int, start: float, end: float, procs: int, processors: list[int] | None) -> RanJob:
    return RanJob(SwfJob(id, start, procs, end - start, end - start, "3"), start, end, processors)


def test_a_replay_is_drawn_on_its_processors() -> None:
    replayed = ReplayResult([ran(1, 0, 5, 3, [1, 2, 4])], [], Metrics())
    found = picture_of_replay(replayed, title="t", note="", processors=4)
    assert found.drawn == [Drawn(1, "user 3", 0, 5, [(1, 2), (4, 4)], group="user 3")]


def test_jobs_that_were_only_counted_get_lanes_that_never_overlap() -> None:
    jobs = [ran(1, 0, 5, 2, None), ran(2, 0, 9, 1, None), ran(3, 5, 9, 2, None), ran(4, 9, 10, 3, None)]
    found = picture_of_replay(ReplayResult(jobs, [], Metrics()), title="t", note="", processors=3)
    assert [each.rows for each in found.drawn] == [[(1, 2)], [(3, 3)], [(1, 2)], [(1, 3)]]


def test_a_site_is_drawn_without_the_jobs_that_never_start() -> None:
    jobs = [
        {"id": 1, "start": 0, "end": 5, "resources": "1-2,7", "state": "complete"},
        {"id": 2, "start": None, "end": None, "resources": None, "state": "ready"},
    ]
    found = picture_of_site(jobs, title="t", note="")
    assert [(each.id, each.rows) for each in found.drawn] == [("1", [(1, 2), (7, 7)])]
    assert found.rows == (1, 7)
