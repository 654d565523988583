"""`rota run` when things happen to it: signals, a manager that dies, a manager that is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest

from tests.deployment import Deployment, wait_until


def begun(rota: Deployment, lines: str, *words: str) -> subprocess.Popen[bytes]:
    (rota.work / "jobs.txt").write_text(lines)
    process = rota.popen("run", *words, "jobs.txt", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: (rota.home / "manager.json").exists(), "there is a manager")
    wait_until(lambda: "running" in rota.states("@jobs.txt").values(), "a job runs")
    return process


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_cancels_the_jobs_of_this_run_and_no_others(rota: Deployment, number: int, status: int) -> None:
    rota.ok("add", "--cpus", "0", "--", "sleep", "60")
    process = begun(rota, "sleep 61\nsleep 62\n")
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == status, err
    assert sorted(rota.states().values()) == ["cancelled", "cancelled", "running"]


def test_a_hangup_detaches(rota: Deployment) -> None:
    process = begun(rota, "sleep 60\n")
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=30)
    assert process.returncode == 129
    assert set(rota.states().values()) == {"running"}


def test_jobs_that_were_complete_are_told_as_skipped(rota: Deployment) -> None:
    (rota.work / "jobs.txt").write_text("true\nexit 1\n")
    rota.rota("run", "jobs.txt")
    again = rota.rota("run", "jobs.txt")
    assert again.returncode == 1
    assert "1 failed, 1 already complete (skipped)" in again.stderr
    assert rota.rota("run", "--quiet", "jobs.txt").stderr == ""


def test_blocked_jobs_end_the_run_and_are_named(rota: Deployment) -> None:
    done = rota.rota("run", "-", input='exit 3\n{"cmd": "true", "after": "line:1"}\n')
    assert done.returncode == 1
    assert "1 failed, 1 blocked" in done.stderr
    assert "job 2 blocked" in done.stderr


def test_a_killed_manager_is_started_again_and_nothing_is_lost_or_printed_twice(rota: Deployment) -> None:
    process = begun(rota, "echo early\nsleep 3; echo late\n")
    assert process.stdout is not None
    assert process.stdout.readline() == b"early\n"
    os.kill(rota.manager_pid(), signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out == b"late\n"
    assert err.count(b"the connection to the manager was lost") == 1


def test_a_manager_that_is_restarted_by_somebody_is_found_again(rota: Deployment) -> None:
    rota.start()
    process = begun(rota, "sleep 3; echo done\n")
    rota.ok("manager", "stop")
    time.sleep(0.3)
    rota.start()
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, b"done\n"), err


def test_a_reader_that_is_slow_gets_everything(rota: Deployment) -> None:
    (rota.work / "jobs.txt").write_text("".join(f"seq {n} {n + 999}\n" for n in range(0, 50_000, 1000)))
    process = rota.popen("run", "--keep-order", "jobs.txt", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    time.sleep(2)
    assert process.stdout.read() == b"".join(b"%d\n" % n for n in range(50_000))
    assert process.wait(60) == 0
