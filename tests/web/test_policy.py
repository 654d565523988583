"""Policy: what holds here, and how administrators, and nobody else, change it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.deployment import Deployment, wait_until
from tests.web.browser import Visitor


@pytest.fixture(scope="module", autouse=True)
def licence(busy: Deployment) -> None:
    """Of two licences one is taken."""
    busy.ok("limit", "licence:2")
    busy.ok("add", "-g", "licensed", "--limit", "licence", "--", "sleep", "1000")
    wait_until(lambda: set(busy.states("@licensed").values()) == {"running"}, "it runs")


@pytest.fixture
def user(browser: Browser, busy: Deployment, guest: Visitor) -> Iterator[Visitor]:
    """Somebody who may look and run jobs, but not change what holds for all."""
    token = busy.ok("manager", "token", "add", "somebody", "--role", "user", "--quiet").strip()
    made = Visitor(browser, extra_http_headers={"Authorization": f"Bearer {token}"})
    made.page.goto("/".join(guest.page.url.split("/")[:3]) + "/policy")
    yield made
    made.close()
    busy.ok("manager", "token", "remove", "somebody")
    assert made.complaints == []


def limits(rota: Deployment) -> dict[str, int]:
    return {each["name"]: each["capacity"] for each in rota.json("limit")["limits"]}


def row(page: Page, words: str) -> Locator:
    return page.get_by_role("main").get_by_role("row").filter(has_text=words)


def save(page: Page, title: str, **fields: str) -> None:
    """Fill in a dialog and save it."""
    dialog = page.get_by_role("dialog", name=title)
    for label, value in fields.items():
        dialog.get_by_label(label.replace("_", " "), exact=True).fill(value)
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()


def test_a_limit_shows_its_use_against_its_capacity(busy: Deployment, guest: Visitor) -> None:
    guest.go("/policy")
    meter = guest.page.get_by_role("meter", name="licence")
    expect(meter).to_have_attribute("aria-valuenow", "1")
    expect(meter).to_have_attribute("aria-valuemax", "2")
    expect(row(guest.page, "licence")).to_contain_text("1 of 2")


def test_a_limit_that_is_changed_on_the_page_holds(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    guest.go("/policy")
    page.get_by_role("button", name="Change licence").click()
    save(page, "Limit licence", Units="5")
    expect(row(page, "licence")).to_contain_text("1 of 5")
    assert limits(busy)["licence"] == 5
    expect(page.get_by_text("licence: 5 at once")).to_be_visible()
    page.get_by_role("button", name="New limit").click()
    save(page, "New limit", Name="database", Units="3")
    expect(row(page, "database")).to_contain_text("0 of 3")
    assert limits(busy)["database"] == 3
    page.get_by_role("button", name="Change database").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove the limit").click()
    expect(page.get_by_role("dialog")).to_be_hidden()
    wait_until(lambda: limits(busy).get("database") is None, "there is no limit any more")


def test_what_makes_no_sense_is_not_written(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    guest.go("/policy")
    before = limits(busy)
    page.get_by_role("button", name="Change licence").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Units").fill("many")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("'many' is not a whole number")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert limits(busy) == before


def test_a_limit_that_is_typed_in_a_shell_appears(busy: Deployment, guest: Visitor) -> None:
    guest.go("/policy")
    expect(row(guest.page, "licence")).to_contain_text("1 of")
    busy.ok("limit", "licence:7")
    expect(row(guest.page, "licence")).to_contain_text("1 of 7")
    busy.ok("limit", "shell:4")
    expect(row(guest.page, "shell")).to_contain_text("0 of 4")


def test_queues_are_added_changed_and_removed(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    guest.go("/policy?tab=queues")
    expect(row(page, "besteffort")).to_be_visible()
    page.get_by_role("button", name="New queue").click()
    save(page, "New queue", Name="night", Priority="7", Walltime="8h", Shares="alice=0.5")
    expect(row(page, "night")).to_contain_text("alice 0.5")
    queues = {each["name"]: each for each in busy.json("queue", "list")["queues"]}
    assert (queues["night"]["priority"], queues["night"]["walltime_s"]) == (7, 8 * 3600)
    page.get_by_role("button", name="Remove queue night").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(row(page, "night")).to_be_hidden()
    assert "night" not in {each["name"] for each in busy.json("queue", "list")["queues"]}


def test_a_queue_is_closed_and_says_so(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    guest.go("/policy?tab=queues")
    busy.ok("queue", "add", "door")
    busy.ok("queue", "close", "door", "--reason", "new disks")
    tag = row(page, "door").get_by_text("closed", exact=True)
    expect(tag).to_have_attribute("title", "new disks")
    page.get_by_role("button", name="Change queue door").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Why it is closed")).to_have_value("new disks")
    dialog.get_by_label("New jobs").select_option("open")
    save(page, "Queue door")
    expect(tag).to_have_count(0)
    assert not any(each["closed"] for each in busy.json("queue", "list")["queues"])
    busy.ok("queue", "remove", "door")


def test_who_may_use_a_queue_and_the_highest_priority_in_it_are_shown_and_written(
    busy: Deployment, guest: Visitor
) -> None:
    page = guest.page
    guest.go("/policy?tab=queues")
    expect(row(page, "admin").get_by_role("cell", name="admins", exact=True)).to_be_visible()
    expect(row(page, "default").get_by_role("cell", name="all", exact=True)).to_be_visible()
    page.get_by_role("button", name="New queue").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Who may use it").select_option("admins")
    dialog.get_by_label("Highest priority of jobs").fill("300")
    dialog.get_by_label("Name").fill("urgent")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("max_priority")
    save(page, "New queue", Highest_priority_of_jobs="120")
    expect(row(page, "urgent").get_by_role("cell", name="admins priority ≤ 120")).to_be_visible()
    assert queue(busy, "urgent", "admins_only", "max_priority") == (True, 120)
    page.get_by_role("button", name="Change queue urgent").click()
    page.get_by_role("dialog").get_by_label("Who may use it").select_option("all")
    save(page, "Queue urgent", Highest_priority_of_jobs="")
    expect(row(page, "urgent").get_by_role("cell", name="all", exact=True)).to_be_visible()
    assert queue(busy, "urgent", "admins_only", "max_priority") == (False, None)
    busy.ok("queue", "remove", "urgent")
    guest.complaints = [each for each in guest.complaints if "422" not in each and "400" not in each]


def queue(rota: Deployment, name: str, *fields: str) -> tuple[object, ...]:
    (found,) = [each for each in rota.json("queue", "list")["queues"] if each["name"] == name]
    return tuple(found[field] for field in fields)


def test_the_constants_of_fair_share_are_shown_and_written(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    guest.go("/policy?tab=shares")
    expect(page.get_by_text("half-life 7d · no window")).to_be_visible()
    page.get_by_role("button", name="Change fair share").click()
    dialog = page.get_by_role("dialog", name="Fair share")
    dialog.get_by_label("Window").fill("1s")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("window_s")
    dialog.get_by_label("Window").fill("soon")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("Window: 'soon' is not a time")
    save(page, "Fair share", Window="60d", Project="0.5", **{"Half-life": "14d"})
    expect(page.get_by_text("project 0.5, used 1, asked 1 · half-life 14d · window 60d")).to_be_visible()
    fair = busy.json("share", "list")["fair_share"]
    assert (fair["project"], fair["half_life_s"], fair["window_s"]) == (0.5, 14 * 86400, 60 * 86400)
    page.get_by_role("button", name="Change fair share").click()
    save(page, "Fair share", Window="", Project="", **{"Half-life": ""})
    expect(page.get_by_text("project by shares, used 1, asked 1 · half-life 7d · no window")).to_be_visible()
    guest.complaints = [each for each in guest.complaints if "422" not in each and "400" not in each]


def test_quotas_and_the_calendar_are_written(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    guest.go("/policy?tab=quotas")
    expect(page.get_by_text("rota quota set '*,*,*,/' 16")).to_be_visible()
    page.get_by_role("button", name="New quota").click()
    save(page, "New quota", Resources="0.5*ALL", Jobs="20", Rule_set="day")
    expect(row(page, "0.5*ALL")).to_contain_text("day")
    (written,) = busy.json("quota", "list")["quotas"]
    assert (written["rule"], written["limits"], written["set"]) == ("*,*,*,/", ["0.5*ALL", 20, -1], "day")
    page.get_by_role("link", name="Calendar").click()
    page.get_by_role("button", name="New period").click()
    save(page, "New period", Hours_and_days="08:00-19:00 mon-fri", Rule_set="day")
    expect(row(page, "08:00-19:00 mon-fri")).to_contain_text("1 quota")
    assert [each["set"] for each in busy.json("calendar", "list")["periods"]] == ["day"]
    page.get_by_role("button", name="Change period").click()
    save(page, "Change a period", Description="working hours")
    expect(row(page, "08:00-19:00 mon-fri")).to_contain_text("working hours")
    page.get_by_role("button", name="Change period").click()
    save(page, "Change a period", Hours_and_days="08:00-20:00 mon-fri")
    expect(row(page, "08:00-20:00 mon-fri")).to_contain_text("working hours")


def test_a_quota_shows_who_holds_how_much_as_jobs_begin_and_end(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    busy.ok("quota", "set", "*,/,*,*", "4", "9")
    try:
        guest.go("/policy?tab=quotas")
        expect(row(page, "each project")).to_contain_text("4")
        expect(row(page, "genome")).to_have_count(0)
        request = ("--project", "genome", "-l", "core=1,walltime=10m")
        busy.ok("add", "-g", "genome", *request, "--", "sleep", "1000")
        busy.ok("add", "-g", "genome", *request, "--", "sleep", "1001")
        meter = page.get_by_role("meter", name="Resources of genome")
        expect(meter).to_have_attribute("aria-valuenow", "2")
        expect(meter).to_have_attribute("aria-valuemax", "4")
        expect(row(page, "genome")).to_contain_text("2 of 9")
        busy.ok("kill", "@genome")
        expect(row(page, "genome")).to_have_count(0)
    finally:
        busy.ok("kill", "@genome")
        busy.ok("quota", "remove", "*,/,*,*")


def test_a_rule_is_added_and_moved_and_holds(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    guest.go("/policy?tab=rules")
    before = [each["name"] for each in busy.json("rule", "list")["rules"]]
    page.get_by_role("button", name="New rule").click()
    dialog = page.get_by_role("dialog", name="New rule")
    dialog.get_by_label("Name").fill("no-giants")
    dialog.get_by_label("Jobs with").fill("walltime_over=30d")
    dialog.get_by_label("Then").select_option("reject")
    dialog.get_by_label("Message").fill("nothing may take a month")
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_role("listitem").filter(has_text="no-giants")).to_contain_text("nothing may take a month")
    refused = busy.rota("add", "--walltime", "40d", "--", "true")
    assert refused.returncode != 0
    assert "nothing may take a month" in refused.stderr
    page.get_by_role("button", name="Move no-giants up").click()
    wanted = [*before[:-1], "no-giants", before[-1]]
    wait_until(lambda: [each["name"] for each in busy.json("rule", "list")["rules"]] == wanted, "it is one higher")


def test_who_was_slower_is_told(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    guest.go("/policy?tab=queues")
    page.get_by_role("button", name="Change queue default").click()
    dialog = page.get_by_role("dialog", name="Queue default")
    dialog.get_by_label("Priority", exact=True).fill("3")
    busy.ok("queue", "add", "meanwhile")
    expect(row(page, "meanwhile")).to_be_visible()
    guest.page.route("**/api/v1/site", _as_from_before)
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("Somebody else changed the site meanwhile")
    page.unroute("**/api/v1/site")
    queues = {each["name"]: each for each in busy.json("queue", "list")["queues"]}
    assert queues["default"]["priority"] == 2
    guest.complaints = [each for each in guest.complaints if "409" not in each]


def _as_from_before(route: object) -> None:
    """Send a change as from a page that has not heard of the last one."""
    body = route.request.post_data_json  # type: ignore[attr-defined]
    route.continue_(post_data={**body, "base": body["base"] - 1})  # type: ignore[attr-defined]


def test_a_user_sees_all_and_changes_nothing(busy: Deployment, user: Visitor) -> None:
    page = user.page
    expect(row(page, "licence")).to_contain_text("1 of")
    expect(page.get_by_text("Administrators can change it.")).to_be_visible()
    for tab in ("Limits", "Queues", "Quotas", "Calendar", "Rules"):
        page.get_by_role("link", name=tab, exact=True).click()
        expect(page.get_by_role("main").get_by_role("heading", name=re.compile(tab, re.I)).first).to_be_visible()
        expect(page.get_by_role("main").get_by_role("button")).to_have_count(0)


def test_the_manager_refuses_what_a_user_asks_for_by_hand(busy: Deployment, user: Visitor) -> None:
    before = limits(busy)
    expect(row(user.page, "licence")).to_be_visible()
    status = user.page.evaluate("""async () => {
        const { csrf } = await (await fetch("/api/v1/session")).json();
        const headers = { "X-Rota-CSRF": csrf, "Content-Type": "application/json" };
        const answer = await fetch("/api/v1/limits/licence", { method: "PUT", headers, body: '{"capacity": 99}' });
        return answer.status;
    }""")
    assert status == 403
    assert limits(busy) == before
    user.complaints = [each for each in user.complaints if "403" not in each]


def test_standings_say_who_goes_first_and_why_and_a_form_leaves_alone_what_it_does_not_ask(
    busy: Deployment, guest: Visitor
) -> None:
    page = guest.page
    guest.go("/policy?tab=shares")
    expect(page.get_by_text("No queue goes by fair share")).to_be_visible()
    busy.ok("queue", "add", "lab", "--order", "fairshare", "--share", "project:bio=0.75", "--max-priority", "100")
    guest.go("/policy?tab=shares")
    expect(row(page, "75.0 %")).to_contain_text("its share")
    expect(page.get_by_text("whoever has the lowest karma goes first")).to_be_visible()
    guest.go("/policy?tab=queues")
    page.get_by_role("button", name="Change queue lab").click()
    save(page, "Queue lab", Priority="3")
    expect(row(page, "lab")).to_contain_text("3")
    (queue,) = [each for each in busy.json("queue", "list")["queues"] if each["name"] == "lab"]
    assert (queue["priority"], queue["max_priority"]) == (3, 100)
    busy.ok("queue", "remove", "lab")
