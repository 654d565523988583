"""The witness notices what must not happen."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cluster.witness import Witness
from tests.deployment import wait_until


@pytest.fixture
def witness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Witness:
    monkeypatch.chdir(tmp_path)
    return Witness(tmp_path / "witness", cores=2)


def _start(witness: Witness, body: str, *, job: int, attempt: int = 1, cpus: int = 1) -> subprocess.Popen[bytes]:
    env = {"ROTA_JOB_ID": str(job), "ROTA_ATTEMPT": str(attempt), "ROTA_CPUS": str(cpus)}
    before = len(witness.lines())
    argv = ["sh", "-c", f"exec {witness.command(body)}"]
    process = subprocess.Popen(argv, env={**os.environ, **env}, start_new_session=True)
    wait_until(lambda: len(witness.lines()) > before, "it began")
    return process


def _run(witness: Witness, body: str, *, job: int, attempt: int = 1, cpus: int = 1) -> int:
    return _start(witness, body, job=job, attempt=attempt, cpus=cpus).wait()


def _end(process: subprocess.Popen[bytes]) -> None:
    """With everything that it started."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _refuses(witness: Witness, states: dict[int, str], words: str, *, retries: int = 0) -> None:
    with pytest.raises(AssertionError, match=re.escape(words)):
        witness.judge(states, retries=dict.fromkeys(states, retries))


def test_jobs_that_do_what_they_should_are_believed(witness: Witness) -> None:
    assert _run(witness, "true", job=1, cpus=2) == 0
    assert _run(witness, "exit 3", job=2) == 3
    assert _run(witness, "true", job=2, attempt=2) == 0
    witness.judge({1: "complete", 2: "complete"}, retries={1: 0, 2: 1})
    assert witness.seen(2) == ["start", "end", "start", "end"]
    assert witness.hosts(1) == [os.uname().nodename]


def test_a_job_that_runs_twice_at_once_is_noticed(witness: Witness) -> None:
    first = _start(witness, "sleep 300", job=1)
    _run(witness, "true", job=1, attempt=2)
    _end(first)
    _refuses(witness, {1: "complete"}, "ran twice at once", retries=1)


def test_what_a_killed_command_left_running_still_counts(witness: Witness) -> None:
    first = _start(witness, "touch forked; sleep 300", job=1)
    wait_until(Path("forked").exists, "it forked")
    first.kill()
    _run(witness, "true", job=1, attempt=2)
    assert "twice" in witness.seen(1)
    _end(first)


def test_a_host_with_too_many_jobs_is_noticed(witness: Witness) -> None:
    first = _start(witness, "sleep 300", job=1, cpus=2)
    _run(witness, "true", job=2)
    _end(first)
    _refuses(witness, {1: "failed", 2: "complete"}, "found no free core")


def test_a_job_that_is_gone_or_has_not_ended_or_not_begun_is_noticed(witness: Witness) -> None:
    with pytest.raises(AssertionError, match="is gone"):
        witness.judge({}, retries={1: 0})
    _refuses(witness, {1: "running"}, "has not ended")
    _refuses(witness, {1: "complete"}, "never reached its end")


def test_an_attempt_too_many_is_noticed(witness: Witness) -> None:
    _run(witness, "true", job=1)
    _run(witness, "true", job=1, attempt=2)
    _refuses(witness, {1: "complete"}, "began 2 times")


def test_an_attempt_that_begins_twice_is_noticed(witness: Witness) -> None:
    _run(witness, "true", job=1)
    _run(witness, "true", job=1)
    _refuses(witness, {1: "complete"}, "began in the order [1, 1]", retries=5)
