"""Calls of functions over HTTP: added, shown, and what they returned."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests.api.conftest import Site
from tests.deployment import wait_until


def _add(site: Site, path: Path, **fields: Any) -> int:
    body = {"jobs": [{"python": sys.executable, "retries": 0, **fields}], "defaults": {"cwd": str(path)}}
    answer = site.user.post("/api/v1/jobs", body)
    assert answer.status == 201, answer.json
    (job,) = answer.json["added"]
    return int(job)


def test_a_call_is_added_and_its_result_is_the_json_that_it_returned(site: Site, tmp_path: Path) -> None:
    job = _add(
        site, tmp_path, call="json:loads", args=['{"big": 123456789012345678901234567890, "n": [1.5, null]}']
    )
    site.rota.ok("wait", str(job))
    answer = site.user.get(f"/api/v1/jobs/{job}/result")
    assert answer.json == {
        "id": job,
        "state": "complete",
        "result": {"big": 123456789012345678901234567890, "n": [1.5, None]},
        "error": None,
    }
    assert site.user.get(f"/api/v1/jobs/{job}").json["cmd"]["call"] == "json:loads"


def test_an_exception_and_a_command_without_a_result(site: Site, tmp_path: Path) -> None:
    job = _add(site, tmp_path, call="json:loads", args=["{"])
    site.rota.rota("wait", str(job))
    found = site.user.get(f"/api/v1/jobs/{job}/result").json
    assert found["result"] is None
    assert found["error"]["type"] == "json.decoder.JSONDecodeError"
    assert "Traceback" in found["error"]["traceback"]
    (other,) = site.add("true")
    assert site.user.get(f"/api/v1/jobs/{other}/result").status == 400
    assert site.user.get("/api/v1/jobs/999999/result").status == 404


def test_a_call_that_has_not_ended_has_neither(site: Site, tmp_path: Path) -> None:
    job = _add(site, tmp_path, call="time:sleep", args=[600])
    wait_until(lambda: site.user.get(f"/api/v1/jobs/{job}").json["state"] == "running", "it runs")
    found = site.user.get(f"/api/v1/jobs/{job}/result").json
    assert found == {"id": job, "state": "running", "result": None, "error": None}
    site.rota.ok("kill", str(job))


def test_arguments_that_are_no_call_are_refused(site: Site) -> None:
    for fields in (
        {"call": "nofunction"},
        {"call": "m:f", "args": 3},
        {"args": []},
        {"call": "m:f", "cmd": "true"},
    ):
        answer = site.user.post("/api/v1/jobs", {"jobs": [fields], "defaults": {"cwd": "/"}})
        assert answer.status == 400
        assert answer.json["error"]["entry"] == 1
