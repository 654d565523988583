"""How one gets in, what the browser keeps of it, and how one leaves."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.deployment import Deployment, deployment
from tests.web.browser import Visitor, unnamed

OVER = "This session is over."


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A manager to whom nobody has given a job."""
    with deployment(tmp_path_factory.mktemp("door"), http="on", cores="2") as made:
        made.start()
        yield made


@pytest.fixture
def stranger(browser: Browser) -> Iterator[Visitor]:
    """Somebody who has not logged in: that they are refused is all that their console may tell."""
    made = Visitor(browser)
    yield made
    made.close()
    assert [each for each in made.complaints if "401 (Unauthorized)" not in each] == []


def link_of(rota: Deployment) -> str:
    return rota.ok("manager", "ui", "--no-open").strip()


@pytest.fixture(scope="module")
def home(door: Deployment) -> str:
    """The address of the dashboard, without a code."""
    return link_of(door).partition("/login")[0]


def expect_inside(page: Page) -> None:
    expect(page.get_by_role("navigation", name="Pages")).to_be_visible()


def expect_outside(page: Page, why: str | re.Pattern[str] = "You are not logged in.") -> None:
    expect(page.get_by_text(why)).to_be_visible()
    expect(page.get_by_role("navigation", name="Pages")).to_have_count(0)


def test_the_link_logs_in_and_leaves_no_code_in_the_address(door: Deployment, stranger: Visitor) -> None:
    link = link_of(door)
    code = link.partition("#")[2]
    assert code
    stranger.page.goto(link)
    expect_inside(stranger.page)
    assert stranger.page.url == f"{link.partition('/login')[0]}/"
    kept = stranger.page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, history.state])")
    assert code not in kept
    stranger.page.reload()
    expect_inside(stranger.page)


def test_the_code_is_never_sent_in_an_address(door: Deployment, stranger: Visitor) -> None:
    addresses: list[str] = []
    stranger.page.on("request", lambda request: addresses.append(request.url.partition("#")[0]))
    link = link_of(door)
    stranger.page.goto(link)
    expect_inside(stranger.page)
    assert any(each.endswith("/login") for each in addresses)
    assert not any(link.partition("#")[2] in each for each in addresses)


def test_the_same_link_is_refused_a_second_time_and_says_what_to_do(
    door: Deployment, browser: Browser, stranger: Visitor
) -> None:
    link = link_of(door)
    first = Visitor(browser)
    try:
        first.page.goto(link)
        expect_inside(first.page)
        stranger.page.goto(link)
        expect(stranger.page.get_by_text("this link is not valid any more")).to_be_visible()
        expect(stranger.page.get_by_text("rota manager ui", exact=True)).to_be_visible()
        assert stranger.context.cookies() == []
        # Nor does it disturb the one who used it first.
        first.page.reload()
        expect_inside(first.page)
    finally:
        first.close()


def test_without_a_cookie_the_page_tells_what_to_type(home: str, stranger: Visitor) -> None:
    stranger.page.goto(home)
    expect_outside(stranger.page)
    expect(stranger.page.get_by_text("rota manager ui", exact=True)).to_be_visible()
    expect(stranger.page.get_by_role("button", name="Copy: rota manager ui")).to_be_visible()
    assert unnamed(stranger.page) == []


def test_the_cookie_is_for_this_host_only_and_out_of_reach_of_scripts(
    door: Deployment, visit: Callable[..., Visitor]
) -> None:
    visitor = visit(door)
    (cookie,) = visitor.context.cookies()
    assert cookie["name"].startswith("__Host-rota")
    assert (cookie["httpOnly"], cookie["secure"], cookie["sameSite"]) == (True, True, "Strict")
    assert (cookie["domain"], cookie["path"]) == ("localhost", "/")
    assert cookie["expires"] > 0
    assert visitor.page.evaluate("document.cookie") == ""


def test_a_newcomer_is_told_what_to_type(door: Deployment, visit: Callable[..., Visitor]) -> None:
    visitor = visit(door)
    expect(visitor.page.get_by_role("heading", name="Ready for your first job")).to_be_visible()
    expect(visitor.page.get_by_text("rota add -- sleep 10", exact=True)).to_be_visible()
    visitor.go("/jobs")
    expect(visitor.page.get_by_role("heading", name="There are no jobs yet")).to_be_visible()
    expect(visitor.page.get_by_text("rota add -- sleep 10", exact=True)).to_be_visible()
    assert unnamed(visitor.page) == []


def test_who_wanted_another_page_comes_to_it_after_the_login(
    door: Deployment, home: str, stranger: Visitor
) -> None:
    wanted = f"{home}/jobs?state=failed&sort=-wall"
    stranger.page.goto(wanted)
    expect_outside(stranger.page)
    tab = stranger.context.new_page()  # as a terminal opens it
    tab.goto(link_of(door))
    expect_inside(tab)
    assert tab.url == wanted
    expect(tab.get_by_role("button", name="failed")).to_have_attribute("aria-pressed", "true")
    # Once: the next login begins at the beginning.
    tab.goto(link_of(door))
    expect_inside(tab)
    assert tab.url == f"{home}/"


def test_a_used_link_does_no_harm_to_who_is_in_already(door: Deployment, stranger: Visitor) -> None:
    link = link_of(door)
    stranger.page.goto(link)
    expect_inside(stranger.page)
    again = stranger.context.new_page()
    again.goto(link)
    expect_inside(again)
    expect(again.get_by_text("You are still logged in.")).to_be_visible()
    assert "#" not in again.url


def test_logging_out_ends_the_session_in_every_tab_and_for_good(
    door: Deployment, home: str, stranger: Visitor
) -> None:
    stranger.log_in(door)
    other = stranger.context.new_page()
    other.goto(f"{home}/groups")
    expect_inside(other)
    expect(other.get_by_text("Live", exact=True)).to_be_visible()
    cookies = stranger.context.cookies()
    stranger.page.get_by_role("button", name="Log out").click()
    expect_outside(stranger.page)
    expect_outside(other, OVER)  # without being touched
    assert stranger.context.cookies() == []
    # Whoever kept the cookie has nothing.
    stranger.context.add_cookies(cookies)  # type: ignore[arg-type]
    stranger.page.goto(home)
    expect_outside(stranger.page, OVER)


def test_a_page_that_loses_its_cookie_says_that_its_session_is_over(door: Deployment, stranger: Visitor) -> None:
    stranger.log_in(door)
    stranger.go("/groups")
    expect(stranger.page.get_by_text("Live", exact=True)).to_be_visible()
    stranger.context.clear_cookies()
    door.ok("add", "-g", "unseen", "--", "true")  # makes the page ask again
    expect_outside(stranger.page, OVER)


def test_a_session_that_is_taken_away_ends_on_the_page_and_goes_on_after_the_next_login(
    door: Deployment, stranger: Visitor
) -> None:
    stranger.log_in(door)
    stranger.go("/groups?sort=name")
    expect_inside(stranger.page)
    wanted = stranger.page.url
    newest = [each["name"] for each in door.json("manager", "token", "list")["tokens"] if each["of"]][-1]
    door.ok("manager", "token", "remove", newest)
    expect_outside(stranger.page, OVER)
    expect(stranger.page.get_by_text("rota manager ui", exact=True)).to_be_visible()
    tab = stranger.context.new_page()  # as a terminal opens it
    tab.goto(link_of(door))
    expect_inside(tab)
    assert tab.url == wanted
    expect_inside(stranger.page)  # without being touched
    assert stranger.page.url == wanted


def test_who_is_told_to_wait_gets_in_with_the_same_link(door: Deployment, stranger: Visitor) -> None:
    refused = {"error": {"code": "too_many", "message": "too many requests", "hint": "wait a moment"}}
    stranger.page.route("**/api/v1/session", lambda route: route.fulfill(status=429, json=refused), times=1)
    stranger.log_in(door)
    stranger.complaints = [each for each in stranger.complaints if "429" not in each]
