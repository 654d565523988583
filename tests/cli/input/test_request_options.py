"""What a job asks of the planner: from the options of `add` to `show`, `jobs`, `--dry-run` and `modify`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.deployment import Deployment

LATER = "2099-01-01T00:00:00Z"
WAITING = ["--after", "@nobody", "--allow-empty-group"]


def added(rota: Deployment, *options: str) -> int:
    (job,) = rota.json("add", *WAITING, *options, "--", "true")["added"]
    assert isinstance(job, int)
    return job


def card(rota: Deployment, job: int) -> dict[str, str]:
    lines = rota.ok("show", str(job)).partition("\n\n")[0].splitlines()[1:]
    return {line[2:14].strip(): line[15:] for line in lines}


def seen(rota: Deployment, job: int) -> dict[str, Any]:
    names = ("request", "where", "type", "queue", "project", "at", "resources")
    shown = rota.json("show", str(job))
    (listed,) = rota.json("jobs", str(job))["jobs"]
    assert {name: shown[name] for name in names} == {name: listed[name] for name in names}
    # It moves with the clock.
    assert (shown["expected_start"] is None) == (listed["expected_start"] is None)
    return {name: shown[name] for name in (*names, "expected_start")}


def test_everything_that_was_asked_is_shown(shared: Deployment) -> None:
    options = ["-l", "host=1/core=1,walltime=1h", "-l", "core=1", "-p", "host != 'x'", "-t", "idempotent"]
    options += ["-t", f"deadline={LATER}", "--project", "dark matter", "--mem", "100M"]
    job = added(shared, *options)
    found = seen(shared, job)
    assert found == {
        "request": ["host=1/core=1,walltime=1h", "core=1"],
        "where": "host != 'x'",
        "type": ["idempotent", "deadline=4070908800"],
        "queue": "default",
        "project": "dark matter",
        "at": None,
        "resources": None,
        "expected_start": None,
    }
    local = datetime(2099, 1, 1, tzinfo=UTC).astimezone()
    rows = card(shared, job)
    assert rows["request"] == "host=1/core=1,walltime=1h  or  core=1"
    assert rows["where"] == "host != 'x'"
    assert rows["type"] == f"idempotent, deadline={local:%Y-%m-%d %H:%M:%S}"
    assert rows["takes"] == "100M memory on each host, about 2h"
    assert rows["project"] == "dark matter"
    shared.ok("kill", str(job))


def test_a_job_that_asks_for_nothing_special_says_so_briefly(shared: Deployment) -> None:
    job = added(shared)
    found = seen(shared, job)
    assert (found["request"], found["where"], found["type"], found["at"]) == (None, None, [], None)
    assert card(shared, job).keys().isdisjoint({"request", "where", "type", "reserved for", "resources"})
    shared.ok("kill", str(job))


def test_besteffort_is_a_queue_of_its_own(shared: Deployment) -> None:
    by_type, by_queue = added(shared, "-t", "besteffort"), added(shared, "-q", "besteffort")
    for job in (by_type, by_queue):
        found = seen(shared, job)
        assert (found["type"], found["queue"]) == (["besteffort"], "besteffort")
    shared.ok("kill", str(by_type), str(by_queue))


def test_a_reservation_is_shown_with_its_time(shared: Deployment) -> None:
    (job,) = shared.json("add", "-r", LATER, "-l", "core=1,walltime=1m", "--", "true")["added"]
    assert seen(shared, job)["at"] == LATER
    local = datetime(2099, 1, 1, tzinfo=UTC).astimezone()
    assert card(shared, job)["reserved for"] == f"{local:%Y-%m-%d %H:%M:%S}"
    shared.ok("kill", str(job))


def test_fields_of_a_line_are_the_same(shared: Deployment) -> None:
    line = {"cmd": "echo line", "request": "core=1", "where": "host != 'x'", "type": "idempotent", "project": "p"}
    (job,) = shared.json("add", *WAITING, "-", input=json.dumps(line))["added"]
    found = seen(shared, job)
    assert (found["request"], found["where"], found["type"]) == (["core=1"], "host != 'x'", ["idempotent"])
    assert shared.json("add", *WAITING, "-", input=json.dumps({**line, "request": "core=2"}))["existing"] == [job]
    shared.ok("kill", str(job))


def test_a_dry_run_shows_them_where_they_differ(shared: Deployment) -> None:
    lines = [
        {"cmd": "a", "request": ["nodes=1", "core=1"], "type": "idempotent"},
        {"cmd": "b", "request": ["nodes=1", "core=1"], "type": "idempotent"},
        {"cmd": "c", "project": "p"},
    ]
    shown = shared.ok("add", "--dry-run", "-", input="\n".join(map(json.dumps, lines)))
    assert shown.splitlines()[1:] == [
        "  a",
        "    request nodes=1  or  core=1; type idempotent",
        "  b",
        "  c",
        "    project p",
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["-l", "nodes"], "--request: "),
        (["-l", "nodes=1", "-l", "core"], "--request: alternative 2: "),
        (["-l", "nodes=1", "--cpus", "2"], "--request and --cpus contradict each other"),
        (["-l", "nodes=1", "--gpus", "1"], "--request and --gpus contradict each other"),
        (["-p", "gpu="], "--where: "),
        (["-t", "bestefort"], "--type: unknown type 'bestefort'; did you mean 'besteffort'?"),
        (["-r", "1700000000"], "--at: '1700000000' is only a number; write @1700000000"),
        (["-r", "@1700000000"], "--at: '@1700000000' is in the past"),
        (["-r", "now+1h", "-t", "besteffort"], "--at: a besteffort job"),
        (["-r", "now+1h", "-t", "inner=1"], "--at: a job inside a container"),
    ],
)
def test_a_mistake_is_one_line_and_needs_no_manager(rota: Deployment, options: list[str], expected: str) -> None:
    done = rota.rota("add", "--no-start", *options, "--", "true")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"rota: {expected}")
    assert done.stderr.count("\n") == 1


def test_waiting_jobs_can_be_modified(shared: Deployment) -> None:
    job = added(shared, "--cpus", "1")
    assert shared.json("modify", str(job), "-l", "core=1", "-p", "host != 'x'", "-t", "noop")["changed"] == [job]
    found = seen(shared, job)
    assert (found["request"], found["where"], found["type"]) == (["core=1"], "host != 'x'", ["noop"])
    refused = shared.rota("modify", str(job), "--cpus", "1")
    assert refused.returncode == 2
    assert "a job takes what its request says" in refused.stderr
    shared.ok("modify", str(job), "--cpus", "1", "-l", "none", "-p", "none", "-t", "besteffort")
    found = seen(shared, job)
    assert (found["request"], found["where"], found["queue"]) == (None, None, "besteffort")
    shared.ok("modify", str(job), "-t", "none")
    found = seen(shared, job)
    assert (found["type"], found["queue"]) == ([], "default")
    shared.ok("kill", str(job))
