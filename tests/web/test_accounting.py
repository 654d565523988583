"""Accounting: who used how much."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.deployment import Deployment, wait_until
from tests.web.browser import Visitor

_COUNTED = ("jobs", "attempts", "failed")


@pytest.fixture(scope="module", autouse=True)
def used(busy: Deployment) -> None:
    """Jobs of two projects and two queues have ended, and nothing runs: the sums stay as they are."""
    busy.ok("kill", "all")
    lines = "".join(f"echo {n}\n" for n in range(12))
    busy.ok("add", "--project", "survey", "-", input=lines)
    busy.ok("add", "--project", "=survey", "-q", "besteffort", "--retries", "0", "--", "false")
    live = {"ready", "scheduled", "starting", "running", "finishing"}
    wait_until(lambda: not live & set(busy.states().values()), "all have ended")


def sums(rota: Deployment, *by: str) -> dict[tuple[str, ...], dict[str, int]]:
    found: dict[tuple[str, ...], dict[str, int]] = defaultdict(lambda: dict.fromkeys(_COUNTED, 0))
    for row in rota.json("accounting", "--by", ",".join(by), "--from", "-6d")["rows"]:
        for name in _COUNTED:
            found[tuple(row[subject] or "(none)" for subject in by)][name] += row[name]
    return dict(found)


def table(page: Page) -> dict[tuple[str, ...], dict[str, int]]:
    """The table of the page, in the same form."""
    rows: list[list[str]] = page.locator(".account-table tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.innerText.trim()))"
    )
    # Who, their part, five sums of time, then what is counted.
    return {
        tuple(row[:-9]): {name: int(text.replace(",", "")) for name, text in zip(_COUNTED, row[-3:], strict=True)}
        for row in rows
    }


@pytest.mark.parametrize("by", [("user",), ("project",), ("queue",), ("user", "project", "queue")], ids=",".join)
def test_sums_are_those_of_rota_accounting(busy: Deployment, guest: Visitor, by: tuple[str, ...]) -> None:
    page = guest.page
    guest.go(f"/accounting?by={','.join(by)}")
    expect(page.get_by_role("heading", name=f"By {', '.join(by)}")).to_be_visible()
    wanted = sums(busy, *by)
    assert sum(each["jobs"] for each in wanted.values()) >= 50
    assert table(page) == wanted
    together = page.locator(".account-table tfoot")
    expect(together).to_contain_text(str(sum(each["attempts"] for each in wanted.values())))


def test_subject_measure_and_range_are_in_the_address(busy: Deployment, guest: Visitor) -> None:
    page = guest.page
    guest.go("/accounting")
    page.get_by_role("checkbox", name="project").check()
    expect(page).to_have_url(re.compile(r"by=user%2Cproject"))
    page.get_by_role("checkbox", name="user").uncheck()
    expect(page).to_have_url(re.compile(r"by=project$"))
    expect(page.get_by_role("checkbox", name="project")).to_be_disabled()
    page.get_by_role("button", name="30 days").click()
    expect(page).to_have_url(re.compile(r"by=project&range=30d$"))
    page.get_by_role("button", name="Failed").click()
    chart = page.get_by_role("img", name="Failed over time by project")
    expect(chart).to_be_visible()
    page.reload()
    expect(chart).to_be_visible()
    expect(page.get_by_role("button", name="30 days")).to_have_attribute("aria-pressed", "true")
    page.get_by_label("First day").fill("2020-01-01")
    page.get_by_label("Last day").fill("2020-01-31")
    expect(page).to_have_url(re.compile(r"range=2020-01-01\.\.2020-01-31"))
    expect(page.get_by_role("heading", name="Nothing was used in this time")).to_be_visible()


def test_the_file_has_the_same_and_no_formula(busy: Deployment, guest: Visitor, tmp_path: Path) -> None:
    page = guest.page
    guest.go("/accounting?by=project")
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    download.value.save_as(tmp_path / "sums.csv")
    with (tmp_path / "sums.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["project"]: int(row["jobs"]) for row in rows} == {
        {"(none)": "", "=survey": "'=survey"}.get(name, name): each["jobs"]
        for (name,), each in sums(busy, "project").items()
    }
