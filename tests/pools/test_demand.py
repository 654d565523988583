"""Demand: runners are asked for as jobs become ready, up and down; a real engine starts real runners."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deployment import Deployment, deployment, is_alive, wait_until

ROOT = Path(__file__).parents[2]


class Cluster:
    """A deployment whose jobs run in a pool that belongs to another engine."""

    def __init__(self, made: Deployment, slots: int) -> None:
        self.made = made
        self.spool = made.home / "spool"
        self.slots = slots
        self.manager: subprocess.Popen[bytes] | None = None
        self.engine: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.start_manager()
        runner = [sys.executable, "-m", "rota.runner", "--socket", str(self.made.home / "manager.sock")]
        runner += ["--dir", str(self.made.home / "runners"), "--log", str(self.made.home / "logs/runner.log")]
        argv = [sys.executable, "-m", "tests.pools.engine", str(self.spool), str(self.slots), *runner]
        self.engine = subprocess.Popen(argv, env=self.made.env, cwd=ROOT)

    def start_manager(self) -> None:
        argv = [sys.executable, "-m", "tests.pools.slow", "--home", str(self.made.home)]
        self.manager = subprocess.Popen(argv, env=self.made.env, cwd=ROOT)
        wait_until(lambda: self.made.rota("status").returncode == 0, "the manager listens")

    def kill_manager(self) -> None:
        assert self.manager is not None
        os.kill(self.manager.pid, signal.SIGKILL)
        self.manager.wait()

    def pending(self) -> int:
        return len(os.listdir(self.spool / "pending"))

    def running(self) -> int:
        return len(os.listdir(self.spool / "running"))

    def runners(self) -> list[int]:
        return [pid for pid in self.made.runner_pids() if self.engine is None or pid != self.engine.pid]

    def lines(self, name: str) -> list[int]:
        path = self.spool / name
        return [int(line) for line in path.read_text().split()] if path.exists() else []


@pytest.fixture
def cluster(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    options = getattr(request, "param", {})
    with deployment(tmp_path, **options.get("settings", {})) as made:
        made.env |= options.get("env", {})
        cluster = Cluster(made, options.get("slots", 2))
        cluster.start()
        try:
            yield cluster
        finally:
            for process in (cluster.engine, cluster.manager):
                if process is not None:
                    process.kill()
                    process.wait()


def test_runners_are_asked_for_as_one_array_and_leave_when_there_is_no_work(cluster: Cluster) -> None:
    added = cluster.made.json("add", "--retries", "0", "-", input="echo 1\necho 2\necho 3\n")["added"]
    cluster.made.ok("wait", *map(str, added))
    assert set(cluster.made.states().values()) == {"complete"}
    assert cluster.lines("arrays")[0] == 3, "one array for all that were missing"
    wait_until(lambda: cluster.running() == 0, "all runners have left")
    wait_until(lambda: not cluster.runners(), "no runner process is left")
    assert cluster.made.json("manager", "status")["runners"] == []


def test_one_runner_serves_job_after_job_of_its_group(cluster: Cluster) -> None:
    """Far more jobs than runners: those that came go on as long as there are jobs of their group."""
    cluster.made.ok("add", "-", input="".join(f"echo {n}\n" for n in range(60)))
    cluster.made.ok("wait", "all")
    with cluster.made.client() as client:
        runners = {attempt.runner for n in range(1, 61) for attempt in client.job(n).attempts}
    assert len(runners) < 20, "a job's end did not end its runner"


@pytest.mark.parametrize("cluster", [{"slots": 1}], indirect=True)
def test_lowering_the_demand_withdraws_pending_runners_and_running_ones_finish(cluster: Cluster) -> None:
    """Case 12."""
    added = cluster.made.json("add", "-", input="".join(f"sleep 600 #{n}\n" for n in range(8)))["added"]
    wait_until(lambda: cluster.running() == 1 and cluster.pending() == 7, "eight runners were asked for")
    (running,) = wait_until(lambda: cluster.made.states("state=running"), "one job runs")
    others = [str(job) for job in added if job != running]
    cluster.made.ok("kill", *others)
    wait_until(lambda: cluster.pending() == 0, "the surplus is withdrawn")
    assert cluster.made.states(str(running)) == {running: "running"}
    assert cluster.running() == 1


@pytest.mark.parametrize("cluster", [{"slots": 4}], indirect=True)
def test_no_more_runners_are_asked_for_than_limits_leave(cluster: Cluster) -> None:
    cluster.made.ok("limit", "few:2")
    cluster.made.ok("add", "--limit", "few", "-", input="".join(f"sleep 600 #{n}\n" for n in range(6)))
    wait_until(lambda: len(cluster.made.states("state=running")) == 2, "two jobs run")
    assert max(cluster.lines("stated")) == 2
    cluster.made.ok("limit", "few:3")
    wait_until(lambda: len(cluster.made.states("state=running")) == 3, "a third one runs")
    assert max(cluster.lines("stated")) == 3


@pytest.mark.parametrize("cluster", [{"settings": {"max_runners": "1"}}], indirect=True)
def test_no_more_runners_are_asked_for_than_the_site_allows(cluster: Cluster) -> None:
    cluster.made.ok("add", "-", input="echo a\necho b\necho c\n")
    cluster.made.ok("wait", "all")
    assert max(cluster.lines("stated")) == 1


@pytest.mark.parametrize("cluster", [{"env": {"RESTATE_S": "0.5"}}], indirect=True)
def test_what_the_engine_forgot_is_asked_for_again(cluster: Cluster) -> None:
    assert cluster.engine is not None
    cluster.engine.send_signal(signal.SIGSTOP)
    cluster.made.ok("add", "--", "echo", "hello")
    (element,) = wait_until(lambda: os.listdir(cluster.spool / "pending"), "a runner was asked for")
    (cluster.spool / "pending" / element).unlink()
    cluster.engine.send_signal(signal.SIGCONT)
    cluster.made.ok("wait", "all")
    assert set(cluster.made.states().values()) == {"complete"}


def test_a_job_goes_on_while_the_manager_is_killed_and_ends_once(cluster: Cluster) -> None:
    witness = cluster.made.work / "witness"
    cluster.made.ok("add", "--retries", "0", "--", f"echo start >> {witness}; sleep 3; echo end >> {witness}")
    wait_until(witness.exists, "the job runs")
    cluster.kill_manager()
    cluster.start_manager()
    cluster.made.ok("wait", "all")
    assert witness.read_text().split() == ["start", "end"]
    assert len(cluster.made.json("show", "1")["attempts"]) == 1


def test_a_killed_runner_s_job_is_tried_again_by_another(cluster: Cluster) -> None:
    cluster.made.ok("add", "--retries", "1", "--backoff", "0s", "--", "sleep", "600")
    wait_until(lambda: cluster.made.states() == {1: "running"}, "it runs")
    (pid,) = cluster.runners()
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(pid), "the runner is dead")
    cluster.made.ok("add", "--", "echo", "another")  # whose runner finds what the dead one left
    wait_until(lambda: cluster.made.json("show", "1")["attempt"] == 2, "it is tried again")
    assert cluster.made.json("show", "1")["attempts"][0]["state"] in ("failed", "lost")


def test_a_runner_with_a_ticket_that_nobody_gave_is_refused(cluster: Cluster) -> None:
    forged = cluster.made.work / "ticket"
    forged.write_text("0" * 32)
    argv = [sys.executable, "-m", "rota.runner", "--socket", str(cluster.made.home / "manager.sock")]
    argv += ["--dir", str(cluster.made.home / "runners"), "--ticket", str(forged), "--linger", "0.2"]
    runner = subprocess.Popen(argv, env=cluster.made.env, stderr=subprocess.DEVNULL)
    try:
        cluster.made.ok("add", "--", "true")
        cluster.made.ok("wait", "all")
        names = {each["pid"] for each in cluster.made.json("manager", "status")["runners"]}
        assert runner.pid not in names
    finally:
        runner.kill()
        runner.wait()
