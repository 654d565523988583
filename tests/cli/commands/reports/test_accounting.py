"""`rota accounting`: who used what."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.deployment import Deployment, wait_until


@pytest.fixture(scope="module")
def used(shared: Deployment) -> Deployment:
    """Three jobs of one project ended, one of them failed at both attempts."""
    shared.rota("run", "--project", "p", "--rerun", "-", input="true\ntrue\n")
    shared.rota("run", "--project", "p", "--retries", "1", "--backoff", "0s", "--", "false")
    return shared


def rows(made: Deployment, *args: str) -> Any:
    return json.loads(made.ok("accounting", "--json", *args))["rows"]


def test_attempts_and_jobs_are_counted(used: Deployment) -> None:
    (row,) = [row for row in rows(used, "--by", "project") if row["project"] == "p"]
    assert (row["attempts"], row["jobs"], row["failed"]) == (4, 3, 2)
    assert 0 < row["used_s"] < row["given_s"]
    assert (row["asked_s"], row["unasked"]) == (0, 4)
    assert (row["user"], row["queue"]) == ("", "")
    assert row["at"].endswith("T00:00:00Z")


def test_hours_add_up_to_days(used: Deployment) -> None:
    days = rows(used, "--by", "project", "--from", "-1d")
    hours = rows(used, "--by", "project", "--from", "-1d", "--window", "hour")
    for name in ("attempts", "jobs", "failed"):
        assert sum(row[name] for row in days) == sum(row[name] for row in hours)


def test_a_table_is_for_people(used: Deployment) -> None:
    lines = used.ok("accounting", "--by", "project,user").splitlines()
    assert lines[0].split()[:5] == ["WINDOW", "USER", "PROJECT", "ATTEMPTS", "JOBS"]
    assert any(line.split()[2:6] == ["p", "4", "3", "2"] for line in lines)
    assert "p" in used.ok("accounting", "--by", "project", "--quiet").split()


def test_one_row_a_window_if_nothing_tells_them_apart(used: Deployment) -> None:
    assert {(row["user"], row["project"], row["queue"]) for row in rows(used, "--by", "none")} == {("", "", "")}


def test_what_runs_is_counted_up_to_now(used: Deployment) -> None:
    job = used.json("add", "--project", "running", "--cpus", "0.1", "--", "sleep", "100")["added"][0]
    wait_until(lambda: used.state(job) == "running", "it runs")

    def seconds() -> float:
        return sum(row["used_s"] for row in rows(used, "--by", "project") if row["project"] == "running")

    before = seconds()
    wait_until(lambda: seconds() > before, "it uses more and more")
    used.ok("kill", str(job))
    wait_until(lambda: used.state(job) == "cancelled", "it ended")
    ended = seconds()
    assert seconds() == ended > before


def test_sums_outlive_a_restart_and_the_removal_of_jobs(used: Deployment) -> None:
    before = [row for row in rows(used, "--by", "project", "--window", "hour") if row["project"] == "p"]
    used.ok("remove", "state=failed")
    used.ok("manager", "stop")
    used.start()
    assert [row for row in rows(used, "--by", "project", "--window", "hour") if row["project"] == "p"] == before


def test_windows_have_any_length_and_days_are_those_of_the_zone(used: Deployment) -> None:
    paris = used.env | {"TZ": "Europe/Paris"}
    view = used.json("accounting", "--by", "none", env=paris)
    assert view["zone"] == "Europe/Paris"
    assert {row["at"][11:] for row in view["rows"]} <= {"22:00:00Z", "23:00:00Z"}, "midnight in Paris"
    whole = used.json("accounting", "--by", "none", "--last", "36h")
    (row,) = whole["rows"]
    assert (row["at"], row["until"]) == (whole["from"], whole["to"])
    assert row["jobs"] == sum(each["jobs"] for each in view["rows"])
    assert " to " in used.ok("accounting", "--by", "none", "--last", "36h")
    assert used.json("accounting", "--window", "5h", "--last", "10h")["window_s"] == 5 * 3600
    assert used.json("accounting", "--window", "month", "--zone", "UTC")["zone"] == "UTC"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--by", "host"], "--by: there is no 'host'"),
        (["--from", "yesterday"], "--from: 'yesterday' is not a time"),
        (["--from", "2026-01-02", "--to", "2026-01-01"], "--to: the time is not after --from"),
        (["--from", "1500-01-01"], "more than 50,000 windows"),
        (["--window", "minute"], "window: "),
        (["--window", "90m"], "a window must have whole hours"),
        (["--zone", "Europe/Nowhere"], "--zone: there is no time zone 'Europe/Nowhere'"),
        (["--last", "0h"], "--last: '0h' is no time at all"),
        (["--last", "36"], "--last: "),
        (["--last", "2h", "--from", "-3h"], "--last and --from both set the start"),
    ],
)
def test_what_makes_no_sense_is_refused(used: Deployment, args: list[str], said: str) -> None:
    done = used.rota("accounting", *args)
    assert done.returncode == 2
    assert said in done.stderr


def test_nothing_was_used_long_ago(used: Deployment) -> None:
    assert used.ok("accounting", "--from", "2020-01-01", "--to", "2020-01-02") == "nothing was used in this time\n"
