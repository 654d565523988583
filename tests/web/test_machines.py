"""Machines: the wall of them, and the page of one."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.deployment import Deployment
from tests.web.browser import Visitor, violations


@pytest.fixture(scope="module")
def host(busy: Deployment) -> str:
    """The one machine that is really there; three others are only written down."""
    busy.ok("resource", "add", "--hosts", "n[1-3]", "--cores", "4")
    return next(str(each["host"]) for each in busy.json("node", "list")["nodes"] if each["connected"])


def tile(page: Page, host: str) -> Locator:
    return page.get_by_role("main").get_by_role("link").filter(has=page.get_by_text(host, exact=True))


def card(page: Page, title: str) -> Locator:
    return page.locator("section").filter(has=page.get_by_role("heading", name=re.compile(f"^{title}")))


def test_a_machine_shows_its_state_and_use(busy: Deployment, host: str, guest: Visitor) -> None:
    page = guest.page
    guest.go("/machines")
    expect(page.get_by_text(re.compile(r"^4 machines · 1 of 8 cores in use \(13 %\)"))).to_be_visible()
    expect(tile(page, host)).to_contain_text("busy")
    expect(tile(page, host)).to_contain_text("1 / 8 cores")
    expect(tile(page, host)).to_contain_text("1 job")
    expect(tile(page, host).get_by_role("img", name="1 of 8 cores in use")).to_be_visible()
    for name in ("n1", "n2", "n3"):
        expect(tile(page, name)).to_contain_text("absent")


def test_use_changes_as_jobs_start_and_end(busy: Deployment, host: str, guest: Visitor) -> None:
    page = guest.page
    guest.go("/machines")
    expect(tile(page, host)).to_contain_text("1 / 8 cores")
    busy.ok("add", "--cpus", "3", "-g", "three", "--", "sleep", "1000")
    expect(tile(page, host)).to_contain_text("4 / 8 cores")
    busy.ok("kill", "@three")
    expect(tile(page, host)).to_contain_text("1 / 8 cores")


def test_machines_are_filtered_and_the_address_says_how(busy: Deployment, host: str, guest: Visitor) -> None:
    page = guest.page
    guest.go("/machines?show=gone")
    tiles = page.get_by_role("main").locator("a.tile")
    expect(tiles).to_have_count(3)
    page.get_by_label("Name or property=value").fill("n2")
    expect(tiles).to_have_count(1)
    expect(page).to_have_url(re.compile(r"/machines\?show=gone&q=n2$"))
    page.get_by_label("Name or property=value").fill("nobody")
    expect(page.get_by_text("No machine is like that.")).to_be_visible()
    page.get_by_label("Name or property=value").fill("")
    page.get_by_role("button", name="Working 1").click()
    expect(tiles).to_have_count(1)
    tiles.click()
    expect(page).to_have_url(re.compile(rf"/machines/{re.escape(host)}$"))


def test_the_page_of_a_machine_tells_its_jobs_and_its_past(busy: Deployment, host: str, guest: Visitor) -> None:
    page = guest.page
    guest.go(f"/machines/{host}")
    expect(page.get_by_role("heading", level=1)).to_contain_text(host)
    expect(page).to_have_title(f"{host} · Rota")
    expect(card(page, "History").get_by_role("listitem").filter(has_text="now").first).to_contain_text("busy")
    expect(card(page, "History").get_by_role("img")).to_have_attribute("aria-label", re.compile("busy .*"))
    expect(card(page, "About")).to_contain_text("connected")
    expect(card(page, "Last 7 days")).to_contain_text(re.compile(r"busy\s*\d+ %"))
    card(page, "Jobs there now").get_by_role("link", name="42", exact=True).click()
    expect(page).to_have_url(re.compile("/jobs/42$"))


def test_the_timeline_of_a_machine_has_bands_and_jobs(busy: Deployment, host: str, guest: Visitor) -> None:
    page = guest.page
    guest.go(f"/machines/{host}")
    timeline = card(page, "Timeline")
    expect(timeline.get_by_role("img", name=re.compile("^Condition: automated"))).to_be_visible()
    expect(timeline.get_by_role("img", name=re.compile("^Usage: .*running"))).to_be_visible()
    expect(timeline.get_by_role("link", name="Job 42, running")).to_have_count(1)
    timeline.get_by_role("button", name="7 days").click()
    expect(page).to_have_url(re.compile(rf"/machines/{re.escape(host)}\?span=7d$"))
    expect(card(page, "About")).to_contain_text(re.compile(r"Condition\s*automated"))
    expect(card(page, "About")).to_contain_text("Since")
    assert violations(page) == []


def test_the_lab_groups_machines_by_any_property(busy: Deployment, host: str, guest: Visitor) -> None:
    busy.ok("property", "add", "room", "--type", "text")
    busy.ok("resource", "set", "--hosts", "n1,n2", "room=east")
    page = guest.page
    guest.go("/machines?view=lab&by=room")
    expect(card(page, "east").get_by_role("link")).to_have_count(2)
    expect(card(page, "no room").get_by_role("link").filter(has_text=host)).to_contain_text("busy")
    page.get_by_label("Group by").select_option("condition")
    expect(card(page, "automated").get_by_role("link")).to_have_count(4)
    expect(page).to_have_url(re.compile(r"view=lab&by=condition$"))
    assert violations(page) == []


def test_how_machines_spent_their_time_is_drawn_by_day(busy: Deployment, host: str, guest: Visitor) -> None:
    page = guest.page
    guest.go("/machines?view=usage")
    expect(page.get_by_role("img", name="How all machines spent their time, by the day")).to_be_visible()
    expect(page.get_by_role("img", name=re.compile(rf"^{re.escape(host)}, 1 machine: busy"))).to_be_visible()
    page.get_by_role("button", name=host, exact=True).click()
    expect(page.get_by_role("heading", name=host)).to_be_visible()
    page.get_by_label("By", exact=True).select_option("group")
    expect(page.get_by_role("button", name="(none)")).to_be_visible()
    assert violations(page) == []


def test_an_administrator_drains_a_machine(busy: Deployment, host: str, guest: Visitor) -> None:
    page = guest.page
    guest.go(f"/machines/{host}")
    page.get_by_role("button", name="Drain…", exact=True).click()
    dialog = page.get_by_role("dialog", name=f"Drain {host}")
    dialog.get_by_label("Reason").fill("new disks on Monday")
    dialog.get_by_role("button", name="Drain", exact=True).click()
    expect(page.get_by_text(f"{host} starts no new jobs; running ones go on")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_contain_text("draining")
    expect(page.get_by_text("new disks on Monday").first).to_be_visible()
    job = busy.ok("add", "--quiet", "--", "true").strip()
    assert busy.json("why", job)["reasons"], "it cannot start"
    page.get_by_role("button", name="Undrain", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("busy")
    expect(page.get_by_text("new disks on Monday")).to_have_count(0)
    busy.ok("wait", job)


def test_a_state_that_an_administrator_gives_is_written_down(busy: Deployment, host: str, guest: Visitor) -> None:
    page = guest.page
    guest.go("/machines/n3")
    page.get_by_role("button", name="State…").click()
    dialog = page.get_by_role("dialog", name="State of n3")
    expect(dialog.get_by_role("button", name="Change")).to_be_disabled()
    dialog.get_by_label("State").select_option("dead")
    dialog.get_by_role("button", name="Change").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("dead")
    states = {each["host"]: each["state"] for each in busy.json("resource", "list")["hosts"]}
    assert states["n3"] == "dead"


def test_a_machine_that_is_not_there_is_said_so(busy: Deployment, host: str, guest: Visitor) -> None:
    guest.go("/machines/nowhere")
    expect(guest.page.get_by_role("heading", name="There is no machine nowhere")).to_be_visible()
    guest.go("/machines")  # or it is asked for again when the next test changes the site
    # The browser itself complains about the answer 404.
    guest.complaints = [each for each in guest.complaints if "404" not in each]


def test_machines_are_in_the_order_of_their_numbers(busy: Deployment, host: str, guest: Visitor) -> None:
    busy.ok("resource", "add", "--hosts", "n10,n9", "--cores", "1")
    wanted = ["n1", "n2", "n3", "n9", "n10"]
    listed = [each["host"] for each in busy.json("node", "list")["nodes"]]
    assert [each for each in listed if each != host] == wanted
    guest.go("/machines?q=n")
    expect(guest.page.locator("a.tile b").filter(has_text=re.compile(r"^n\d+$"))).to_have_text(wanted)
    drawn = busy.json("gantt")["hosts"]
    assert [each["host"] for each in drawn if each["host"] in wanted] == wanted
    busy.ok("resource", "remove", "--hosts", "n9,n10")
