"""The first page: what happens now, and what needs a person."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.deployment import Deployment, wait_until
from tests.web.browser import Visitor, unnamed


@pytest.fixture(scope="module")
def calm(busy: Deployment) -> Deployment:
    """Nothing is about to change by itself."""
    wait_until(
        lambda: not {"ready", "scheduled", "starting"} & set(busy.states().values()), "all have ended or wait"
    )
    return busy


@pytest.fixture
def deaf(browser: Browser, calm: Deployment) -> Iterator[Visitor]:
    """A visitor who is cut off from the event stream, and from nothing else."""
    made = Visitor(browser)
    made.context.route("**/api/v1/events*", lambda route: route.abort())
    made.log_in(calm)
    yield made
    made.close()


def tile(page: Page, name: str, number: int) -> Locator:
    return page.get_by_role("link", name=re.compile(rf"^{name} {number:,}\b"))


def problems(page: Page) -> Locator:
    return page.locator("section", has=page.get_by_role("heading", name="Needs a person")).get_by_role("listitem")


def problem(page: Page, *words: str) -> Locator:
    found = problems(page)
    for each in words:
        found = found.filter(has_text=each)
    return found


def expect_live(page: Page) -> None:
    expect(page.get_by_text("Live", exact=True)).to_be_visible()


def test_the_numbers_are_those_of_rota_status(calm: Deployment, visit: Callable[..., Visitor]) -> None:
    page = visit(calm).page
    counts = calm.json("status")["counts"]
    assert counts["complete"] >= 40
    expect(tile(page, "Running", counts["running"])).to_be_visible()
    expect(tile(page, "Waiting", counts["dependent"] + counts["blocked"])).to_be_visible()
    expect(tile(page, "Failed", counts["failed"])).to_be_visible()
    expect(tile(page, "Complete", counts["complete"])).to_be_visible()
    expect(page.get_by_text(f"of {sum(counts.values())} jobs done")).to_be_visible()


def test_a_number_leads_to_its_jobs(calm: Deployment, visit: Callable[..., Visitor]) -> None:
    page = visit(calm).page
    page.get_by_role("link", name=re.compile("^Failed")).click()
    expect(page).to_have_url(re.compile(r"/jobs\?state=failed$"))
    expect(page.get_by_role("checkbox", name="Select job 41", exact=True)).to_be_visible()


def test_the_charts_are_drawn(calm: Deployment, visit: Callable[..., Visitor]) -> None:
    page = visit(calm).page
    complete = calm.json("status")["counts"]["complete"]
    ended = page.get_by_role("img", name=f"last hour: {complete} complete")
    for kind in ("good", "bad"):
        box = ended.locator(f"rect.{kind}").first.bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) >= 1, f"{kind}: {box}"
    waits = page.get_by_role("img", name=re.compile("^Jobs that started in the last hour had waited"))
    expect(waits.locator("circle.dot")).to_be_visible()
    ended.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".plot-note")).to_contain_text("complete")


def test_a_job_that_fails_is_told_by_the_stream_without_a_reload(
    calm: Deployment, visit: Callable[..., Visitor], deaf: Visitor
) -> None:
    page = visit(calm).page
    failed = calm.json("status")["counts"]["failed"]
    for each in (page, deaf.page):
        expect(tile(each, "Failed", failed)).to_be_visible()
    expect_live(page)
    documents: list[str] = []
    page.on("request", lambda request: request.resource_type == "document" and documents.append(request.url))
    page.evaluate("window.stayed = true")
    calm.ok("add", "-g", "sudden", "--retries", "0", "--", "sh", "-c", "exit 7")
    expect(problem(page, "sudden", "1 job failed")).to_be_visible()
    expect(tile(page, "Failed", failed + 1)).to_be_visible()
    assert page.evaluate("window.stayed") is True
    assert documents == []
    # Who does not hear the stream does not learn of it, so nothing else told it to the other.
    expect(tile(deaf.page, "Failed", failed)).to_be_visible()
    assert problem(deaf.page, "sudden").count() == 0
    deaf.page.reload()
    expect(problem(deaf.page, "sudden", "1 job failed")).to_be_visible()


def test_a_problem_leads_to_its_jobs_and_its_button_helps(calm: Deployment, visit: Callable[..., Visitor]) -> None:
    flag = calm.work / "repaired"
    calm.ok("add", "-g", "mendable", "--retries", "0", "--", "test", "-e", str(flag))
    (job,) = calm.states("@mendable")
    visitor = visit(calm)
    page = visitor.page
    expect(problem(page, "mendable", "1 job failed")).to_be_visible()
    problem(page, "mendable").get_by_role("link", name="mendable").click()
    expect(page).to_have_url(re.compile(r"/jobs\?state=failed&group=mendable$"))
    page.go_back()
    flag.touch()
    problem(page, "mendable").get_by_role("button", name="Retry: mendable").click()
    expect(problem(page, "mendable")).to_have_count(0)
    wait_until(lambda: calm.state(job) == "complete", "the job has run again")


def test_a_pause_is_a_problem_until_somebody_resumes(calm: Deployment, visit: Callable[..., Visitor]) -> None:
    page = visit(calm).page
    expect_live(page)
    calm.ok("manager", "pause")
    expect(problem(page, "The manager is paused")).to_be_visible()
    page.get_by_role("button", name="Resume: The manager is paused").click()
    expect(problem(page, "The manager is paused")).to_have_count(0)
    assert calm.json("status")["paused"] is False


def test_groups_in_progress_show_how_far_they_are(calm: Deployment, visit: Callable[..., Visitor]) -> None:
    page = visit(calm).page
    group = page.get_by_role("listitem").filter(has=page.get_by_role("progressbar", name=re.compile("^later:")))
    expect(group).to_contain_text("0 of 2")
    group.get_by_role("link", name="later").click()
    expect(page).to_have_url(re.compile(r"/jobs\?group=later$"))


def test_everything_on_it_has_a_name_and_fits_a_phone(calm: Deployment, visit: Callable[..., Visitor]) -> None:
    visitor = visit(calm, viewport={"width": 390, "height": 844})
    expect(tile(visitor.page, "Running", 1)).to_be_visible()
    assert unnamed(visitor.page) == []
    assert visitor.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_what_has_no_name_is_found(browser: Browser) -> None:
    page = browser.new_page()
    page.set_content("<button><svg></svg></button><button aria-label='Close'></button><input><a href='/'></a>")
    assert len(unnamed(page)) == 3
    page.close()


def test_jobs_that_never_fit_need_a_person(calm: Deployment, visit: Callable[..., Visitor]) -> None:
    visitor = visit(calm)
    page = visitor.page
    calm.ok("add", "-g", "huge", "--mem", "900T", "--allow-unsatisfiable", "--", "true")
    (job,) = calm.states("@huge")
    expect(problem(page, f"Job {job} never fits", "900T")).to_be_visible()
    problem(page, f"Job {job} never fits").get_by_role("link").click()
    expect(page).to_have_url(re.compile(rf"/jobs/{job}$"))
    calm.ok("kill", str(job))
    visitor.go("/")
    expect(problem(page, "never fits")).to_have_count(0)
