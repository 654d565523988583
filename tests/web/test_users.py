"""What somebody sees and is offered whose token is held to their own jobs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.deployment import Deployment, deployment, wait_until
from tests.web.browser import Visitor


class Place:
    """A deployment of its owner, in which ann and bob have jobs."""

    def __init__(self, rota: Deployment) -> None:
        self.rota = rota
        rota.start()
        address = json.loads((rota.home / "manager.json").read_bytes())["address"]
        self.env: dict[str, dict[str, str]] = {}
        for name in ("ann", "bob"):
            file = rota.work / f"{name}.token"
            rota.ok("manager", "token", "add", name, "--user", name, "--out", str(file))
            self.env[name] = rota.env | {
                "ROTA_HOME": str(rota.work / f"{name}.home"),
                "ROTA_TOKEN_FILE": str(file),
                "ROTA_CA": str(rota.home / "tls" / "ca.pem"),
                "ROTA_MANAGER": address,
            }

    def add(self, name: str, *words: str) -> int:
        (job,) = self.rota.json("add", *words, env=self.env[name])["added"]
        return int(job)

    def link(self, name: str) -> str:
        return self.rota.ok("manager", "ui", "--no-open", env=self.env[name]).strip()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with deployment(tmp_path_factory.mktemp("users"), http="on", cores="4") as made:
        yield Place(made)


@pytest.fixture(scope="module")
def jobs(place: Place) -> dict[str, int]:
    made = {
        "anns": place.add("ann", "-g", "both", "--", "sh", "-c", "echo secret; sleep 1000"),
        "failed": place.add("ann", "-g", "hers", "--retries", "0", "--", "false"),
        "own": place.add("bob", "-g", "both", "--", "sh", "-c", "echo mine; sleep 1001"),
    }
    wait_until(lambda: place.rota.state(made["anns"]) == place.rota.state(made["own"]) == "running", "both run")
    wait_until(lambda: place.rota.state(made["failed"]) == "failed", "one has failed")
    return made


@pytest.fixture(scope="module")
def bobs(browser: Browser, place: Place, jobs: dict[str, int]) -> Iterator[Visitor]:
    made = Visitor(browser)
    made.page.goto(place.link("bob"))
    yield made
    made.close()


@pytest.fixture
def page(bobs: Visitor) -> Iterator[Page]:
    yield bobs.page
    complaints, bobs.complaints = bobs.complaints, []
    assert complaints == []


def test_the_header_names_whose_session_it_is(bobs: Visitor, page: Page) -> None:
    banner = page.get_by_role("banner")
    expect(banner).to_contain_text("bob")
    expect(banner).to_contain_text("user")
    page.reload()
    expect(banner).to_contain_text("bob")


def test_another_users_job_says_that_its_output_is_not_for_everybody(
    bobs: Visitor, page: Page, jobs: dict[str, int]
) -> None:
    for job in (jobs["anns"], jobs["failed"]):
        bobs.go(f"/jobs/{job}")
        main = page.get_by_role("main")
        expect(main).to_contain_text("can be read by its owner and by administrators. This one is ann’s.")
        expect(main).to_contain_text("ann’s job: only they and administrators can act on it.")
        expect(main.get_by_role("button", name=re.compile("Kill|Retry|Remove|Change|Hold"))).to_have_count(0)
    bobs.go(f"/jobs/{jobs['own']}")
    expect(page.get_by_role("region", name="stdout of attempt 1")).to_have_text("mine")
    expect(page.get_by_role("button", name="Kill")).to_be_visible()


def test_a_page_that_is_refused_the_output_tells_the_reason(
    bobs: Visitor, page: Page, jobs: dict[str, int]
) -> None:
    # As if the page did not know better: it asks, and is told.
    told = {"own_only": False}

    def trusting(route):  # type: ignore[no-untyped-def]
        answer = route.fetch()
        route.fulfill(response=answer, json=answer.json() | told)

    page.route("**/api/v1/session", trusting)
    bobs.go(f"/jobs/{jobs['anns']}")
    expect(page.get_by_text(f"job {jobs['anns']} belongs to ann")).to_be_visible()
    expect(page.get_by_text("Nothing printed yet")).to_have_count(0)
    page.unroute("**/api/v1/session")
    bobs.complaints = [each for each in bobs.complaints if "403" not in each]


def test_ticked_jobs_of_others_are_left_alone(bobs: Visitor, page: Page, jobs: dict[str, int]) -> None:
    bobs.go("/jobs")
    page.get_by_role("checkbox", name=f"Select job {jobs['anns']}").check()
    bar = page.get_by_role("toolbar", name="Selected jobs")
    expect(bar).to_contain_text("not yours")
    for name in ("Retry", "Hold", "Kill…", "Remove…"):
        expect(bar.get_by_role("button", name=name)).to_be_disabled()
    page.get_by_role("checkbox", name=f"Select job {jobs['own']}").check()
    expect(bar).to_contain_text("1 not yours")
    bar.get_by_role("button", name="Kill…").click()
    dialog = page.get_by_role("dialog", name="Kill 1 job?")
    expect(dialog).to_contain_text("or belongs to others: it stays as it is")
    dialog.get_by_role("button", name="Cancel").click()
    page.keyboard.press("Escape")


def test_groups_and_the_overview_offer_only_what_is_ones_own(
    bobs: Visitor, page: Page, jobs: dict[str, int]
) -> None:
    bobs.go("/groups")
    expect(page.get_by_role("button", name="Kill both")).to_be_visible()
    expect(page.get_by_role("button", name="Retry failed of hers")).to_have_count(0)
    page.get_by_role("button", name="Kill both").click()
    dialog = page.get_by_role("dialog", name="Kill 1 job of “both”?")
    expect(dialog).to_contain_text("1 job of others goes on.")
    dialog.get_by_role("button", name="Cancel").click()
    bobs.go("/")
    expect(page.get_by_text("1 job failed, none of them yours")).to_be_visible()
    expect(page.get_by_role("button", name="Retry: hers")).to_have_count(0)
