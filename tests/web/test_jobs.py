"""The table of jobs: narrowed, sorted, scrolled, selected and acted on."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.deployment import Deployment, wait_until
from tests.web.browser import Visitor, unnamed
from tests.web.conftest import HOSTILE

MANY = 3000
#: Jobs that wait are not added twice: no two of them are alike.
_FRESH = itertools.count()


@pytest.fixture(scope="module")
def full(busy: Deployment) -> Deployment:
    """With thousands of jobs that are held."""
    busy.ok("manager", "pause")
    busy.ok("add", "-g", "many", "-", input="".join(f"true {n}\n" for n in range(MANY)))
    busy.ok("hold", "@many")
    busy.ok("manager", "resume")
    wait_until(lambda: set(busy.states("@align").values()) == {"complete"}, "the short jobs have ended")
    return busy


@pytest.fixture
def waiting(full: Deployment) -> list[int]:
    """Three jobs that wait for one that does not end."""
    before = full.states("@waiting")
    lines = "".join(f"echo {n}\n" for n in itertools.islice(_FRESH, 3))
    full.ok("add", "-g", "waiting", "--after", "42", "-", input=lines)
    made = sorted(set(full.states("@waiting")) - set(before))
    assert len(made) == 3
    return made


def row(page: Page, job: int) -> Locator:
    return page.get_by_role("row").filter(has=page.get_by_role("checkbox", name=f"Select job {job}", exact=True))


def listed(page: Page) -> list[int]:
    """The ids of the rows that exist, from top to bottom."""
    return [int(each) for each in page.locator("[role=row] .id").all_inner_texts() if each.isdigit()]


def expect_jobs(page: Page, jobs: list[int]) -> None:
    """These, in this order, and no others."""
    expect(page.locator("[role=row] .id a")).to_have_text([str(each) for each in jobs])


def select(page: Page, jobs: list[int]) -> None:
    for each in jobs:
        row(page, each).get_by_role("checkbox").check()
    expect(page.get_by_role("toolbar", name="Selected jobs")).to_contain_text(f"{len(jobs)} selected")


def do(page: Page, name: str) -> None:
    page.get_by_role("toolbar", name="Selected jobs").get_by_role("button", name=name).click()


def until(rota: Deployment, jobs: list[int], states: set[str]) -> None:
    wait_until(lambda: all(rota.state(each) in states for each in jobs), f"{jobs} are {states}")


def test_a_row_tells_what_is_known_of_its_job(full: Deployment, guest: Visitor) -> None:
    guest.go("/jobs?group=broken")
    found = row(guest.page, 41)
    for text in ("41", "failed", "echo wrong", "broken", "exit 3"):
        expect(found).to_contain_text(text)
    expect(guest.page.get_by_text("1 job matches", exact=True)).to_be_visible()


def test_a_filter_made_by_hand_is_in_the_address(full: Deployment, guest: Visitor) -> None:
    guest.go("/jobs")
    page = guest.page
    page.get_by_role("button", name="failed").click()
    expect(page).to_have_url(re.compile(r"/jobs\?state=failed$"))
    expect_jobs(page, [41])
    page.get_by_role("button", name="running").click()
    expect(page).to_have_url(re.compile(r"state=(running%2Cfailed|failed%2Crunning)$"))
    expect_jobs(page, [42, 41])
    page.get_by_role("button", name="Clear", exact=True).click()
    expect(page).to_have_url(re.compile(r"/jobs$"))
    group = page.get_by_role("combobox", name="Group")
    group.fill("align")
    group.press("Enter")
    expect(page).to_have_url(re.compile(r"/jobs\?group=align$"))
    expect(page.get_by_text("40 jobs match", exact=True)).to_be_visible()
    page.get_by_role("searchbox", name="Text in the name or command").fill("sample 7")
    expect(page).to_have_url(re.compile(r"group=align&q=sample\+7$"))
    expect_jobs(page, [8])


def test_selectors_in_the_search_box_are_selectors(full: Deployment, guest: Visitor) -> None:
    guest.go("/jobs")
    page = guest.page
    search = page.get_by_role("searchbox", name="Text in the name or command")
    search.fill("@ali* exit=0 cmd~SAMPLE 7")
    expect_jobs(page, [38, 28, 18, 8])
    search.fill("@ali* exit=1-255")
    expect(page.get_by_role("heading", name="No job matches")).to_be_visible()
    search.fill("older=1")
    expect(page.get_by_text("selector 'older=1': '1' has no unit")).to_be_visible()
    guest.complaints = [each for each in guest.complaints if "400" not in each]


def test_an_address_with_a_filter_shows_the_same_anew(full: Deployment, guest: Visitor) -> None:
    guest.go("/jobs?group=align&q=sample+3&sort=id")
    page = guest.page
    expect_jobs(page, [4, *range(31, 41)])
    expect(page.get_by_role("combobox", name="Group")).to_have_value("align")
    expect(page.get_by_role("searchbox", name="Text in the name or command")).to_have_value("sample 3")
    guest.go("/jobs?state=blocked")
    expect(page.get_by_role("button", name="blocked")).to_have_attribute("aria-pressed", "true")
    expect_jobs(page, [44])
    guest.go("/jobs?q=nothing+is+called+so")
    expect(page.get_by_role("heading", name="No job matches")).to_be_visible()


def test_a_click_on_a_header_sorts_and_another_turns_it_round(full: Deployment, guest: Visitor) -> None:
    guest.go("/jobs?q=echo")
    page = guest.page
    header = page.get_by_role("columnheader", name="Id")
    expect(header).to_have_attribute("aria-sort", "descending")
    header.get_by_role("button").click()
    expect(page).to_have_url(re.compile(r"sort=id$"))
    expect(header).to_have_attribute("aria-sort", "ascending")
    expect(row(page, 1)).to_have_attribute("aria-rowindex", "2")
    page.get_by_role("columnheader", name="Started").get_by_role("button").click()
    expect(page).to_have_url(re.compile(r"sort=-started$"))
    expect(page.get_by_role("columnheader", name="Started")).to_have_attribute("aria-sort", "descending")
    found = [job for job in full.json("jobs", "@align", "@broken", "@slow")["jobs"] if "echo" in str(job["cmd"])]
    newest = max(found, key=lambda job: str(job["started_at"]))
    expect(row(page, newest["id"])).to_have_attribute("aria-rowindex", "2")


def test_thousands_of_jobs_scroll_to_the_last_with_few_rows_in_the_page(full: Deployment, guest: Visitor) -> None:
    jobs = sorted(full.states("@many"))
    assert len(jobs) == MANY
    guest.go("/jobs?group=many")
    page = guest.page
    expect(page.get_by_text(f"{MANY:,} jobs match", exact=True)).to_be_visible()
    expect(row(page, jobs[-1])).to_be_in_viewport()
    expect(row(page, jobs[0])).to_have_count(0)
    page.keyboard.press("End")
    expect(row(page, jobs[0])).to_be_in_viewport()
    assert page.get_by_role("row").count() < 100
    page.keyboard.press("Home")
    expect(row(page, jobs[-1])).to_be_in_viewport()
    # As somebody who pulls the bar to its middle.
    grid = page.get_by_role("grid", name="Jobs")
    grid.evaluate("it => { it.scrollTop = (it.scrollHeight - it.clientHeight) / 2 }")
    expect(row(page, jobs[MANY // 2])).to_be_in_viewport()
    shown = listed(page)
    assert shown == sorted(shown, reverse=True)
    assert shown[0] - shown[-1] == len(shown) - 1, "no row is missing between the first and the last"
    assert page.get_by_role("row").count() < 100


def test_held_jobs_and_the_way_back(full: Deployment, waiting: list[int], guest: Visitor) -> None:
    guest.go("/jobs?group=waiting")
    page = guest.page
    select(page, waiting[:2])
    do(page, "Hold")
    undo = page.get_by_role("button", name="Undo")
    expect(undo).to_be_visible()  # for some seconds only, so there is little to be done before
    assert [full.state(each) for each in waiting] == ["held", "held", "dependent"]
    undo.click()
    until(full, waiting, {"dependent"})
    expect(row(page, waiting[0])).to_contain_text("dependent")


def test_released_jobs_go_on(full: Deployment, waiting: list[int], guest: Visitor) -> None:
    full.ok("hold", *map(str, waiting))
    guest.go("/jobs?group=waiting&state=held")
    page = guest.page
    page.get_by_role("checkbox", name="Select all jobs that match").check()
    expect(page.get_by_role("toolbar", name="Selected jobs")).to_contain_text("All 3 that match")
    do(page, "Release")
    until(full, waiting, {"dependent"})
    expect(page.get_by_role("heading", name="No job matches")).to_be_visible()


def test_a_kill_is_asked_about_and_retry_brings_back(full: Deployment, waiting: list[int], guest: Visitor) -> None:
    guest.go("/jobs?group=waiting")
    page = guest.page
    select(page, waiting)
    do(page, "Kill…")
    dialog = page.get_by_role("dialog", name="Kill 3 jobs?")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    assert {full.state(each) for each in waiting} == {"dependent"}
    do(page, "Kill…")
    dialog.get_by_role("button", name="Kill 3 jobs").click()
    until(full, waiting, {"cancelled"})
    expect(row(page, waiting[1])).to_contain_text("cancelled")
    expect(page.get_by_role("toolbar", name="Selected jobs")).to_have_count(0)
    select(page, waiting)
    do(page, "Retry")
    until(full, waiting, {"dependent"})
    expect(row(page, waiting[1])).to_contain_text("dependent")


def test_of_ticked_jobs_what_waits_is_kept_unless_it_is_meant(
    full: Deployment, waiting: list[int], guest: Visitor
) -> None:
    full.ok("kill", str(waiting[0]))
    until(full, waiting[:1], {"cancelled"})
    guest.go("/jobs?group=waiting")
    page = guest.page
    select(page, waiting)
    do(page, "Remove…")
    dialog = page.get_by_role("dialog", name=re.compile("^Remove "))
    dialog.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("1 job removed; 2 others kept")).to_be_visible()
    assert [full.state(each) for each in waiting[1:]] == ["dependent", "dependent"]
    select(page, waiting[1:])
    do(page, "Remove…")
    page.get_by_role("dialog").get_by_role("checkbox", name="Also jobs that wait").check()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.get_by_text("2 jobs removed")).to_be_visible()
    assert not set(waiting) & set(full.states("@waiting"))


def test_another_priority_and_the_way_back(full: Deployment, waiting: list[int], guest: Visitor) -> None:
    def priorities() -> list[int]:
        with full.client() as client:
            return [client.job(each).priority for each in waiting]

    guest.go("/jobs?group=waiting")
    page = guest.page
    select(page, waiting)
    do(page, "Priority…")
    page.get_by_role("dialog").get_by_role("spinbutton").fill("7")
    page.get_by_role("dialog").get_by_role("button", name="Set").click()
    expect(page.get_by_text("3 jobs now have priority 7")).to_be_visible()
    assert priorities() == [7, 7, 7]
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("3 jobs now have priority 0")).to_be_visible()
    assert priorities() == [0, 0, 0]


def test_what_cannot_be_done_is_said(full: Deployment, guest: Visitor) -> None:
    guest.go("/jobs?state=failed&group=broken")
    select(guest.page, [41])
    bar = guest.page.get_by_role("toolbar", name="Selected jobs")
    expect(bar.get_by_role("button", name="Hold")).to_be_disabled()
    expect(bar.get_by_role("button", name="Hold")).to_have_attribute("title", "None of them waits")
    expect(bar.get_by_role("button", name="Kill…")).to_have_attribute("title", "All of them have ended")
    expect(bar.get_by_role("button", name="Retry")).to_be_enabled()


def test_only_what_can_be_killed_is_counted(full: Deployment, waiting: list[int], guest: Visitor) -> None:
    guest.go("/jobs")
    page = guest.page
    page.get_by_role("checkbox", name="Select all jobs that match").check()
    states = full.states()
    ended = sum(state in ("complete", "failed", "cancelled") for state in states.values())
    alive = len(states) - ended
    do(page, "Kill…")
    dialog = page.get_by_role("dialog", name=f"Kill {alive:,} jobs?")
    expect(dialog).to_contain_text(f"{alive:,} jobs of {len(states):,} selected.")
    expect(dialog).to_contain_text(f"The other {ended} have ended already: they stay as they are.")
    expect(dialog.get_by_role("button", name=f"Kill {alive:,} jobs")).to_be_enabled()
    dialog.get_by_role("button", name="Cancel").click()
    do(page, "Remove…")
    # Job 41 has ended, and others wait for it.
    dialog = page.get_by_role("dialog", name=f"Remove {ended - 1} jobs?")
    expect(dialog).to_contain_text(f"The other {alive + 1:,} have not ended, or others wait for them")
    dialog.get_by_role("button", name="Cancel").click()
    page.keyboard.press("Escape")


def test_keys_move_select_and_open(full: Deployment, guest: Visitor) -> None:
    guest.go("/jobs?group=align")
    page = guest.page
    expect(row(page, 40)).to_be_visible()
    for key in ("j", "j", "j", "k", "x"):
        page.keyboard.press(key)
    expect(row(page, 39)).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("row", selected=True)).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.get_by_role("row", selected=True)).to_have_count(0)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/jobs/39$"))


#: Presses a key as soon as the first row is there, before the page has done anything else.
PRESS_AT_ONCE = """
new MutationObserver((_, watch) => {
  if (!document.querySelector(".job-rows [role=row] .id a")) return;
  watch.disconnect();
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "End", bubbles: true }));
}).observe(document, { childList: true, subtree: true });
"""


def test_a_key_counts_from_the_first_row_on(full: Deployment, visit: Callable[..., Visitor]) -> None:
    visitor = visit(full)
    visitor.page.add_init_script(PRESS_AT_ONCE)
    visitor.go("/jobs?group=align")
    expect(visitor.page.get_by_role("grid", name="Jobs")).to_have_attribute("aria-activedescendant", "row-39")


def test_a_row_follows_its_job(full: Deployment, guest: Visitor) -> None:
    guest.go("/jobs?group=live")
    page = guest.page
    expect(page.get_by_role("heading", name="No job matches")).to_be_visible()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    page.evaluate("window.stayed = true")
    flag = full.work / "row-may-end"
    full.ok("add", "-g", "live", "--", "sh", "-c", f"until test -e {flag}; do sleep 0.1; done")
    (job,) = full.states("@live")
    expect(row(page, job)).to_contain_text("running")
    flag.touch()
    expect(row(page, job)).to_contain_text("complete")
    assert page.evaluate("window.stayed") is True


def test_a_hostile_name_is_text(full: Deployment, guest: Visitor) -> None:
    guest.go("/jobs?group=slow")
    page = guest.page
    expect(row(page, 42).get_by_text(HOSTILE, exact=True)).to_be_visible()
    assert page.get_by_role("grid").locator("img").count() == 0
    assert "owned" not in page.title()


@pytest.mark.parametrize("width", [700, 1024, 1280, 1440, 1700, 1800, 2000])
def test_the_result_is_in_view_and_the_name_has_room(width: int, full: Deployment, guest: Visitor) -> None:
    guest.page.set_viewport_size({"width": width, "height": 700})
    guest.go("/jobs")
    table = guest.page.get_by_role("grid", name="Jobs").bounding_box()
    result = guest.page.get_by_role("columnheader", name="Result").bounding_box()
    name = guest.page.get_by_role("columnheader", name="Name and command").bounding_box()
    assert table is not None
    assert result is not None
    assert name is not None
    assert result["x"] + result["width"] <= table["x"] + table["width"]
    assert result["width"] >= 90
    assert name["width"] >= 200


def test_everything_on_it_has_a_name_and_fits_a_phone(full: Deployment, guest: Visitor) -> None:
    guest.page.set_viewport_size({"width": 390, "height": 844})
    guest.go("/jobs?group=align")
    page = guest.page
    row(page, 40).get_by_role("checkbox").check()
    expect(page.get_by_role("toolbar", name="Selected jobs")).to_be_visible()
    assert unnamed(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
