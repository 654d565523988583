"""The past on the Gantt page: what ran, what hosts did, and how one gets there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from playwright.sync_api import expect

from tests.deployment import Deployment, deployment, wait_until
from tests.web.browser import Visitor
from tests.web.test_gantt import canvas, look_at, moment, point_at, shown


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Two jobs have ended, one runs, and the host was drained for a moment."""
    with deployment(tmp_path_factory.mktemp("past"), http="on", cores="8") as made:
        made.start()
        made.ok("add", "-g", "done", "-n", "good", "-l", "core=4,walltime=1m", "--", "sleep", "2")
        made.ok("add", "-g", "done", "-n", "bad", "--retries", "0", "-l", "core=2,walltime=1m", "--", "false")
        wait_until(lambda: made.state(1) == "complete" and made.state(2) == "failed", "both have ended")
        (host,) = made.json("gantt")["hosts"]
        made.ok("node", "set", host["host"], "--drain")
        wait_until(
            lambda: "drained" in {each["state"] for each in made.json("gantt", "--from", "-5m")["past"]["states"]},
            "it is drained",
        )
        made.ok("node", "set", host["host"], "--no-drain")
        made.ok("add", "-g", "now", "-n", "runs", "-l", "core=3,walltime=1h", "--", "sleep", "7000")
        wait_until(lambda: made.state(3) == "running", "the third runs")
        yield made


def attempts(rota: Deployment) -> dict[int, tuple[datetime, datetime]]:
    found = rota.json("gantt", "--from", "-15m")["past"]["attempts"]
    return {each["id"]: (moment(each["start"]), moment(each["end"])) for each in found}


def test_what_ended_is_drawn_where_it_was_and_leads_to_its_job(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    start, end = attempts(busy)[1]
    look_at(guest, start - timedelta(seconds=30), end + timedelta(seconds=40))
    if folder := os.environ.get("ROTA_TEST_PICTURES"):
        for name, width, scheme in (("light", 1280, "light"), ("dark", 1280, "dark"), ("narrow", 390, "light")):
            page.set_viewport_size({"width": width, "height": 860})
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.wait_for_timeout(700)
            page.screenshot(path=f"{folder}/{name}.png", full_page=width < 500)
        page.set_viewport_size({"width": 1280, "height": 860})
    expect(page.get_by_role("img", name=re.compile("^The plan: 3 jobs"))).to_be_visible()
    point_at(page, start + (end - start) / 2, "#1, ended")
    expect(page.get_by_role("tooltip")).to_contain_text("good")
    expect(page.get_by_role("tooltip")).to_contain_text("complete")
    page.mouse.down()
    page.mouse.up()
    expect(page).to_have_url(re.compile("/jobs/1$"))


def test_the_table_beside_the_picture_has_what_ended(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    guest.go("/gantt?span=1h")
    page.get_by_text("The same as a table (3 jobs in this range)").click()
    rows = page.get_by_role("region", name="Jobs in this range").get_by_role("row")
    expect(rows.filter(has_text="good")).to_contain_text("complete")
    expect(rows.filter(has_text="bad")).to_contain_text("failed")
    expect(rows.filter(has_text="runs")).to_contain_text("running")


def test_a_slider_goes_through_time_by_hand_and_by_keys(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    now = moment(busy.json("gantt")["now"])
    look_at(guest, now - timedelta(minutes=30), now + timedelta(minutes=30))
    slider = page.get_by_role("slider", name="Time shown")
    before, seen = shown(page), page.url
    slider.press("ArrowLeft")
    expect(page).not_to_have_url(seen)
    after = shown(page)
    assert after[0] < before[0]
    assert abs((after[1] - after[0]) - (before[1] - before[0])) < timedelta(seconds=2)
    box = slider.bounding_box()
    assert box
    seen = page.url
    slider.click(position={"x": 20, "y": box["height"] / 2})
    expect(page).not_to_have_url(seen)
    assert shown(page)[0] < now - timedelta(hours=2)
    expect(canvas(page)).to_be_visible()
    seen = page.url
    page.get_by_label("Jump to").fill(f"{now.astimezone() - timedelta(days=9):%Y-%m-%dT%H:%M}")
    expect(page).not_to_have_url(seen)
    first, last = shown(page)
    assert first < now - timedelta(days=8) < last + timedelta(days=2)
