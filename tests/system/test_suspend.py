"""Suspend, resume, signals and checkpoints, with real processes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deployment import wait_until
from tests.system.queueing import Queue, queue_of

#: Counts in a file as fast as it is let.
COUNT = "i=0; while :; do i=$((i+1)); echo $i > {name}.new; mv {name}.new {name}; sleep 0.02; done"


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    with queue_of(tmp_path, cores="2") as made:
        yield made


def counted(queue: Queue, name: str) -> int:
    try:
        return int((queue.work / name).read_text() or 0)
    except FileNotFoundError:
        return 0


def stands_still(queue: Queue, name: str) -> bool:
    before = counted(queue, name)
    time.sleep(0.3)
    return counted(queue, name) == before


def counter(queue: Queue, name: str, **fields: object) -> int:
    job = queue.put(COUNT.format(name=name), **fields)
    wait_until(lambda: counted(queue, name) > 2, f"{name} counts{queue.logs()}")
    return job


def test_a_suspended_job_stands_still_and_goes_on_when_it_is_resumed(queue: Queue) -> None:
    job = counter(queue, "c", cpus=1)
    assert "1 job to be suspended" in queue.ok("suspend", str(job))
    queue.until("suspended", job)
    assert stands_still(queue, "c")
    assert queue.reason(job)["code"] == "suspended"
    queue.ok("resume", str(job))
    queue.until("running", job)
    before = counted(queue, "c")
    wait_until(lambda: counted(queue, "c") > before, "it goes on")
    shown = queue.look(job)
    assert shown.suspended_s is not None
    assert shown.suspended_at is None
    assert {"suspend", "suspended", "resume", "resumed"} <= {line.event for line in shown.story or []}


def test_others_get_its_cores_and_it_waits_for_them_as_resuming(queue: Queue) -> None:
    first = counter(queue, "c", cpus=2)
    second = queue.put("while [ ! -e go ]; do sleep 0.02; done", cpus=2)
    assert queue.states_of(second) == ["ready"]
    queue.ok("suspend", str(first))
    queue.until("running", second)
    queue.ok("resume", str(first))
    wait_until(lambda: queue.reason(first)["code"] == "resuming", "it waits for its cores")
    assert queue.why(first)["reasons"][0]["blockers"] == [second]
    assert queue.look(first).state == "suspended"
    assert stands_still(queue, "c")
    (queue.work / "go").touch()
    queue.until("running", first)
    assert queue.states_of(second) == ["complete"]


def test_a_job_that_keeps_its_cores_lets_nobody_have_them(queue: Queue) -> None:
    first = counter(queue, "c", cpus=2)
    second = queue.put("true", cpus=2)
    queue.ok("suspend", "--keep", str(first))
    queue.until("suspended", first)
    time.sleep(0.5)
    assert queue.states_of(second) == ["ready"]
    queue.ok("resume", str(first))
    queue.until("running", first)


def test_a_suspended_job_can_be_killed(queue: Queue) -> None:
    job = queue.put("trap 'echo term > said; exit 1' TERM; echo > up; while :; do sleep 0.02; done")
    wait_until((queue.work / "up").exists, "it is up")
    queue.ok("suspend", str(job))
    queue.until("suspended", job)
    queue.ok("kill", str(job))
    queue.until("cancelled", job)
    assert (queue.work / "said").read_text() == "term\n"


def test_a_suspended_job_survives_a_restart_of_the_manager(queue: Queue) -> None:
    first = counter(queue, "c", cpus=2)
    queue.ok("suspend", str(first))
    queue.until("suspended", first)
    queue.ok("manager", "stop")
    queue.start()
    assert stands_still(queue, "c")
    wait_until(lambda: queue.states_of(first) == ["suspended"], "it is still suspended")
    second = queue.put("while [ ! -e go ]; do sleep 0.02; done", cpus=2)
    queue.until("running", second)
    queue.ok("resume", str(first))
    queue.kill_manager()
    queue.start()
    wait_until(lambda: queue.look(second).state == "running", "the other goes on")
    assert stands_still(queue, "c")
    assert queue.look(first).state == "suspended"
    (queue.work / "go").touch()
    queue.until("running", first)
    assert not stands_still(queue, "c")


def test_suspended_time_is_no_walltime(queue: Queue) -> None:
    job = counter(queue, "c", walltime="4s", retries=0)
    with queue.client() as client:
        assert client.suspend(job).changed == [job]
        queue.until("suspended", job)
        time.sleep(4.5)
        assert queue.look(job).state == "suspended"
        client.resume(job)
    queue.until("failed", job)
    ended = queue.look(job)
    assert ended.reason is not None
    assert ended.reason.code == "walltime"
    assert ended.wall_s is not None
    assert ended.suspended_s is not None
    assert 3.9 <= ended.wall_s < 4.0 + ended.suspended_s - 0.5


def test_what_was_used_does_not_count_what_was_suspended(queue: Queue) -> None:
    job = counter(queue, "c", project="p")
    queue.ok("suspend", str(job))
    queue.until("suspended", job)
    time.sleep(2.0)
    queue.ok("resume", str(job))
    queue.until("running", job)
    queue.ok("kill", str(job))
    queue.until("cancelled", job)
    (row,) = [each for each in queue.json("accounting")["rows"] if each["project"] == "p"]
    ended = queue.look(job)
    assert ended.wall_s is not None
    assert ended.suspended_s is not None
    assert ended.suspended_s >= 1.9
    assert abs(row["used_s"] - ended.wall_s) < 0.1


def test_hooks_of_the_site_run_after_suspend_and_before_resume(tmp_path: Path) -> None:
    said = tmp_path / "said"
    hook = tmp_path / "hook"
    hook.write_text(
        f'#!/bin/sh\necho "$ROTA_HOOK $ROTA_JOB_ID $ROTA_ATTEMPT $ROTA_USER" >> {said}\n[ $ROTA_HOOK = suspend ]\n'
    )
    hook.chmod(0o755)
    with queue_of(tmp_path, suspend_hook=str(hook), resume_hook=str(hook)) as queue:
        job = counter(queue, "c")
        queue.ok("suspend", str(job))
        queue.until("suspended", job)
        queue.ok("resume", str(job))
        queue.until("running", job)
        user = queue.look(job).user
        assert said.read_text().splitlines() == [f"suspend {job} 1 {user}", f"resume {job} 1 {user}"]
        told = [line.text for line in queue.look(job).story or [] if line.event == "pause"]
        assert len(told) == 1, "its failure is recorded"
        assert "resume failed" in told[0]


# ------------------------------------------------------------------ signals


TRAPS = "trap 'echo one >> said' USR1; trap 'echo two >> said' USR2; echo > up; while :; do sleep 0.02; done"


def said(queue: Queue) -> list[str]:
    path = queue.work / "said"
    return path.read_text().split() if path.exists() else []


def test_a_signal_reaches_all_processes_of_a_job(queue: Queue) -> None:
    child = "(trap 'echo child >> said' USR1; echo > up; while :; do sleep 0.02; done) & "
    job = queue.put(f"{child}trap 'echo one >> said' USR1; echo > up.too; while :; do sleep 0.02; done")
    wait_until(lambda: (queue.work / "up").exists() and (queue.work / "up.too").exists(), "both are up")
    queue.until("running", job)
    queue.ok("signal", str(job), "SIGUSR1")
    wait_until(lambda: sorted(said(queue)) == ["child", "one"], "both heard it")
    assert queue.states_of(job) == ["running"]
    refused = queue.rota("signal", str(job), "USR3")
    assert refused.returncode == 2
    assert "did you mean USR" in refused.stderr


def test_a_checkpoint_is_asked_for_by_the_signal_that_the_job_gave(queue: Queue) -> None:
    job = queue.put(TRAPS, signal="USR1")
    wait_until((queue.work / "up").exists, "it is up")
    queue.until("running", job)
    queue.ok("checkpoint", str(job))
    wait_until(lambda: said(queue) == ["one"], "it heard")


def test_the_checkpoint_signal_comes_before_the_walltime_is_over(queue: Queue) -> None:
    job = queue.put(TRAPS, walltime="6s", checkpoint="3s", retries=0)
    queue.until("failed", job)
    assert said(queue) == ["two"]
    shown = queue.look(job)
    assert shown.reason is not None
    assert shown.reason.code == "walltime"


def test_a_besteffort_job_writes_its_checkpoint_before_it_is_ended_for_another(queue: Queue) -> None:
    low = queue.put(
        "trap 'echo saved > said; exit 0' USR2; echo > up; while :; do sleep 0.02; done",
        cpus=2, type=["besteffort"], queue="besteffort", checkpoint="10s",
    )  # fmt: skip
    wait_until((queue.work / "up").exists, "it is up")
    high = queue.put("true", cpus=2)
    queue.until("complete", high)
    assert said(queue) == ["saved"]
    assert queue.states_of(low) == ["complete"]


def test_the_site_may_warn_before_the_walltime_is_over(tmp_path: Path) -> None:
    with queue_of(tmp_path, walltime_warning="3s", warn_signal="USR1") as queue:
        job = queue.put(TRAPS, walltime="6s", retries=0)
        queue.until("failed", job)
        assert said(queue) == ["one"]


def test_fields_of_checkpoints_are_checked(queue: Queue) -> None:
    for words, expected in (
        (("--signal", "NOPE"), "not a signal"),
        (("--checkpoint", "2h", "--walltime", "1h"), "not shorter than the walltime"),
        (("--checkpoint", "0s"), "--checkpoint"),
    ):
        done = queue.rota("add", *words, "--", "true")
        assert done.returncode == 2, done.stderr
        assert expected in done.stderr


def test_acts_on_jobs_that_do_not_run_change_nothing(queue: Queue) -> None:
    job = queue.put("true")
    queue.until("complete", job)
    for words in (("suspend",), ("resume",), ("checkpoint",)):
        assert queue.json(*words, str(job))["changed"] == []
    assert queue.json("signal", str(job), "TERM")["unchanged"] == [job]
    assert os.path.exists(queue.home)
