"""Groups: how far each is, and what is done to whole groups."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from tests.deployment import Deployment, wait_until
from tests.web.browser import Visitor

_ENDED = ("complete", "failed", "cancelled")


def row(page: Page, group: str) -> Locator:
    named = page.get_by_role("link", name=group, exact=True)
    return page.get_by_role("region", name="Groups").get_by_role("listitem").filter(has=named)


def bar(page: Page, group: str) -> Locator:
    return page.get_by_role("progressbar", name=f"Progress of {group}", exact=True)


def choose(page: Page, *groups: str) -> Locator:
    for group in groups:
        page.get_by_role("checkbox", name=f"Select {group}", exact=True).check()
    return page.get_by_role("toolbar", name="Selected groups")


def test_bars_and_numbers_are_those_of_rota_status(busy: Deployment, guest: Visitor) -> None:
    guest.go("/groups")
    groups = busy.json("status")["groups"]
    assert {"align", "broken", "slow", "later"} <= set(groups)
    expect(guest.page.get_by_text(f"{len(groups)} groups", exact=True)).to_be_visible()
    for name, counts in groups.items():
        total, ended = sum(counts.values()), sum(counts.get(state, 0) for state in _ENDED)
        expect(bar(guest.page, name)).to_have_attribute("aria-valuemax", str(total))
        expect(bar(guest.page, name)).to_have_attribute("aria-valuenow", str(ended))
        expect(row(guest.page, name)).to_contain_text(f"{ended} / {total}")


def test_a_bar_moves_when_a_job_ends(busy: Deployment, guest: Visitor) -> None:
    guest.go("/groups")
    expect(row(guest.page, "slow")).to_be_visible()
    busy.ok("add", "-g", "moving", "--", "sh", "-c", "until test -e go; do sleep 0.05; done")
    expect(row(guest.page, "moving")).to_contain_text("1 running")
    expect(bar(guest.page, "moving")).to_have_attribute("aria-valuenow", "0")
    (busy.work / "go").touch()
    expect(bar(guest.page, "moving")).to_have_attribute("aria-valuenow", "1")


def test_numbers_lead_to_the_jobs_they_count(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    guest.go("/groups")
    row(page, "broken").get_by_role("link", name="1 failed").click()
    expect(page).to_have_url(re.compile(r"/jobs\?group=broken&state=failed$"))
    expect(page.get_by_role("link", name="41", exact=True)).to_be_visible()
    page.go_back()
    row(page, "align").get_by_role("link", name="align", exact=True).click()
    expect(page).to_have_url(re.compile(r"/jobs\?group=align$"))
    expect(page.get_by_role("grid", name="Jobs")).to_have_attribute("aria-rowcount", "41")


def test_failed_jobs_of_a_group_run_again(busy: Deployment, guest: Visitor) -> None:
    job = int(busy.ok("add", "--quiet", "-g", "mended", "--retries", "0", "--", "test", "-e", "mended"))
    wait_until(lambda: busy.state(job) == "failed", "it has failed")
    guest.go("/groups")
    (busy.work / "mended").touch()
    guest.page.get_by_role("button", name="Retry failed of mended").click()
    expect(guest.page.get_by_text("1 job will run again")).to_be_visible()
    expect(bar(guest.page, "mended")).to_have_attribute("aria-valuetext", "100 % done")
    wait_until(lambda: busy.state(job) == "complete", "it is complete")


def test_a_group_is_killed_only_after_a_question(busy: Deployment, guest: Visitor) -> None:
    job = int(busy.ok("add", "--quiet", "-g", "doomed", "--", "sleep", "1000"))
    wait_until(lambda: busy.state(job) == "running", "it runs")
    page = guest.page
    guest.go("/groups")
    dialog = page.get_by_role("dialog", name="Kill 1 job of “doomed”?")
    page.get_by_role("button", name="Kill doomed").click()
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_be_hidden()
    assert busy.state(job) == "running"
    page.get_by_role("button", name="Kill doomed").click()
    dialog.get_by_role("button", name="Kill the group").click()
    expect(row(page, "doomed").get_by_role("link", name="1 cancelled")).to_be_visible()
    assert busy.state(job) == "cancelled"


def test_a_cancelled_job_is_not_drawn_like_one_that_waits(busy: Deployment, guest: Visitor) -> None:
    first = int(busy.ok("add", "--quiet", "-g", "mixed", "--after", "42", "--", "true"))
    busy.ok("add", "-g", "mixed", "--after", "42", "--", "true")
    busy.ok("kill", str(first))
    guest.go("/groups")
    parts = bar(guest.page, "mixed").locator("i")
    expect(parts).to_have_count(2)
    looks = parts.evaluate_all(
        "all => all.map(e => { const s = getComputedStyle(e); return s.backgroundColor + s.backgroundImage })"
    )
    assert len(set(looks)) == 2, looks


def test_several_groups_are_held_released_and_killed_together(busy: Deployment, guest: Visitor) -> None:
    for group in ("red", "green", "blue"):
        busy.ok("add", "-g", group, "--after", "42", "--", "true")
    page = guest.page
    guest.go("/groups")
    chosen = choose(page, "red", "green")
    expect(chosen).to_contain_text("2 groups selected")
    chosen.get_by_role("button", name="Hold").click()
    expect(page.get_by_text("2 jobs held")).to_be_visible()
    assert set(busy.states("@red", "@green").values()) == {"held"}
    assert set(busy.states("@blue").values()) == {"dependent"}
    chosen.get_by_role("button", name="Release").click()
    expect(page.get_by_text("2 jobs released")).to_be_visible()
    assert set(busy.states("@red", "@green").values()) == {"dependent"}
    chosen.get_by_role("button", name="Kill…").click()
    page.get_by_role("dialog", name="Kill 2 jobs of 2 groups?").get_by_role(
        "button", name="Kill the groups"
    ).click()
    expect(row(page, "red")).to_contain_text("1 cancelled")
    expect(row(page, "green")).to_contain_text("1 cancelled")
    assert set(busy.states("@blue").values()) == {"dependent"}
    chosen.get_by_role("button", name="Clear the selection").click()
    expect(chosen).to_be_hidden()


def test_what_cannot_start_is_not_said_to_wait_or_to_end(busy: Deployment, guest: Visitor) -> None:
    busy.ok("add", "-g", "stuck", "--after", "42", "-", input="echo one\necho two\n")
    busy.ok("hold", "@stuck")
    guest.go("/groups")
    expect(row(guest.page, "stuck")).to_contain_text("2 held")
    expect(row(guest.page, "stuck")).not_to_contain_text("waiting")
    expect(row(guest.page, "stuck").get_by_title("What is left is held or blocked")).to_be_visible()
    guest.go("/")
    expect(guest.page.get_by_text("what is left is held", exact=True)).to_be_visible()
    busy.ok("kill", "@stuck")


def test_keys_move_select_and_open(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    guest.go("/groups?q=l&sort=name")
    expect(page.get_by_label("Filter by name")).to_have_value("l")
    names = page.get_by_role("region", name="Groups").locator(".group-name")
    expect(names.first).to_have_text("align")
    wanted = sorted(name for name in busy.json("status")["groups"] if "l" in name)
    expect(names).to_have_text(wanted)
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.get_by_role("checkbox", name="Select align")).to_be_checked()
    page.keyboard.press("Escape")
    expect(page.get_by_role("checkbox", name="Select align")).not_to_be_checked()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/jobs\?group=align$"))


def test_every_state_of_a_group_is_in_view(busy: Deployment, guest: Visitor) -> None:
    def add(*words: str) -> int:
        (job,) = busy.json("add", "-g", "motley", "--retries", "0", *words)["added"]
        return int(job)

    failed = add("--", "false")
    add("--", "sleep", "1000")
    wait_until(lambda: busy.state(failed) == "failed", "one has failed")
    add("--after", str(failed), "--", "echo", "never")
    for command in ("echo held", "echo killed", "echo waits"):
        add("--after", "42", "--", "sh", "-c", command)
    waits = sorted(busy.states("@motley,state=dependent"))
    busy.ok("hold", str(waits[0]))
    busy.ok("kill", str(waits[1]))
    guest.go("/groups?q=motley")
    states = guest.page.locator("li.group-row .group-states")
    for text in ("1 failed", "1 running", "1 cancelled", "1 held", "1 blocked", "1 waiting"):
        expect(states).to_contain_text(text)
    edges = """all => {
        const box = all.getBoundingClientRect();
        return [...all.children].map(each => [each.textContent, each.getBoundingClientRect()])
            .filter(([, own]) => own.bottom > box.bottom + 1 || own.right > box.right + 1).map(([text]) => text);
    }"""
    cut = states.evaluate(edges)
    assert cut == []
    busy.ok("kill", "@motley")
