"""The page of one job: what it is, why it waits, what it prints, what happened to it, and what can be done."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.deployment import Deployment, wait_until
from tests.web.browser import Visitor, unnamed
from tests.web.conftest import HOSTILE

#: What a job may print to do harm: markup, a title for the terminal, a clear screen.
PRINTED = r"\033[31mred\033[0m <script>document.title='owned'</script>\n\033]0;owned\007\033[2Jafter <b>all</b>\n"


def card(page: Page, title: str) -> Locator:
    """One of the parts of the page."""
    return page.locator("section.card").filter(has=page.get_by_role("heading", name=title, exact=True))


def output(page: Page, stream: str = "stdout", attempt: int = 1) -> Locator:
    return page.get_by_role("region", name=f"{stream} of attempt {attempt}")


def state(page: Page) -> Locator:
    return page.locator(".job-title .badge")


def add(rota: Deployment, group: str, *words: str) -> int:
    """A job, alone in its group."""
    rota.ok("add", "-g", group, "--retries", "0", *words)
    (job,) = rota.states(f"@{group}")
    return job


def until(flag: Path) -> str:
    return f"until test -e {flag}; do sleep 0.1; done"


def test_the_story_and_the_attempts_tell_what_happened(busy: Deployment, guest: Visitor) -> None:
    guest.go("/jobs/41")
    page = guest.page
    expect(state(page)).to_have_text("failed")
    expect(page).to_have_title(re.compile(r"^41 .*failed"))
    events = [line["event"] for line in busy.json("show", "41")["story"]]
    assert {"added", "started", "failed"} <= set(events)
    expect(card(page, "Story").get_by_role("listitem").locator("strong")).to_have_text(
        [each.replace("_", " ") for each in events]
    )
    attempt = card(page, "Attempts").get_by_role("listitem").filter(has_text="Attempt 1")
    expect(attempt).to_contain_text("exit 3")
    expect(attempt.get_by_role("img", name=re.compile("^time: used"))).to_be_visible()
    # Its own peak is not known: it was so short that only its runner's is.
    expect(attempt.get_by_role("img", name=re.compile("^memory: (?!used)"))).to_be_visible()


def test_each_stream_has_its_tab_and_its_address(busy: Deployment, guest: Visitor) -> None:
    guest.go("/jobs/41")
    page = guest.page
    # Of a job that failed, what it complained about comes first.
    expect(page.get_by_role("tab", name="stderr")).to_have_attribute("aria-selected", "true")
    expect(output(page, "stderr")).to_have_text("wrong")
    page.get_by_role("tab", name="stdout").click()
    expect(output(page)).to_have_text("before")
    expect(page).to_have_url(re.compile(r"/jobs/41\?stream=out$"))
    page.reload()
    expect(output(page)).to_have_text("before")
    page.keyboard.press("Tab")
    page.get_by_role("tab", name="stdout").focus()
    page.keyboard.press("ArrowRight")
    expect(output(page, "stderr")).to_have_text("wrong")


def test_output_that_is_missing_is_told_in_its_place(busy: Deployment, guest: Visitor) -> None:
    job = add(busy, "damaged", "--sync", "--", "printf", "it was %s here", "once")
    (segment,) = (each for each in (busy.home / "output").iterdir() if b"it was once here" in each.read_bytes())
    with segment.open("r+b") as file:
        file.seek(segment.read_bytes().index(b"it was once here"))
        file.write(b"I")
    guest.go(f"/jobs/{job}")
    page = guest.page
    expect(state(page)).to_have_text("complete")
    expect(output(page)).to_contain_text("[rota: 16 bytes are missing here: the file that held it is damaged]")
    expect(card(page, "Output").get_by_role("alert")).to_contain_text("damaged")
    attempt = card(page, "Attempts").get_by_role("listitem").filter(has_text="Attempt 1")
    expect(attempt).to_contain_text("Output is missing: the file that held it is damaged")


def test_output_grows_while_the_job_prints(busy: Deployment, guest: Visitor) -> None:
    more, end = busy.work / "print-more", busy.work / "print-end"
    job = add(
        busy, "prints", "--", "sh", "-c", f"echo first; {until(more)}; echo second; {until(end)}; echo third"
    )
    guest.go(f"/jobs/{job}")
    page = guest.page
    expect(output(page)).to_have_text("first")
    expect(state(page)).to_have_text("running")
    page.evaluate("window.stayed = true")
    more.touch()
    expect(output(page)).to_have_text("firstsecond")
    expect(state(page)).to_have_text("running")
    end.touch()
    expect(output(page)).to_have_text("firstsecondthird")
    expect(state(page)).to_have_text("complete")
    expect(page.get_by_role("link", name="Download")).to_be_visible()
    assert page.evaluate("window.stayed") is True


def test_a_waiting_job_names_what_it_waits_for(busy: Deployment, guest: Visitor) -> None:
    guest.go("/jobs/43")
    page = guest.page
    why = card(page, "Why it is not running")
    expect(why).to_contain_text("waits for job 42")
    expect(card(page, "Output")).to_contain_text("It has not run yet")
    why.get_by_role("link", name="job 42").click()
    expect(page).to_have_url(re.compile(r"/jobs/42$"))
    expect(state(page)).to_have_text("running")
    expect(card(page, "Why it is not running")).to_have_count(0)


def test_a_job_that_can_never_run_says_so(busy: Deployment, guest: Visitor) -> None:
    guest.go("/jobs/44")
    expect(state(guest.page)).to_have_text("blocked")
    expect(card(guest.page, "Why it is not running").get_by_role("link", name="job 41")).to_be_visible()


def test_the_graph_leads_to_its_neighbours(busy: Deployment, guest: Visitor) -> None:
    guest.go("/jobs/42")
    page = guest.page
    expect(output(page)).to_have_text("hello")  # what is above the graph no longer changes its height
    graph = page.get_by_role("group", name="Dependencies")
    graph.get_by_role("link", name=re.compile(r"\b43\b.*dependent")).click()
    expect(page).to_have_url(re.compile(r"/jobs/43$"))
    expect(graph.get_by_role("link", name=re.compile(r"\b42\b.*running"))).to_be_visible()
    page.go_back()
    expect(page).to_have_url(re.compile(r"/jobs/42$"))
    expect(state(page)).to_have_text("running")


def test_a_kill_is_asked_about_and_retry_runs_it_again(busy: Deployment, guest: Visitor) -> None:
    job = add(busy, "doomed", "--", "sh", "-c", "echo here; sleep 1000")
    guest.go(f"/jobs/{job}")
    page = guest.page
    expect(state(page)).to_have_text("running")
    dialog = page.get_by_role("dialog", name=f"Kill job {job}?")
    page.get_by_role("button", name="Kill", exact=True).click()
    dialog.get_by_role("button", name="Leave it").click()
    expect(dialog).to_have_count(0)
    assert busy.state(job) == "running"
    page.get_by_role("button", name="Kill", exact=True).click()
    dialog.get_by_role("button", name="Kill", exact=True).click()
    expect(state(page)).to_have_text("cancelled")
    assert busy.state(job) == "cancelled"
    page.get_by_role("button", name="Retry", exact=True).click()
    expect(state(page)).to_have_text("running")
    expect(card(page, "Attempts").get_by_text("Attempt 2", exact=True)).to_be_visible()
    expect(output(page, attempt=2)).to_have_text("here")
    wait_until(lambda: busy.state(job) == "running", "it runs again")
    # The first attempt can still be read.
    page.get_by_role("combobox", name=re.compile("^attempt")).select_option("1")
    expect(output(page)).to_have_text("here")
    expect(page).to_have_url(re.compile(r"attempt=1"))
    busy.ok("kill", str(job))


def test_a_waiting_job_is_held_changed_and_released(busy: Deployment, guest: Visitor) -> None:
    job = add(busy, "patient", "--after", "42", "--", "true")
    guest.go(f"/jobs/{job}")
    page = guest.page
    page.get_by_role("button", name="Hold", exact=True).click()
    expect(state(page)).to_have_text("held")
    assert busy.state(job) == "held"
    page.get_by_role("button", name="Change", exact=True).click()
    dialog = page.get_by_role("dialog", name=f"Change job {job}")
    dialog.get_by_label("Priority").fill("9")
    dialog.get_by_role("button", name="Change", exact=True).click()
    expect(page.locator(".job-facts")).to_contain_text("priority 9")
    assert busy.json("show", str(job))["priority"] == 9
    page.get_by_role("button", name="Release", exact=True).click()
    expect(state(page)).to_have_text("dependent")
    assert busy.state(job) == "dependent"


def test_a_job_that_is_not_there_is_said_so(busy: Deployment, guest: Visitor) -> None:
    for id in ("999999", "<b>1", "0"):
        guest.go(f"/jobs/{id}")
        expect(guest.page.get_by_role("heading", name=f"There is no job {id}", exact=True)).to_be_visible()
    guest.page.get_by_role("link", name="See all jobs").click()
    expect(guest.page).to_have_url(re.compile(r"/jobs$"))
    # The browser itself tells of the one answer that was asked for.
    assert [each for each in guest.complaints if "404 (Not Found)" not in each] == []
    guest.complaints.clear()


def test_hostile_output_and_a_hostile_name_are_text(busy: Deployment, guest: Visitor) -> None:
    job = add(busy, "hostile", "-n", HOSTILE, "--", "printf", PRINTED)
    wait_until(lambda: busy.state(job) == "complete", "it has printed")
    guest.go(f"/jobs/{job}")
    page = guest.page
    printed = output(page)
    expect(printed.get_by_text("red <script>document.title='owned'</script>", exact=True)).to_be_visible()
    expect(printed.get_by_text("after <b>all</b>", exact=True)).to_be_visible()
    expect(printed.get_by_text("red", exact=True)).to_have_class("ansi-2")
    assert page.locator("main script, main b b, main img").count() == 0
    expect(page.get_by_role("heading", level=1)).to_have_text(f"{job} {HOSTILE}")
    expect(page).to_have_title(re.compile(rf"^{job} .*complete"))


def test_everything_on_it_has_a_name_and_fits_a_phone(busy: Deployment, guest: Visitor) -> None:
    guest.page.set_viewport_size({"width": 390, "height": 844})
    for id in (41, 42, 43):
        guest.go(f"/jobs/{id}")
        expect(state(guest.page)).to_be_visible()
        expect(card(guest.page, "Details")).to_be_visible()
        assert unnamed(guest.page) == []
        assert guest.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"job {id} is too wide"


def test_it_looks_the_same_from_the_table_as_from_a_bookmark(busy: Deployment, guest: Visitor) -> None:
    """Styles of one page must not reach another, whichever was seen first."""
    looks = """() => [...document.querySelectorAll("main header *, main header")].map((it) => {
        const { color, fontWeight, borderTopWidth, backgroundColor, paddingLeft } = getComputedStyle(it);
        return [it.tagName, color, fontWeight, borderTopWidth, backgroundColor, paddingLeft].join();
    })"""
    page = guest.page

    def whole() -> None:
        # These two are asked for on their own, and come in either order.
        expect(card(page, "Why it is not running")).to_be_visible()
        expect(card(page, "Dependencies")).to_be_visible()

    guest.go("/jobs/44")
    whole()
    alone = page.evaluate(looks)
    assert len(alone) > 10
    guest.go("/jobs?state=blocked")
    page.get_by_role("link", name="44", exact=True).click()
    whole()
    page.mouse.move(0, 0)
    assert page.evaluate(looks) == alone


def test_text_is_found_that_is_not_in_the_page_yet(busy: Deployment, guest: Visitor) -> None:
    lines = "echo here is the needle; i=0; while [ $i -lt 12000 ]; do i=$((i+1)); echo straw number $i; done"
    job = add(busy, "haystack", "--sync", "--", "sh", "-c", lines)
    guest.go(f"/jobs/{job}")
    page = guest.page
    expect(page.get_by_role("button", name="Load earlier")).to_be_visible()
    find = card(page, "Output").get_by_role("search")
    find.get_by_role("searchbox").fill("NEEDLE")
    expect(find.get_by_role("status")).to_have_text(re.compile(r"^1 in all \d+K$"))
    find.get_by_role("searchbox").press("Enter")
    expect(find.get_by_role("status")).to_have_text(re.compile("^1/1 in all"))
    expect(page.get_by_text("here is the needle", exact=True)).to_be_visible()
    find.get_by_role("searchbox").fill("hay")
    expect(find.get_by_role("status")).to_have_text(re.compile(r"^none in all \d+K$"))


def test_an_element_of_an_array_has_an_address_and_shows_its_index(busy: Deployment, guest: Visitor) -> None:
    busy.ok("add", "-g", "array", "--array", "7-9", "--", "echo", "the same")
    first = min(busy.states("@array"))
    page = guest.page
    guest.go(f"/jobs/{first}_8")
    expect(page).to_have_url(re.compile(rf"/jobs/{first + 1}$"))
    expect(page).to_have_title(re.compile(rf"^{first}_8 array"))
    expect(page.locator(".job-title .tag")).to_have_text(f"{first}_8")
    guest.go("/jobs?group=array")
    for index in (7, 8, 9):
        expect(page.get_by_role("row").filter(has_text=f"{first}_{index}")).to_have_count(1)
    guest.go(f"/jobs/{first}_70")
    expect(page.get_by_role("heading", name=f"There is no job {first}_70")).to_be_visible()
    guest.complaints = [each for each in guest.complaints if "404" not in each]


def test_a_job_of_several_report_groups_names_all_of_them(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    job = add(busy, "several", "-g", "comma, too", "--", "true")
    guest.go(f"/jobs/{job}")
    facts = page.locator(".job-facts")
    expect(facts).to_contain_text("groups several, comma, too")
    guest.go("/jobs?group=several")
    line = page.get_by_role("row").filter(has_text="several")
    line.get_by_role("link", name="comma, too").click()
    expect(page.get_by_label("Group")).to_have_value("comma, too")
    expect(page.get_by_role("row").filter(has_text="several")).to_have_count(1)


def test_the_cause_of_an_end_comes_before_its_signal(busy: Deployment, guest: Visitor) -> None:
    killed = add(busy, "killed", "--", "sleep", "1000")
    late = add(busy, "late", "--walltime", "1s", "--", "sleep", "1001")
    wait_until(lambda: busy.state(killed) == "running", "it runs")
    busy.ok("kill", str(killed))
    wait_until(lambda: {busy.state(killed), busy.state(late)} == {"cancelled", "failed"}, "both have ended")
    page = guest.page
    for job, cause in ((killed, "killed by "), (late, "over its walltime of 1")):
        guest.go(f"/jobs/{job}")
        expect(page.locator(".job-ending")).to_have_text(re.compile(rf"^{cause}.*signal TERM$"))
        guest.go(f"/jobs?group={'killed' if job == killed else 'late'}")
        expect(page.get_by_role("row").filter(has_text=str(job))).to_contain_text(cause)


def test_what_a_call_returned_or_raised_is_on_its_page(busy: Deployment, guest: Visitor) -> None:
    one = add(busy, "call-ok", "--call", "json:loads", "--args", '["[7, null]"]')
    other = add(busy, "call-bad", "--call", "math:sqrt", "--args", "[-1]")
    busy.rota("wait", str(one), str(other))
    guest.go(f"/jobs/{one}")
    expect(card(guest.page, "Result")).to_have_text(re.compile(r"7,\s+null"))
    guest.go(f"/jobs/{other}")
    expect(card(guest.page, "ValueError")).to_contain_text("ValueError: ")
