"""What holds for every page: it can be reached, read and used by everybody, and it is safe."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.deployment import Deployment, deployment, wait_until
from tests.web.browser import DESK, Visitor, unnamed, violations
from tests.web.conftest import HOSTILE

#: Every page by an address that somebody may have kept, and what it is called.
PAGES = {
    "/": "Overview · Rota",
    "/jobs": "Jobs · Rota",
    "/jobs?state=running": "Jobs · Rota",
    "/jobs/41": "41 ",
    "/jobs/42": "42 ",
    "/groups": "Groups · Rota",
    "/pipelines": "Pipelines · Rota",
    "/graph": "Dependencies · Rota",
    "/graph?select=@later": "@later · Dependencies · Rota",
    "/gantt": "Gantt · Rota",
    "/machines": "Machines · Rota",
    "/machines?view=lab": "Machines · Rota",
    "/machines?view=usage": "Machines · Rota",
    "/machines/HOST": "HOST · Rota",
    "/policy": "Policy · Rota",
    "/policy?tab=queues": "Policy · Rota",
    "/policy?tab=quotas": "Policy · Rota",
    "/policy?tab=calendars": "Policy · Rota",
    "/policy?tab=rules": "Policy · Rota",
    "/learning": "Learning · Rota",
    "/accounting": "Accounting · Rota",
    "/no/such/page": "No such page · Rota",
}
#: The key after `g`, and where it leads.
KEYS = {
    "o": "/",
    "j": "/jobs",
    "r": "/groups",
    "i": "/pipelines",
    "g": "/gantt",
    "m": "/machines",
    "p": "/policy",
    "l": "/learning",
    "a": "/accounting",
}
#: What is written where there is nothing yet: what to type.
EMPTY = {
    "/": "rota add",
    "/jobs": "rota add",
    "/groups": "rota add -g",
    "/pipelines": "rota pipeline run",
    "/policy": "rota limit",
    "/policy?tab=quotas": "rota quota set",
    "/policy?tab=calendars": "rota calendar add",
    "/learning": "rota add --learn",
    "/accounting": "rota add --project",
}
_WIDER = """() => document.documentElement.scrollWidth <= innerWidth ? [] :
    [...document.querySelectorAll("main *")].filter((each) => each.getBoundingClientRect().right > innerWidth)
        .map((each) => each.outerHTML.slice(0, 120))"""
_PHONE: ViewportSize = {"width": 390, "height": 844}


@pytest.fixture(scope="module", autouse=True)
def hostile(busy: Deployment) -> None:
    """The same hostile text, wherever somebody can write some."""
    text = ("-n", HOSTILE, "-g", HOSTILE, "--project", HOSTILE, "--learn", HOSTILE)
    busy.ok("add", *text, "-l", "core=1,walltime=1h", "--", "sh", "-c", "sleep 1000", HOSTILE)
    busy.ok("add", *text, "--retries", "0", "--", "sh", "-c", "exit 3", HOSTILE)
    wait_until(lambda: "failed" in busy.states(f"@{HOSTILE}").values(), "the second has failed")


@pytest.fixture(scope="module")
def host(busy: Deployment) -> str:
    return str(busy.json("node", "list")["nodes"][0]["host"])


@pytest.fixture(scope="module")
def new(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A deployment in which nobody has done anything."""
    with deployment(tmp_path_factory.mktemp("new"), http="on", cores="2") as made:
        made.start()
        yield made


def settled(page: Page) -> None:
    """Wait until the page shows what it has to show."""
    expect(page.get_by_role("main")).to_be_visible()
    expect(page.locator("[aria-busy=true]")).to_have_count(0)


def wider(page: Page) -> list[str]:
    """What makes the page wider than the window, once charts have taken their new size."""
    found: list[str] = []
    for _ in range(50):
        found = page.evaluate(_WIDER)
        if not found:
            break
        page.wait_for_timeout(100)
    return found


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_sound(busy: Deployment, guest: Visitor, host: str, path: str) -> None:
    page = guest.page
    guest.go(path.replace("HOST", host))
    settled(page)
    expect(page).to_have_title(re.compile("^" + re.escape(PAGES[path].replace("HOST", host))))
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    assert unnamed(page) == []
    assert violations(page) == []
    assert page.locator("img:not([src='/icon.svg'])").count() == 0, "text became an element"
    page.set_viewport_size(_PHONE)
    assert wider(page) == []
    page.set_viewport_size(DESK)


@pytest.mark.parametrize("path", ["/jobs", "/groups", "/learning", "/accounting?by=project", "/machines/HOST"])
def test_hostile_text_is_shown_as_it_is(busy: Deployment, guest: Visitor, host: str, path: str) -> None:
    guest.go(path.replace("HOST", host))
    expect(guest.page.get_by_text(HOSTILE, exact=True).first).to_be_visible()
    assert guest.page.title() != "owned"


def test_every_page_is_within_reach_of_a_thumb(busy: Deployment, guest: Visitor) -> None:
    guest.go("/groups")
    guest.page.set_viewport_size(_PHONE)
    settled(guest.page)
    edges = (
        guest.page.get_by_role("navigation", name="Pages")
        .locator("li a")
        .evaluate_all(
            "all => all.map(each => { const box = each.getBoundingClientRect(); return [box.left, box.right] })"
        )
    )
    assert len(edges) == len(KEYS)
    assert [edge for edge in edges if edge[0] < 0 or edge[1] > _PHONE["width"] or edge[1] - edge[0] < 30] == []
    guest.page.set_viewport_size(DESK)


def test_a_phone_shows_whether_the_page_is_live_and_whose_it_is(busy: Deployment, guest: Visitor) -> None:
    guest.go("/groups")
    guest.page.set_viewport_size(_PHONE)
    settled(guest.page)
    banner = guest.page.get_by_role("banner")
    expect(banner.get_by_role("status")).to_have_text("Live")
    for shown in (banner.locator(".link i"), banner.locator(".who")):
        box = shown.bounding_box()
        assert box is not None
        assert box["width"] >= 8
        assert box["x"] + box["width"] <= _PHONE["width"]
    guest.page.set_viewport_size(DESK)


def test_keys_go_to_every_page(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    guest.go("/policy")
    settled(page)
    for key, path in KEYS.items():
        page.keyboard.press("g")
        page.keyboard.press(key)
        expect(page).to_have_url(re.compile(re.escape(path) + "$"))
    page.keyboard.press("/")
    expect(page.get_by_label("Search jobs", exact=True)).to_be_focused()
    page.keyboard.type("gj?")
    expect(page).to_have_url(re.compile("/accounting$"))
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_a_question_mark_lists_the_keys(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    guest.go("/groups")
    settled(page)
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys).to_contain_text("next, previous row")
    for name in (
        "Overview",
        "Jobs",
        "Groups",
        "Pipelines",
        "Gantt",
        "Machines",
        "Policy",
        "Learning",
        "Accounting",
    ):
        expect(keys.get_by_text(name, exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()


def test_colours_stay_as_they_were_chosen(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    guest.go("/groups")
    light = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    page.get_by_role("button", name="Dark colours").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") != light
    guest.go("/machines")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.get_by_role("button", name="Light colours").click()
    guest.go("/")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")


def test_a_new_deployment_says_what_to_type(new: Deployment, visit: Callable[..., Visitor]) -> None:
    visitor = visit(new)
    for path, command in EMPTY.items():
        visitor.go(path)
        settled(visitor.page)
        expect(visitor.page.get_by_role("main").get_by_text(command).first).to_be_visible()
        expect(visitor.page.get_by_role("heading", level=1)).to_have_count(1)
    for path in ("/gantt", "/machines"):
        visitor.go(path)
        settled(visitor.page)
        expect(visitor.page.get_by_role("heading", level=1)).to_have_count(1)


def test_a_page_whose_manager_stopped_says_what_to_type_and_goes_on_after_the_next_login(
    new: Deployment, browser: Browser
) -> None:
    visitor = Visitor(browser)  # who may complain: the manager is away for a while
    visitor.log_in(new)
    page = visitor.page
    visitor.go("/groups")
    link = page.get_by_role("banner").get_by_role("status")
    expect(link).to_have_text("Live")
    new.ok("manager", "stop")
    expect(link).to_have_text("Reconnecting…")
    new.start()
    # Somebody else may have been sent the cookie meanwhile: it is worth nothing now.
    expect(page.get_by_text("This session is over.")).to_be_visible()
    expect(page.get_by_text("rota manager ui", exact=True)).to_be_visible()
    visitor.log_in(new)
    assert page.url.endswith("/groups")
    new.ok("add", "-g", "after-all", "--", "true")
    expect(link).to_have_text("Live")
    expect(page.get_by_role("link", name="after-all", exact=True)).to_be_visible()
    expect(page.get_by_role("progressbar", name="Progress of after-all")).to_have_attribute("aria-valuenow", "1")
    visitor.close()


def test_a_paused_manager_is_told_on_every_page(new: Deployment, visit: Callable[..., Visitor]) -> None:
    visitor = visit(new)
    page = visitor.page
    strip = page.get_by_role("main").get_by_role("status").filter(has_text="The manager is paused.")
    visitor.go("/jobs")
    settled(page)
    expect(strip).to_have_count(0)
    new.ok("manager", "pause")
    expect(strip).to_be_visible()
    new.ok("add", "-g", "waits", "--", "true")
    visitor.go("/gantt")
    expect(page.get_by_text(re.compile("the manager is paused", re.I)).last).to_be_visible()
    expect(page.get_by_text("held, dependent, blocked or delayed")).to_have_count(0)
    visitor.go("/")
    resume = page.get_by_role("button", name="Resume: The manager is paused")
    expect(page.get_by_role("listitem").filter(has=resume)).to_contain_text("The manager is paused")
    resume.click()
    expect(strip).to_have_count(0)


def test_clocks_stand_still_while_the_manager_does_not_answer(new: Deployment, browser: Browser) -> None:
    visitor = Visitor(browser)  # who may complain: the manager is away
    visitor.log_in(new)
    page = visitor.page
    new.ok("add", "-g", "ticks", "--", "sleep", "1000")
    (job,) = new.states("@ticks")
    wait_until(lambda: new.state(job) == "running", "it runs")
    visitor.go(f"/jobs/{job}")
    running = page.get_by_text(re.compile("^running for"))
    expect(running).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
    new.ok("manager", "stop")
    age = page.get_by_role("alert").filter(
        has_text=re.compile(r"The manager does not answer\. Data from \d\d:\d\d:\d\d")
    )
    expect(age).to_be_visible()
    shown, old = running.inner_text(), age.inner_text()
    expect(age).not_to_have_text(old)  # its own clock goes on
    assert running.inner_text() == shown
    visitor.close()
    new.start()
    new.ok("kill", "@ticks")
