"""`rota run` when things happen to it: signals, a manager that dies, a manager that is stopped."""

from __future__ import annotations

import os
import pty
import select
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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_also_the_jobs_that_were_there_before_this_run(rota: Deployment, number: int) -> None:
    first = begun(rota, "sleep 61\nsleep 62\nsleep 63\n", "--cpus", "0")
    first.send_signal(signal.SIGHUP)
    first.communicate(timeout=30)
    rota.ok("kill", "2")
    rota.rota("wait", "2")
    rota.ok("add", "--cpus", "0", "--", "sleep", "64")
    again = begun(rota, "sleep 61\nsleep 62\nsleep 63\nsleep 65\n", "--cpus", "0")
    wait_until(lambda: list(rota.states().values()) == ["running"] * 5, "the cancelled one runs again")
    again.send_signal(number)
    _, err = again.communicate(timeout=30)
    assert again.returncode == 128 + number, err
    assert rota.states() == {1: "cancelled", 2: "cancelled", 3: "cancelled", 4: "running", 5: "cancelled"}


def test_cancelling_does_not_stumble_over_a_job_that_was_removed(rota: Deployment) -> None:
    process = begun(rota, '{"cmd": "true", "on_success": ["remove"]}\nsleep 62\n', "--cpus", "0")
    wait_until(lambda: rota.states() == {2: "running"}, "the first is removed")
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 143, err
    assert rota.states() == {2: "cancelled"}


def test_the_line_counts_jobs_that_were_there_before_this_run(rota: Deployment) -> None:
    first = begun(rota, "sleep 61\nsleep 62\n", "--cpus", "0")
    first.send_signal(signal.SIGHUP)
    first.communicate(timeout=30)
    screen, terminal = pty.openpty()
    process = rota.popen("run", "jobs.txt", stdout=subprocess.DEVNULL, stderr=terminal)
    os.close(terminal)
    seen = b""
    while b"2 running" not in seen:
        assert select.select([screen], [], [], 60)[0], seen
        seen += os.read(screen, 4096)
    process.send_signal(signal.SIGHUP)
    process.wait(30)
    os.close(screen)


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
    wait_until(lambda: (rota.home / "manager.json").exists(), "there is a manager")
    wait_until(lambda: list(rota.states().values()) == ["complete"] * 50, "all of it waits for the reader")
    assert process.stdout.read() == b"".join(b"%d\n" % n for n in range(50_000))
    assert process.wait(60) == 0
