"""The plan as a picture: what is in it, how it is moved, and what would happen if."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.deployment import Deployment, deployment, wait_until
from tests.web.browser import Visitor
from tests.web.conftest import HOSTILE

#: Where the picture is red at its foot: the line of the present time.
_NOW_AT = """canvas => {
    const pen = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
    pen.drawImage(canvas, 0, 0);
    const ratio = canvas.width / canvas.clientWidth;
    const row = pen.getImageData(0, canvas.height - 3 * ratio, canvas.width, 1).data;
    for (let x = 0; x < canvas.width; x += 1)
        if (row[4 * x] > 150 && row[4 * x + 1] < 110 && row[4 * x + 2] < 110) return x / ratio;
    return -1;
}"""


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Eight cores: one job runs, the next is planned behind it, a third has reserved them for tomorrow."""
    with deployment(tmp_path_factory.mktemp("planned"), http="on", cores="8") as made:
        made.start()
        made.ok("add", "-g", "now", "-n", HOSTILE, "-l", "core=4,walltime=2h", "--", "sleep", "7000")
        wait_until(lambda: made.state(1) == "running", "the first runs")
        made.ok("add", "-g", "next", "-n", "waits", "-l", "core=8,walltime=1h", "--", "sleep", "7000")
        made.ok("add", "-g", "booked", "-n", "tomorrow", "-l", "core=8,walltime=1h", "-r", "+20h", "--", "true")
        made.ok(
            "add",
            "-g",
            "spare",
            "-n",
            "spare",
            "-q",
            "besteffort",
            "-l",
            "core=1,walltime=1h",
            "--",
            "sleep",
            "7000",
        )
        wait_until(lambda: made.state(4) == "running", "the besteffort job runs")
        yield made


def plan(rota: Deployment) -> dict[int, dict[str, Any]]:
    return {job["id"]: job for job in rota.json("gantt")["jobs"]}


def canvas(page: Page) -> Locator:
    return page.get_by_role("img", name=re.compile("^The plan:"))


def shown(page: Page) -> tuple[datetime, datetime]:
    """The range in the address."""
    words = parse_qs(urlsplit(page.url).query)
    return datetime.fromisoformat(words["from"][0]), datetime.fromisoformat(words["to"][0])


def look_at(guest: Visitor, first: datetime, last: datetime) -> None:
    text = (f"{each:%Y-%m-%dT%H:%M:%SZ}" for each in (first, last))
    guest.go("/gantt?from={}&to={}".format(*text))
    expect(canvas(guest.page)).to_be_visible()


def point_at(page: Page, moment: datetime, words: str) -> None:
    """Move the pointer down at a moment until the card of a bar with these words is there."""
    first, last = shown(page)
    box = canvas(page).bounding_box()
    assert box
    x = box["x"] + box["width"] * ((moment - first) / (last - first))
    card = page.get_by_role("tooltip").filter(has_text=words)

    def found() -> bool:
        for y in range(45, int(box["height"]), 12):
            page.mouse.move(x, box["y"] + y)
            if card.is_visible():
                return True
        return False

    wait_until(found, f"there is a bar with {words!r}")


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def ask(page: Page, request: str) -> None:
    page.get_by_label("Request", exact=True).fill(request)
    page.get_by_role("button", name="When would it run?").click()


def test_running_planned_and_reserved_jobs_are_in_the_table_beside_the_picture(
    busy: Deployment, guest: Visitor
) -> None:
    page = guest.page
    guest.go("/gantt?span=1d")
    expect(page.get_by_role("img", name=re.compile("^The plan: 4 jobs on 1 hosts?"))).to_be_visible()
    page.get_by_text("The same as a table (4 jobs in this range)").click()
    rows = page.get_by_role("region", name="Jobs in this range").get_by_role("row")
    expect(rows).to_have_count(5)
    expect(rows.filter(has_text=HOSTILE)).to_contain_text("running")
    expect(rows.filter(has_text="waits")).to_contain_text("planned")
    expect(rows.filter(has_text="tomorrow")).to_contain_text("reserved")
    expect(rows.filter(has_text="waits")).to_contain_text(plan(busy)[2]["resources"])


def test_a_bar_tells_its_job_and_leads_to_it(busy: Deployment, guest: Visitor) -> None:
    page, jobs = guest.page, plan(busy)
    start, end = moment(jobs[1]["start"]), moment(jobs[2]["end"])
    look_at(guest, start - timedelta(minutes=10), end + timedelta(minutes=10))
    point_at(page, moment(jobs[2]["start"]) + timedelta(minutes=5), "waits")
    expect(page.get_by_role("tooltip")).to_contain_text("#2, planned")
    expect(page.get_by_role("tooltip")).to_contain_text("next")
    point_at(page, start + timedelta(minutes=5), "#1, runs")
    expect(page.get_by_role("tooltip")).to_contain_text(HOSTILE)
    page.mouse.down()
    page.mouse.up()
    expect(page).to_have_url(re.compile("/jobs/1$"))


def test_buttons_zoom_and_go_back_to_now(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    guest.go("/gantt")
    expect(page.get_by_role("button", name="6h")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Zoom in").click()
    first, last = shown(page)
    assert last - first == timedelta(hours=3)
    page.get_by_role("button", name="Zoom out").click()
    assert shown(page)[1] - shown(page)[0] == timedelta(hours=6)
    page.get_by_role("button", name="Now", exact=True).click()
    expect(page).to_have_url(re.compile("/gantt$"))
    page.get_by_role("button", name="1w").click()
    expect(page).to_have_url(re.compile(r"/gantt\?span=1w$"))
    expect(page.get_by_role("button", name="1w")).to_have_attribute("aria-pressed", "true")


def test_keys_wheel_and_dragging_move_the_picture(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    start = moment(plan(busy)[1]["start"]).replace(microsecond=0)
    look_at(guest, start, start + timedelta(hours=4))

    def moved(by: str) -> tuple[timedelta, timedelta]:
        before, seen = shown(page), page.url
        if by == "drag":
            box = canvas(page).bounding_box()
            assert box
            page.mouse.move(box["x"] + 300, box["y"] + 100)
            page.mouse.down()
            page.mouse.move(box["x"] + 200, box["y"] + 100, steps=4)
            page.mouse.up()
        elif by == "wheel":
            canvas(page).hover(position={"x": 200, "y": 10})
            page.mouse.wheel(0, 120)
        else:
            canvas(page).press(by)
        expect(page).not_to_have_url(seen)
        after = shown(page)
        return after[0] - before[0], (after[1] - after[0]) - (before[1] - before[0])

    second = timedelta(seconds=2)
    shift, longer = moved("ArrowRight")
    assert shift > timedelta()
    assert abs(longer) < second
    shift, longer = moved("ArrowLeft")
    assert shift < timedelta()
    assert abs(longer) < second
    assert moved("+")[1] < timedelta()
    assert moved("-")[1] > timedelta()
    assert moved("wheel")[1] > timedelta()
    shift, longer = moved("drag")
    assert shift > timedelta()
    assert abs(longer) < second


def test_colours_are_by_group_user_or_queue(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    guest.go("/gantt?span=1d")
    colours = page.get_by_role("list", name="Colours by group")
    for group in ("now", "next", "booked", "spare"):
        expect(colours.get_by_role("button", name=re.compile(f"^{group} 1$"))).to_be_visible()
    page.get_by_label("Colour by").select_option("queue")
    expect(page).to_have_url(re.compile("by=queue"))
    colours = page.get_by_role("list", name="Colours by queue")
    expect(colours.get_by_role("button", name="default 3")).to_be_visible()
    expect(colours.get_by_role("button", name="besteffort 1")).to_be_visible()
    page.get_by_label("Colour by").select_option("user")
    expect(
        page.get_by_role("list", name="Colours by user").get_by_role("button", name=re.compile(" 4$"))
    ).to_be_visible()


def test_now_moves(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    now = moment(busy.json("gantt")["now"])
    look_at(guest, now - timedelta(seconds=30), now + timedelta(minutes=5))
    before = wait_until(lambda: max(0, canvas(page).evaluate(_NOW_AT)), "the line is there")
    wait_until(lambda: canvas(page).evaluate(_NOW_AT) > before + 3, "the line has moved on")


def test_a_request_shows_where_its_job_would_go(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    guest.go("/gantt")
    ask(page, "core=8,walltime=30m")
    found = page.get_by_role("status").filter(has_text="It would start in")
    expect(found).to_contain_text("Nobody else would move.")
    expect(page).to_have_url(re.compile("from="))
    start = moment(busy.json("plan", "-l", "core=8,walltime=30m")["start"])
    point_at(page, start + timedelta(minutes=10), "Your job would run here")
    assert len(busy.states()) == 4, "nothing was added"
    page.get_by_role("button", name="Clear").click()
    expect(found).to_be_hidden()


def test_a_request_that_makes_no_sense_is_said_where_it_is_wrong(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    guest.go("/gantt")
    ask(page, "core=banana,walltime=1h")
    expect(page.get_by_role("alert")).to_contain_text("column 6")
    expect(page.get_by_label("Request", exact=True)).to_have_attribute("aria-invalid", "true")
    page.get_by_label("Request", exact=True).fill("core=1")
    expect(page.get_by_role("alert")).to_be_hidden()
    # The browser itself complains about the answer 400.
    guest.complaints = [each for each in guest.complaints if "400" not in each]


def test_the_answer_follows_the_plan(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    guest.go("/gantt")
    ask(page, "core=8,walltime=30m")
    found = page.locator(".found dd").first
    expect(found).to_be_visible()
    before = found.inner_text()
    job = busy.ok("add", "--quiet", "-l", "core=8,walltime=3h", "--", "true").strip()
    expect(found).not_to_have_text(before)
    busy.ok("kill", job)
    expect(found).to_have_text(before)
