"""A real manager that meets bugs: it drops what it was deciding, starts anew in the same process, and goes on."""

from __future__ import annotations

import os
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deployment import Deployment, deployment, is_alive, wait_until

pytestmark = pytest.mark.cold

_BUGS = Path(__file__).with_name("bugs")


class Buggy:
    """A deployment whose manager meets the bugs that it is told to."""

    def __init__(self, rota: Deployment, file: Path) -> None:
        self.rota = rota
        self._file = file
        rota.env |= {"PYTHONPATH": str(_BUGS), "ROTA_TEST_BUGS": str(file)}

    def meets(self, *bugs: str) -> None:
        self._file.write_text("".join(f"{bug}\n" for bug in bugs))

    @property
    def left(self) -> list[str]:
        """The bugs that were not met yet."""
        return self._file.read_text().splitlines()

    def generation(self) -> int:
        with self.rota.client() as client:
            return client.manager_status().generation


@pytest.fixture
def buggy(tmp_path: Path) -> Iterator[Buggy]:
    with deployment(tmp_path) as made:
        yield Buggy(made, tmp_path / "bugs.txt")


def test_a_bug_in_a_request_costs_a_new_generation_and_nothing_else(buggy: Buggy) -> None:
    rota = buggy.rota
    rota.env["ROTA_HTTP"] = "on"
    rota.start()
    pid, runner = rota.manager_pid(), wait_until(rota.runner_pids, "a runner")
    gate = rota.work / "gate"
    long = rota.json("add", "--", "sh", "-c", f"until [ -e {gate} ]; do sleep 0.05; done")["added"][0]
    wait_until(lambda: rota.state(long) == "running", "it runs")
    with rota.client() as client:
        http = client.manager_status().http
    assert http is not None
    waiting = rota.popen("wait", str(long))
    for generation, bug in enumerate(
        ["JobsHeld before", "JobsHeld after", "ChunkArrived after", "commit before"], 2
    ):
        buggy.meets(bug)
        if bug.startswith("JobsHeld"):
            rota.ok("hold", str(rota.json("add", "--after", str(long), "--", "echo", bug)["added"][0]))
        else:
            rota.ok("add", "--after", str(long), "--", "true")
        assert buggy.left == []
        assert buggy.generation() == generation, rota.logs()
    assert rota.manager_pid() == pid
    assert is_alive(pid)
    assert rota.runner_pids() == runner
    assert rota.state(long) == "running"
    wait_until(lambda: _answers(http), "the gateway is back at its address")
    gate.touch()
    assert waiting.wait(60) == 0
    wait_until(lambda: rota.state(long) == "complete", "it completes")
    assert len(rota.states()) == 5
    assert "4 met" in rota.ok("manager", "status")
    checks = rota.json("doctor", "--quick")["checks"]
    assert [each for each in checks if "a bug in JobsHeld" in each["message"]]
    assert _zombies_of(pid) == []
    fds = [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]
    assert sum(target.endswith("/manager.lock") for target in fds) == 1
    assert sum(target.endswith("/rota.db") for target in fds) <= 6  # the writer and its readers of one image


def test_what_meets_a_bug_again_is_not_decided_any_more(buggy: Buggy) -> None:
    rota = buggy.rota
    rota.start()
    jobs = [rota.json("add", "--", "sleep", "600")["added"][0] for _ in range(2)]
    buggy.meets("JobsKilled after", "JobsKilled after")
    refused = rota.rota("kill", str(jobs[0]))
    assert "a bug in the manager keeps it from doing this" in refused.stderr
    assert buggy.left == []
    before = buggy.generation()
    assert rota.rota("kill", str(jobs[0])).returncode != 0
    rota.ok("kill", str(jobs[1]))
    assert buggy.generation() == before
    rota.ok("manager", "resume")
    rota.ok("kill", str(jobs[0]))
    wait_until(lambda: set(rota.states().values()) == {"cancelled"}, "both are killed")


def test_an_end_that_meets_bugs_is_kept_and_shown(buggy: Buggy) -> None:
    rota = buggy.rota
    rota.start()
    gate = rota.work / "gate"
    command = f"until [ -e {gate} ]; do sleep 0.05; done; echo printed; exit 3"
    (job,) = rota.json("add", "--retries", "0", "--", "sh", "-c", command)["added"]
    wait_until(lambda: rota.state(job) == "running", "it runs")
    buggy.meets("end_attempt before", "end_attempt before")
    gate.touch()
    wait_until(lambda: rota.state(job) == "failed", "it is given up")
    assert buggy.left == []
    shown = rota.json("show", str(job))
    assert (shown["reason"]["code"], shown["exit_code"]) == ("lost", 3)
    assert "a report that the manager could not decide" in rota.ok("show", str(job))
    assert rota.ok("logs", str(job)) == "printed\n"
    assert rota.ok("run", "--", "echo", "more") == "more\n"


def test_bugs_outside_of_requests_mean_safe_mode(buggy: Buggy) -> None:
    rota = buggy.rota
    rota.start()
    buggy.meets("grant_leases before", "grant_leases before")
    wait_until(lambda: buggy.left == [], "both are met")
    (job,) = rota.json("add", "--", "true")["added"]
    assert rota.json("why", str(job))["reasons"][0]["code"] == "bug"
    assert "nothing starts because of a bug" in rota.ok("status")
    assert '"ok": false' in rota.rota("doctor", "--quick", "--json").stdout.replace('"ok":false', '"ok": false')
    rota.ok("manager", "resume")
    wait_until(lambda: rota.state(job) == "complete", "it runs after all")
    buggy.meets("SendReply before")
    assert rota.rota("hold", str(job)).returncode != 0  # the answer could not be sent
    assert "effect SendReply" in rota.ok("manager", "status")


def test_a_recovery_that_fails_once_is_tried_again_and_one_that_fails_twice_says_why(buggy: Buggy) -> None:
    rota = buggy.rota
    buggy.meets("recover before")
    rota.start()
    assert buggy.left == []
    rota.ok("manager", "stop")
    buggy.meets("recover before", "recover before")
    failed = rota.rota("manager", "start")
    assert failed.returncode != 0
    assert "injected before recover" in failed.stderr


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _zombies_of(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children if not is_alive(int(child))]
