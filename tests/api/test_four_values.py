"""Asked, learned, given, used: command line, lists, accounting, learning, HTTP API and Python client agree."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.api.conftest import Site

CORE_S = "sleep 0.2"


@pytest.fixture(scope="module")
def job(site: Site) -> int:
    """One that asked for five seconds after its like had taught that a minute and more is needed."""
    for _ in range(3):
        site.rota.ok("run", "--learn", "four", "--mem", "200M", "--", CORE_S)
    added = site.rota.json("add", "--learn", "four", "--project", "four", "--time", "5s", "--", CORE_S)["added"][0]
    site.rota.ok("wait", str(added))
    return int(added)


def amounts(site: Site, job: int) -> dict[str, Any]:
    found = site.rota.json("show", str(job))["amounts"]
    assert isinstance(found, dict)
    return found


def test_each_of_the_four_is_what_it_says(site: Site, job: int) -> None:
    found = amounts(site, job)
    time = found["time_s"]
    assert (time["asked"], found["mem_bytes"]["asked"]) == (5, None)
    assert time["learned"] == time["given"] == 300
    assert 0.1 < time["used"] < 5 * 60
    assert found["walltime_s"]["given"] is None, "nothing ends it"
    assert found["cores"]["given"] == 1


def test_every_view_says_the_same(site: Site, job: int) -> None:
    found = amounts(site, job)
    over_http = site.admin.get(f"/api/v1/jobs/{job}").json
    with site.rota.client() as client:
        python = client.job(job)
    assert over_http["amounts"] == found
    assert python.amounts is not None
    assert python.amounts.time_s.asked == found["time_s"]["asked"]
    told = [
        site.rota.json("jobs", str(job))["jobs"][0],
        site.admin.get(f"/api/v1/jobs?select={job}").json["jobs"][0],
    ]
    told.append(over_http["attempts"][0])
    for each in told:
        for name, four in found.items():
            assert each["amounts"][name] == {**four, "learned": None}, "what was learned is told of one job"


def test_accounting_and_learning_tell_apart_what_was_asked_and_given(site: Site, job: int) -> None:
    found = amounts(site, job)
    time = found["time_s"]
    for rows in (
        json.loads(site.rota.ok("accounting", "--json", "--by", "project"))["rows"],
        site.admin.get("/api/v1/accounting?by=project").json["rows"],
    ):
        mine = [each for each in rows if each["project"] == "four"]
        total = {name: sum(each[name] for each in mine) for name in ("asked_s", "given_s", "used_s", "unasked")}
        assert (total["asked_s"], total["given_s"], total["unasked"]) == (time["asked"], time["given"], 0)
        assert total["used_s"] == pytest.approx(time["used"], abs=1e-3)
    point = site.admin.get("/api/v1/learning/four").json["points"][0]
    assert (point["job"], point["asked_time_s"], point["given_time_s"]) == (job, time["asked"], time["given"])
    assert (point["asked_mem"], point["given_mem"]) == (None, found["mem_bytes"]["given"])
    line = next(line for line in site.rota.ok("show", str(job)).splitlines() if line.startswith("  time "))
    assert line.split()[:4] == ["time", "5s", "5m", "5m"]
