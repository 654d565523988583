"""Nodes, accounting, usage, history and points over HTTP."""

from __future__ import annotations

import socket
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.api.conftest import Site
from tests.deployment import wait_until

HOST = socket.gethostname()


@pytest.fixture(scope="module")
def worked(site: Site) -> Site:
    """Some jobs have ended."""
    ids = site.add("true", "true", "false", project="p", retries=0, learn="alike")
    wait_until(lambda: all(site.rota.state(job) in ("complete", "failed") for job in ids), "they ended")
    return site


def get(site: Site, path: str) -> Any:
    answer = site.user.get(f"/api/v1{path}")
    assert answer.status == 200, answer.body
    return answer.json


def test_accounting_has_a_row_for_each_window_and_who(worked: Site) -> None:
    found = get(worked, "/accounting?by=project&window=hour")
    assert found["window_s"] == 3600
    mine = [row for row in found["rows"] if row["project"] == "p"]
    assert [sum(row[name] for row in mine) for name in ("attempts", "jobs", "failed")] == [3, 3, 1]
    assert set(mine[0]) == {
        "at", "user", "project", "queue", "attempts", "jobs", "failed", "used_s", "asked_s", "cpu_s", "wait_s",
        "given_s", "unasked", "until",
    }  # fmt: skip


def test_history_has_every_minute(worked: Site) -> None:
    minutes = get(worked, "/history?minutes=30")["minutes"]
    assert len(minutes) == 30
    assert sum(row["started"] for row in minutes) >= 3
    assert sum(row["complete"] for row in minutes) >= 2
    assert sum(row["failed"] for row in minutes) >= 1
    assert set(minutes[0]) == {"at", "started", "complete", "failed", "cancelled", "wait_s", "run_s"}


def test_a_node_says_what_it_has_and_what_runs_there(worked: Site) -> None:
    (job,) = worked.add("sleep 100", cpus=1)
    wait_until(lambda: worked.rota.state(job) == "running", "it runs")
    (node,) = get(worked, "/nodes")
    assert (node["host"], node["state"], node["connected"], node["usable"]) == (HOST, "alive", True, True)
    assert node["jobs"] == [job]
    assert node["cores_in_use"] == 1.0
    assert 0 < node["mem_in_use"] <= node["mem_bytes"]

    def doing() -> str:
        history = get(worked, f"/nodes/{HOST}")["history"]  # empty until hosts are looked at for the first time
        return str(history[0]["state"]) if history else ""

    wait_until(lambda: doing() == "busy", "it is busy")
    whole = get(worked, f"/nodes/{HOST}")
    assert (whole["condition"], whole["usage"]) == ("automated", "running")
    assert (whole["owner"], whole["groups"], whole["manual_user"]) == ("", [], "")
    assert whole["since"] == whole["history"][0]["at"]
    assert {name: whole["history"][0][name] for name in ("condition", "usage", "node_state")} == {
        "condition": "automated", "usage": "running", "node_state": "alive",
    }  # fmt: skip
    assert whole["history"][0]["until"] is None
    assert {name: whole[name] for name in ("host", "cores", "pid")} == {
        name: node[name] for name in ("host", "cores", "pid")
    }
    worked.user.post("/api/v1/jobs/actions", {"action": "kill", "select": [str(job)]})
    wait_until(lambda: get(worked, "/nodes")[0]["jobs"] == [], "nothing runs there")


def test_usage_is_told_per_host(worked: Site) -> None:
    wait_until(lambda: get(worked, "/usage")["hosts"], "something is known")
    found = get(worked, "/usage")
    assert set(found) == {"from", "to", "hosts", "utilisation"}
    assert set(found["hosts"][0]) == {"host", "busy_s", "idle_s", "down_s", "asleep_s", "unseen_s", "utilisation"}


def test_usage_is_told_by_condition_usage_and_state(worked: Site) -> None:
    wait_until(lambda: get(worked, "/usage")["hosts"], "something is known")
    found = get(worked, "/usage/machines?by=cluster&window=day&zone=Europe/Paris")
    assert set(found) == {"from", "to", "rows", "by", "machines", "edges"}
    assert set(found["rows"][0]) == {"host", "condition", "usage", "state", "seconds", "at"}
    assert sum(row["seconds"] for row in found["rows"]) == pytest.approx(86_400, abs=1e-5)
    assert (found["edges"][0], found["edges"][-1]) == (found["from"], found["to"])
    assert found["machines"] == {"": 1}
    (host,) = get(worked, f"/usage/machines?host={HOST}")["machines"]
    assert host == HOST


def test_a_learning_group_has_points(worked: Site) -> None:
    points = get(worked, "/learning/alike")["points"]
    assert len(points) == 3
    assert sorted(point["ok"] for point in points) == [False, True, True]
    assert set(points[0]) == {
        "job", "at", "input_bytes", "asked_mem", "used_mem", "most_mem", "asked_time_s", "used_time_s", "ok",
        "given_mem", "given_time_s",
    }  # fmt: skip
    assert all(group["points"] == [] for group in get(worked, "/learning"))


def test_what_rows_are_told_apart_by_is_said_word_by_word_or_by_commas(worked: Site) -> None:
    both = get(worked, "/accounting?by=user,queue")
    assert get(worked, "/accounting?by=user&by=queue") == both
    assert {row["project"] for row in both["rows"]} == {""}
    assert all(row["user"] and row["queue"] for row in both["rows"])
    assert {row["user"] + row["queue"] for row in get(worked, "/accounting?by=")["rows"]} == {""}
    refused = worked.user.get("/api/v1/accounting?by=user&by=queue,host")
    assert refused.status == 400
    assert refused.json["error"]["message"] == "the parameter 'by': there is no 'host'"
    assert refused.json["error"]["hint"] == "known are: project, queue, user"


def test_the_document_names_the_words_that_rows_are_told_apart_by(worked: Site) -> None:
    paths = worked.user.get("/api/v1/openapi.json").json["paths"]
    (operation,) = (each["get"] for path, each in paths.items() if path.endswith("/accounting"))
    (by,) = (each["schema"] for each in operation["parameters"] if each["name"] == "by")
    assert by["type"] == "array"
    assert set(by["items"]["enum"]) == {"user", "project", "queue"}


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/nodes/nowhere", 404),
        ("/accounting?by=host", 400),
        ("/accounting?window=minute", 400),
        ("/accounting?from=tomorrow", 400),
        ("/accounting?from=2027-01-01T00:00:00Z&to=2026-01-01T00:00:00Z", 400),
        ("/accounting?from=0001-01-01T00:00:00Z", 400),
        ("/accounting?to=9999-12-31T23:59:59Z", 200),
        ("/usage?from=9999-12-31T23:59:59Z", 400),
        ("/usage?to=0001-01-01T00:00:00Z", 400),
        ("/usage?host=x", 400),
        ("/usage/machines?from=9999-12-31T23:59:59Z", 400),
        ("/usage/machines?by=nosuch", 400),
        ("/usage/machines?window=fortnight", 400),
        ("/usage/machines?host=nosuch", 404),
        ("/history?minutes=10081", 400),
        ("/history?minutes=0", 400),
    ],
)
def test_bad_questions_are_refused(worked: Site, path: str, status: int) -> None:
    assert worked.user.get(f"/api/v1{path}").status == status


@pytest.mark.parametrize("path", ["/nodes", f"/nodes/{HOST}", "/accounting", "/usage", "/history"])
def test_nobody_without_a_token_learns_anything(worked: Site, path: str) -> None:
    assert worked.nobody.get(f"/api/v1{path}").status == 401


def test_the_gantt_chart_has_the_past_that_is_asked_for(worked: Site) -> None:
    every = get(worked, "/jobs?limit=100")["jobs"]
    shown = {job["id"]: job for job in every if job["project"] == "p"}
    assert len(shown) == 3
    for since in ("-15m", "now-1h", "-2d"):
        past = get(worked, f"/gantt?from={since}")["past"]
        mine = {each["id"]: each for each in past["attempts"] if each["project"] == "p"}
        assert mine.keys() == shown.keys()
        for id, job in shown.items():
            assert (mine[id]["start"], mine[id]["end"]) == (job["started_at"], job["ended_at"])
    begun = datetime.fromisoformat(min(each["start"] for each in mine.values()))
    before = f"{begun - timedelta(seconds=1):%Y-%m-%dT%H:%M:%SZ}"
    assert get(worked, f"/gantt?from=2001-01-01T00:00:00Z&to={before}")["past"]["attempts"] == []
    merged = get(worked, "/gantt?from=-15m&limit=1")["past"]
    assert (merged["attempts"], merged["total"] >= 3, merged["slice_s"] > 0) == ([], True, True)
    assert get(worked, "/gantt")["past"] is None
    for words in ("from=soon", "from=-", "to=-5", "from="):
        answer = worked.user.get(f"/api/v1/gantt?{words}")
        assert (answer.status, answer.json["error"]["code"]) == (400, "bad_input"), answer.body
        assert words.partition("=")[0] in answer.json["error"]["message"]
