"""Gangs: their members are drawn together in the list of jobs and in the Gantt chart."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect

from tests.deployment import Deployment, wait_until
from tests.web.browser import Visitor, violations


@pytest.fixture(scope="module")
def pair(busy: Deployment) -> list[int]:
    """Two members of one gang, which run."""
    asked = {"cmd": "sleep 1000", "gang": "pair", "gang_share": True, "cpus": 2, "group": "net"}
    lines = (json.dumps({**asked, "name": name}) for name in ("server", "client"))
    ids: list[int] = busy.json("add", "-", input="\n".join(lines))["added"]
    wait_until(lambda: all(busy.state(job) == "running" for job in ids), "the gang runs")
    return ids


def test_neighbours_of_a_gang_are_one_block_of_the_list(busy: Deployment, pair: list[int], guest: Visitor) -> None:
    page = guest.page
    guest.go("/jobs")
    rows = page.locator(".job-row.gang")
    expect(rows).to_have_count(2)
    expect(rows.first).to_have_class(re.compile("gang-first"))
    expect(rows.last).to_have_class(re.compile("gang-last"))
    expect(rows.get_by_title("Member of the gang pair: all begin together")).to_have_count(2)
    assert violations(page) == []


def test_the_chart_tells_gangs_apart(busy: Deployment, pair: list[int], guest: Visitor) -> None:
    page = guest.page
    guest.go("/gantt?span=1h&by=gang")
    colours = page.get_by_role("list", name="Colours by gang")
    expect(colours.get_by_role("button", name=re.compile("^pair"))).to_be_visible()
    expect(colours.get_by_text("gang", exact=True)).to_be_visible()
    page.get_by_text(re.compile("^The same as a table")).click()
    table = page.get_by_role("region", name="Jobs in this range")
    expect(table.get_by_role("row").filter(has_text="pair")).to_have_count(2)
