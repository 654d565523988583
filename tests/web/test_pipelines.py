"""Pipelines in the dashboard: stages and elements, failures, actions, graphs; also with ten thousand elements."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pytest
from playwright.sync_api import Page, expect

from rota.client import pipelines
from rota.core.pipelines.definition import Stage
from tests.core.pipelines.lab import pipeline, stage
from tests.deployment import Deployment, wait_until
from tests.web.browser import Visitor, unnamed, violations
from tests.web.test_everywhere import _PHONE, wider

WAITS = "test {name} != bad && while ! test -e {name}.go; do sleep 0.05; done"
STAGES = [
    stage("fetch", run="true", takes={"net": 1}),
    stage("build", run=WAITS, needs_dependencies=True, imperative=True),
]
SIX = {"base": [], "bad": [], "lib": ["base"], "app": ["lib", "bad"], "doc": ["app"], "tool": []}


def start(rota: Deployment, file: str, stages: Sequence[Stage], elements: Mapping[str, Sequence[str]]) -> str:
    """The address of the page of a new session."""
    limits = {"net": 1} if any(each.takes for each in stages) else {}
    with rota.client() as client:
        definition = pipeline(stages, elements, limits)
        begun = client.start_pipeline(definition, file=f"/src/{file}", cwd=str(rota.work))
    return f"/pipelines/{begun.session}"


def end(rota: Deployment, path: str) -> None:
    with rota.client() as client:
        client.act_on_pipeline("terminate", session=int(path.rpartition("/")[2]))


def sound(page: Page) -> None:
    expect(page.locator("[aria-busy=true]")).to_have_count(0)
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    assert unnamed(page) == []
    assert violations(page) == []
    page.set_viewport_size(_PHONE)
    assert wider(page) == []


@pytest.fixture(scope="module")
def six(busy: Deployment) -> str:
    """Two elements build, one has failed, and two are blocked."""
    path = start(busy, "six.yaml", STAGES, SIX)
    with busy.client() as client:
        session = int(path.rpartition("/")[2])
        wait_until(
            lambda: (sums := client.pipeline(session=session).stages["build"]).running == 2 and sums.blocked == 2,
            "two build, and one has failed",
        )
    return path


def test_elements_flow_through_stages_as_columns(busy: Deployment, six: str, guest: Visitor) -> None:
    page = guest.page
    guest.go(six)
    expect(page).to_have_title("six.yaml · Rota")
    stages = page.get_by_role("region", name="Stages")
    expect(stages.get_by_role("columnheader", name=re.compile("^fetch"))).to_contain_text("6 / 6")
    build = stages.get_by_role("columnheader", name=re.compile("^build"))
    for text in ("3 / 6", "1 failed", "2 blocked", "2 running", "imperative"):
        expect(build).to_contain_text(text)
    row = stages.get_by_role("row").filter(has=page.get_by_role("rowheader", name="bad"))
    failed = row.get_by_role("link", name="failed")
    expect(failed).to_be_visible()
    failures = page.locator(".failures li")
    expect(failures).to_contain_text("bad failed at build")
    expect(failures).to_contain_text("blocks 2 elements: app, doc")
    sound(page)
    failed.click()
    expect(page).to_have_url(re.compile(r"/jobs/\d+$"))


def test_a_count_leads_to_its_elements(busy: Deployment, six: str, guest: Visitor) -> None:
    page = guest.page
    guest.go(six)
    page.get_by_role("region", name="Stages").get_by_role("link", name="2 blocked").click()
    elements = page.get_by_role("region", name="Elements")
    expect(elements.get_by_role("row")).to_have_count(3)
    expect(elements).to_contain_text("blocked by bad, which failed at build")
    expect(page).to_have_url(re.compile(r"\?stage=build&state=blocked#elements$"))
    page.get_by_role("button", name="Clear").click()
    expect(elements.get_by_role("row")).to_have_count(7)


def test_the_dependencies_of_elements_are_drawn(busy: Deployment, six: str, guest: Visitor) -> None:
    page = guest.page
    guest.go(six)
    graph = page.get_by_role("group", name="Dependencies")
    expect(graph.get_by_role("link")).to_have_count(6)
    graph.get_by_role("link", name=re.compile("^doc")).click()
    expect(page.get_by_role("region", name="Elements").get_by_role("row")).to_have_count(2)


def test_the_list_tells_how_far_each_is(busy: Deployment, six: str, guest: Visitor) -> None:
    page = guest.page
    guest.go("/pipelines")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="six.yaml", exact=True))
    expect(row).to_contain_text("running")
    expect(row.get_by_role("progressbar", name="Progress of six.yaml")).to_have_attribute("aria-valuenow", "9")
    expect(row.get_by_role("link", name="1", exact=True)).to_have_attribute("href", f"{six}?state=failed")
    sound(page)


def test_a_session_is_paused_and_ended_and_the_page_follows(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    path = start(busy, "acts.yaml", STAGES[1:], {"base": [], "app": ["base"]})
    guest.go(path)
    head = page.locator(".page-head")
    build = page.get_by_role("region", name="Stages").get_by_role("columnheader", name=re.compile("^build"))
    expect(build).to_contain_text("1 running")
    head.get_by_role("button", name="Pause").click()
    expect(head).to_contain_text("paused")
    expect(page).to_have_title("acts.yaml · paused · Rota")
    head.get_by_role("button", name="Resume").click()
    expect(head).to_contain_text("running")
    (busy.work / "base.go").touch()
    expect(build).to_contain_text("1 / 2")
    head.get_by_role("button", name="Terminate…").click()
    page.get_by_role("dialog", name="Terminate acts.yaml?").get_by_role("button", name="Terminate").click()
    expect(head).to_contain_text("ended")
    expect(build).to_contain_text("1 terminated")
    (busy.work / "app.go").touch()
    head.get_by_role("button", name="Retry failed").click()
    expect(build).to_contain_text("2 / 2")
    expect(build).not_to_contain_text("terminated")


def test_a_question_after_a_failure_is_answered_on_the_page(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    stages = [stage("build", run="test {name} != bad")]
    definition = pipeline(stages, {"bad": []})
    asks = pipelines.request(definition, file="/src/asks.yaml", cwd=str(busy.work), on_error="ask")
    with busy.client() as client:
        watching = client.run_pipeline(asks, answers=True)  # somebody who could answer, but does not
        session = next(item.session for item in watching if item.view is not None and item.view.state == "asking")
        guest.go(f"/pipelines/{session}")
        question = page.get_by_role("main").get_by_role("status").filter(has_text="bad failed at build.")
        expect(question.get_by_role("link", name="See what it printed")).to_be_visible()
        head = page.locator(".page-head")
        expect(head).to_contain_text("asking")
        assert violations(page) == []
        head.get_by_role("button", name="Continue").click()
        expect(head).to_contain_text("ended")
        expect(question).to_have_count(0)


def test_ten_thousand_elements_are_a_strip_and_layers(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    names = [f"element-{n:05d}" for n in range(10_000)]
    # The first holds all others back, so nothing but the page has work to do.
    depends = {name: [names[n // 3]] if n else [] for n, name in enumerate(names)}
    path = start(busy, "large.yaml", STAGES[1:], depends)
    guest.go(path)
    stages = page.get_by_role("region", name="Stages")
    expect(stages.get_by_role("columnheader", name=re.compile("^build"))).to_contain_text("9,999 waiting")
    expect(stages.get_by_role("img", name=re.compile("^build: "))).to_be_visible()
    expect(stages.get_by_role("link", name="element-00000")).to_be_visible()
    expect(page.get_by_text(re.compile("10,000 elements in 10 layers"))).to_be_visible()
    assert page.locator("main *").count() < 3000
    sound(page)
    page.get_by_label("Filter by name").fill("09999")
    rows = page.get_by_role("region", name="Elements").get_by_role("row")
    expect(rows).to_have_count(2)
    expect(rows.last).to_contain_text("waits at build for element-03333")
    end(busy, path)
    expect(page.locator(".page-head")).to_contain_text("ended")


def test_of_a_session_that_is_not_there_the_page_says_so(busy: Deployment, staying: Visitor) -> None:
    for path in ("/pipelines/999999", "/pipelines/x"):
        staying.go(path)
        expect(staying.page.get_by_role("heading", name=re.compile("There is no session"))).to_be_visible()
    staying.complaints.clear()  # the browser complains about every 404


def test_jobs_of_a_group_are_drawn_with_their_critical_path(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    add = ("add", "-g", "net", "--time", "10m")
    (first,) = busy.json(*add, "-n", "first", "--after", "42", "--", "true")["added"]
    for name, time in (("short", "1m"), ("long", "1h")):
        busy.ok("add", "-g", "net", "-n", name, "--time", time, "--after", f"afterok:{first}", "--", "echo", name)
    guest.go("/groups?q=net")
    page.get_by_role("link", name="Dependencies of net").click()
    expect(page.get_by_role("heading", name="@net")).to_be_visible()
    expect(page.locator(".critical-path")).to_contain_text(re.compile(r"≈ 1 h 10 m left"))
    expect(page.locator(".critical-path li")).to_have_text([re.compile("^first"), re.compile("^long")])
    graph = page.get_by_role("group", name="Dependencies")
    expect(graph.get_by_role("link")).to_have_count(3)
    expect(page.get_by_text(re.compile("1 dependency on others"))).to_be_visible()
    sound(page)
    busy.ok("kill", str(first))
    expect(graph).to_contain_text("cancelled")


def test_a_selector_that_is_not_understood_is_told(busy: Deployment, staying: Visitor) -> None:
    staying.go("/graph?select=odd!")
    expect(staying.page.get_by_role("alert")).to_contain_text("is not understood")
    staying.complaints.clear()
