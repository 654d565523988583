"""Lost jobs with real processes: runners and managers that are stopped, killed and brought back.

The jobs append to a witness file that Rota never touches. Countdowns are short by settings; nothing here
depends on how fast the machine is, only on who is stopped and who is not.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deployment import Deployment, is_alive, wait_until

_SHORT = {"touch_s": "0.2s", "lost_after": "2s", "grace": "1s", "cores": "2"}
_WITNESSED = (
    'echo "$ROTA_JOB_ID $ROTA_ATTEMPT $$ start" >> witness; {body}; '
    'echo "$ROTA_JOB_ID $ROTA_ATTEMPT $$ end" >> witness'
)


class Site(Deployment):
    """A deployment, its witness, and a hand on its processes."""

    def __init__(self, top: Path, **settings: str) -> None:
        super().__init__(top, **settings)
        self.witness = self.work / "witness"
        self.witness.touch()

    def add(self, body: str, *options: str) -> int:
        """Add a witnessed job; its id."""
        return int(self.ok("add", "--quiet", *options, "--", "sh", "-c", _WITNESSED.format(body=body)))

    def running(self, body: str, *options: str) -> int:
        """The same, once it executes and the manager knows."""
        job = self.add(body, *options)
        wait_until(lambda: self.state(job) == "running" and self.pids(job), f"job {job} runs {self.logs()}")
        return job

    def seen(self, job: int) -> list[str]:
        lines = [line.split() for line in self.witness.read_text().splitlines()]
        return [what for number, _attempt, _pid, what in lines if int(number) == job]

    def pids(self, job: int) -> list[int]:
        lines = [line.split() for line in self.witness.read_text().splitlines()]
        return [int(pid) for number, _attempt, pid, what in lines if int(number) == job and what == "start"]

    def shown(self, job: int) -> dict[str, Any]:
        found: dict[str, Any] = self.json("show", str(job))
        return found

    def until(self, job: int, state: str, *, seconds: float = 60) -> None:
        wait_until(lambda: self.state(job) == state, f"job {job} is {state} {self.logs()}", seconds=seconds)

    def outcomes(self, job: int) -> list[tuple[str, str | None]]:
        attempts = self.shown(job)["attempts"]
        return [(each["state"], (each.get("reason") or {}).get("code")) for each in attempts]

    def runner(self) -> int:
        (pid,) = wait_until(self.runner_pids, "a runner is there")
        return int(pid)

    @contextlib.contextmanager
    def stopped(self, pid: int) -> Iterator[None]:
        """This process stands still meanwhile."""
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not is_alive(pid), f"process {pid} is gone")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    """Makes sites that are gone at the end, whatever happened."""
    sites: list[Site] = []

    def begin(**settings: str) -> Site:
        site = Site(tmp_path / str(len(sites)), **(_SHORT | settings))
        sites.append(site)
        site.start()
        return site

    yield begin
    for site in sites:
        site.close()


# ------------------------------------------------------------------ a runner that stands still


def test_jobs_of_a_stopped_runner_are_lost_keep_their_cores_and_run_again_when_it_goes_on(
    start: Callable[..., Site],
) -> None:
    rota = start()
    job = rota.running("sleep 300", "--cpus", "2")
    with rota.stopped(rota.runner()):
        rota.until(job, "lost")
        reason = rota.shown(job)["reason"]
        assert reason["code"] == "lost"
        assert "has been silent for 2 s" in reason["message"]
        card = rota.ok("show", str(job))
        assert "lost" in card
        assert "has been silent for 2 s" in card
        assert rota.shown(job)["host"]
        beside = rota.add("true", "--cpus", "1")
        time.sleep(1)
        assert rota.state(beside) == "ready", "the lost job has all the cores"
        assert is_alive(rota.pids(job)[0])
    rota.until(job, "running")
    assert rota.seen(beside) == []
    rota.ok("kill", str(job))
    rota.until(job, "cancelled")
    rota.until(beside, "complete")
    assert len(rota.outcomes(job)) == 1
    story = [line["event"] for line in rota.shown(job)["story"]]
    assert [event for event in story if event in ("lost", "revived")] == ["lost", "revived"]


def test_a_job_that_ended_at_a_stopped_runner_ends_once(start: Callable[..., Site]) -> None:
    rota = start()
    job = rota.running("while ! test -e go; do sleep 0.05; done")
    with rota.stopped(rota.runner()):
        rota.until(job, "lost")
        (rota.work / "go").touch()
        wait_until(lambda: rota.seen(job) == ["start", "end"], "the command has ended")
        assert rota.state(job) == "lost"
    rota.until(job, "complete")
    assert rota.outcomes(job) == [("complete", None)]
    assert rota.seen(job) == ["start", "end"]


def test_a_lost_job_that_is_killed_ends_when_its_runner_goes_on(start: Callable[..., Site]) -> None:
    rota = start()
    job = rota.running("sleep 300", "--retries", "3")
    with rota.stopped(rota.runner()):
        rota.until(job, "lost")
        rota.ok("kill", str(job))
        assert rota.state(job) == "lost"
    rota.until(job, "cancelled")
    assert not is_alive(rota.pids(job)[0])


def test_a_survivor_of_a_confirmed_death_is_killed_and_its_report_changes_nothing(
    start: Callable[..., Site],
) -> None:
    rota = start()
    job = rota.running("sleep 300", "--retries", "0")
    with rota.stopped(rota.runner()):
        rota.until(job, "lost")
        rota.ok("confirm-dead", str(job))
        rota.until(job, "failed")
        assert rota.shown(job)["reason"]["code"] == "lost"
        assert is_alive(rota.pids(job)[0])
    wait_until(lambda: not is_alive(rota.pids(job)[0]), "the survivor is gone")
    after = rota.running("sleep 300")  # the runner is of use again, and has told everything
    assert rota.state(after) == "running"
    assert rota.outcomes(job) == [("failed", "lost")]
    assert rota.state(job) == "failed"
    assert rota.seen(job) == ["start"]


# ------------------------------------------------------------------ a runner that is killed


def test_a_runner_killed_between_spawn_and_report_leaves_a_job_that_never_runs_again(
    start: Callable[..., Site],
) -> None:
    rota = start()
    runner = rota.runner()
    # The job itself kills its runner, sooner than a start is reported.
    job = rota.add(f"kill -9 {runner}; sleep 300 & sleep 300", "--retries", "0")
    wait_until(lambda: rota.pids(job), "it executes")
    wait_until(lambda: not is_alive(runner), "its runner is gone")
    rota.until(job, "failed")
    assert rota.outcomes(job) == [("failed", "lost")]
    assert rota.shown(job)["reason"]["code"] == "lost"
    assert not is_alive(rota.pids(job)[0]), "survivors are ended before the end is told"
    other = rota.running("sleep 300")
    assert rota.state(other) == "running"
    assert rota.seen(job) == ["start"]


def test_a_job_with_retries_whose_runner_is_killed_runs_again_after_its_survivors_are_gone(
    start: Callable[..., Site],
) -> None:
    rota = start()
    body = "test $ROTA_ATTEMPT -gt 1 || sleep 300"
    job = rota.running(body, "--retries", "1", "--backoff", "0s")
    rota.kill(rota.runner())
    rota.until(job, "complete")
    assert rota.outcomes(job) == [("failed", "lost"), ("complete", None)]
    assert rota.seen(job) == ["start", "start", "end"]


def test_a_lost_job_ends_when_its_stopped_runner_is_killed(start: Callable[..., Site]) -> None:
    rota = start()
    job = rota.running("sleep 300", "--retries", "0")
    runner = rota.runner()
    with rota.stopped(runner):
        rota.until(job, "lost")
        rota.kill(runner)
    rota.until(job, "failed")
    assert rota.outcomes(job) == [("failed", "lost")]
    assert not is_alive(rota.pids(job)[0])


# ------------------------------------------------------------------ a manager that is away


def test_the_end_of_a_job_that_ran_while_the_manager_was_killed_is_recorded_once(
    start: Callable[..., Site],
) -> None:
    rota = start()
    job = rota.running("while ! test -e go; do sleep 0.05; done")
    for _time in range(3):
        rota.kill(rota.manager_pid())
        rota.start()
    assert rota.state(job) == "running"
    (rota.work / "go").touch()
    rota.until(job, "complete")
    assert rota.outcomes(job) == [("complete", None)]
    assert rota.seen(job) == ["start", "end"]


def test_a_job_that_ends_while_the_manager_is_down_past_the_countdown_is_recorded_when_it_is_back(
    start: Callable[..., Site],
) -> None:
    rota = start(lost_after="1s")
    job = rota.running("while ! test -e go; do sleep 0.05; done", "--retries", "0")
    rota.kill(rota.manager_pid())
    (rota.work / "go").touch()
    wait_until(lambda: rota.seen(job) == ["start", "end"], "the command has ended")
    time.sleep(1.5)
    rota.start()
    rota.until(job, "complete")
    assert rota.outcomes(job) == [("complete", None)]


def test_a_manager_that_stood_still_past_the_countdown_loses_nothing(start: Callable[..., Site]) -> None:
    rota = start(lost_after="6s")
    job = rota.running("sleep 300")
    with rota.stopped(rota.manager_pid()):
        time.sleep(7)
    # As many ticks as it takes to look at everybody twice.
    wait_until(lambda: "was stalled" in rota.logs(), "it notices")
    time.sleep(2.5)
    assert rota.state(job) == "running"
    assert "lost" not in [line["event"] for line in rota.shown(job)["story"]]


def test_a_runner_without_a_manager_for_long_ends_its_jobs_and_keeps_their_records(
    start: Callable[..., Site],
) -> None:
    rota = start(orphan_after="2s")
    job = rota.running("sleep 300", "--retries", "0")
    done = rota.running("while ! test -e go; do sleep 0.05; done", "--retries", "0")
    runner = rota.runner()
    rota.kill(rota.manager_pid())
    (rota.work / "go").touch()
    wait_until(lambda: not is_alive(runner), "the runner has left")
    assert not is_alive(rota.pids(job)[0]), "it ended its job"
    rota.start()
    rota.until(job, "failed")
    rota.until(done, "complete")
    assert rota.outcomes(job) == [("failed", "lost")]
    assert "the manager was away for 2 s" in rota.shown(job)["reason"]["message"]
    assert (rota.seen(job), rota.seen(done)) == (["start"], ["start", "end"])
