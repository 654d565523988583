"""Scripts of the site at work, with real processes: on the node, on the manager's host, for silent nodes and for
suspected ones. Nothing that goes wrong with them ever stops a queue."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deployment import is_alive, wait_until
from tests.system.queueing import Queue, queue_of


def write(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@contextlib.contextmanager
def site(top: Path, *, scripts: dict[str, str], **settings: str) -> Iterator[Queue]:
    """A queue on four cores with these settings and hooks. `$W` in a script is the directory of its jobs."""
    work = top / "work"
    work.mkdir()
    paths = {name: write(top / name, f"W={work}\n{text}") for name, text in scripts.items()}
    with queue_of(top, cores="4", **{**paths, **settings}) as made:
        yield made


def node(queue: Queue) -> Any:
    with queue.client() as client:
        (found,) = client.nodes()
    return found


# ------------------------------------------------------------------ on the node


def test_a_job_has_its_prologue_and_its_epilogue(tmp_path: Path) -> None:
    scripts = {
        "prologue": "echo $ROTA_HOOK $ROTA_JOB_ID $ROTA_USER >> $W/said",
        "epilogue": "echo $ROTA_HOOK $ROTA_OUTCOME >> $W/said",
    }
    with site(tmp_path, scripts=scripts) as queue:
        job = queue.put("echo job >> said")
        queue.until("complete", job)
        user = queue.look(job).user
        assert queue.ran("said") == ["prologue", str(job), user, "job", "epilogue", "complete"]


def test_a_job_is_starting_during_its_prologue_and_finishing_during_its_epilogue(tmp_path: Path) -> None:
    wait = "until test -e $W/$ROTA_HOOK.go; do sleep 0.05; done"
    with site(tmp_path, scripts={"prologue": wait, "epilogue": wait}) as queue:
        job = queue.put(queue.waits_for("command.go"))
        queue.until("starting", job)
        assert queue.shown(job)["reason"]["code"] == "prologue"
        assert [each["code"] for each in queue.why(job)["reasons"]] == ["prologue"]
        queue.open("prologue.go")
        queue.until("running", job)
        assert queue.shown(job)["reason"] is None
        queue.open("command.go")
        queue.until("finishing", job)
        assert queue.shown(job)["reason"]["code"] == "epilogue"
        queue.open("epilogue.go")
        queue.until("complete", job)


def test_a_node_with_a_failing_prologue_is_suspected_and_its_jobs_wait_until_it_is_healed(tmp_path: Path) -> None:
    with site(tmp_path, scripts={"prologue": "test -e $W/well || { echo disk is gone; exit 1; }"}) as queue:
        first = queue.put("echo ran >> ran", retries=0)
        wait_until(lambda: node(queue).state == "suspected", "the node is suspected")
        queue.until("ready", first)
        other = queue.put("true", request=["core=1"])
        for job in (first, other):
            (reason,) = queue.why(job)["reasons"]
            assert reason["code"] == "no_resources"
            assert "suspected" in reason["message"]
        assert "disk is gone" in node(queue).why
        assert queue.ran() == []
        # The record is durable.
        queue.kill_manager()
        queue.start()
        assert node(queue).state == "suspected"
        queue.open("well")
        queue.ok("resource", "set", "--hosts", node(queue).host, "--state", "alive")
        queue.until("complete", first, other)
        # No retry was used: there were none.
        assert queue.ran() == ["ran"]
        assert queue.look(first).attempt == 2


def test_a_failing_epilogue_suspects_the_node_and_the_outcome_stays(tmp_path: Path) -> None:
    with site(tmp_path, scripts={"epilogue": "exit 1"}) as queue:
        job = queue.put("exit 3", retries=0)
        queue.until("failed", job)
        assert queue.shown(job)["reason"]["code"] == "exit"
        wait_until(lambda: node(queue).state == "suspected", "the node is suspected")


def test_a_suspected_node_is_healed_by_the_site_itself(tmp_path: Path) -> None:
    scripts = {"prologue": "test -e $W/well", "heal_cmd": "echo $1 >> $W/asked; test -e $W/well"}
    with site(tmp_path, scripts=scripts, heal_every="1s") as queue:
        job = queue.put("true")
        wait_until(lambda: queue.ran("asked"), "it was asked about the node")
        assert queue.state(job) == "ready"
        queue.open("well")
        queue.until("complete", job)
        found = node(queue)
        assert found.state == "alive"
        assert set(queue.ran("asked")) == {found.host}


def test_a_job_may_be_killed_during_its_prologue(tmp_path: Path) -> None:
    with site(tmp_path, scripts={"prologue": "touch $W/begun; exec sleep 1000"}) as queue:
        job = queue.put("touch ran")
        wait_until((queue.work / "begun").exists, "its prologue runs")
        queue.ok("kill", str(job))
        queue.until("cancelled", job)
        assert node(queue).state == "alive"
        assert not (queue.work / "ran").exists()


# ------------------------------------------------------------------ on the manager's host


def test_a_job_is_sent_after_the_prologue_on_the_manager_and_followed_by_its_epilogue(tmp_path: Path) -> None:
    wait = "until test -e $W/go; do sleep 0.05; done"
    scripts = {
        "server_prologue": f"echo $ROTA_HOOK $ROTA_JOB_ID >> $W/said; {wait}",
        "server_epilogue": "echo $ROTA_HOOK $ROTA_OUTCOME $ROTA_EXIT_CODE >> $W/said",
    }
    with site(tmp_path, scripts=scripts) as queue:
        job = queue.put("echo job >> said; exit 3", retries=0)
        queue.until("starting", job)
        assert queue.shown(job)["reason"]["code"] == "server_prologue"
        queue.open("go")
        queue.until("failed", job)
        wait_until(lambda: "3" in queue.ran("said"), "the epilogue ran")
        expected = ["server_prologue", str(job), "job", "server_epilogue", "failed", "3"]
        assert queue.ran("said") == expected


def test_a_failing_prologue_on_the_manager_fails_its_job_in_the_end_and_nobody_else(tmp_path: Path) -> None:
    scripts = {
        "server_prologue": 'echo x >> $W/tried; test "$ROTA_JOB_NAME" != bad || { echo no licence; exit 1; }'
    }
    with site(tmp_path, scripts=scripts) as queue:
        bad = queue.put("touch ran", name="bad", backoff="0s", retries=0)
        good = [queue.put("true") for _ in range(3)]
        queue.until("complete", *good)
        queue.until("failed", bad)
        reason = queue.shown(bad)["reason"]
        assert reason["code"] == "server_prologue"
        assert "no licence" in reason["message"]
        assert not (queue.work / "ran").exists()
        assert len(queue.ran("tried")) == 3 + len(good)


def test_a_prologue_on_the_manager_that_a_crash_interrupts_begins_again(tmp_path: Path) -> None:
    scripts = {"server_prologue": "echo x >> $W/tried; until test -e $W/go; do sleep 0.05; done"}
    with site(tmp_path, scripts=scripts) as queue:
        job = queue.put("echo ran >> ran", retries=0)
        wait_until(lambda: queue.ran("tried"), "it runs")
        queue.kill_manager()
        queue.start()
        wait_until(lambda: len(queue.ran("tried")) == 2, "it runs again")
        queue.open("go")
        queue.until("complete", job)
        assert queue.ran() == ["ran"]


def test_an_epilogue_on_the_manager_that_a_crash_interrupts_is_run_by_the_next(tmp_path: Path) -> None:
    scripts = {"server_epilogue": "echo $ROTA_JOB_ID >> $W/tried; test -e $W/go || exec sleep 1000"}
    with site(tmp_path, scripts=scripts) as queue:
        job = queue.put("true")
        queue.until("complete", job)
        wait_until(lambda: queue.ran("tried"), "it runs")
        queue.kill_manager()
        queue.open("go")
        queue.start()
        wait_until(lambda: queue.ran("tried") == [str(job)] * 2, "it runs again")


def test_a_job_may_be_killed_during_the_prologue_on_the_manager(tmp_path: Path) -> None:
    scripts = {"server_prologue": "echo $$ > $W/pid.new; mv $W/pid.new $W/pid; exec sleep 1000"}
    with site(tmp_path, scripts=scripts) as queue:
        job = queue.put("touch ran")
        wait_until((queue.work / "pid").exists, "its prologue runs")
        queue.ok("kill", str(job))
        queue.until("cancelled", job)
        pid = int((queue.work / "pid").read_text())
        wait_until(lambda: not is_alive(pid), "the prologue was ended")
        assert not (queue.work / "ran").exists()


def test_many_jobs_wait_for_their_turn_at_the_prologue(tmp_path: Path) -> None:
    with site(tmp_path, scripts={"server_prologue": "echo x >> $W/said"}) as queue:
        jobs = queue.add_all("--rerun", "-", input="true\n" * 40)
        queue.until("complete", *jobs)
        assert len(queue.ran("said")) == 40


# ------------------------------------------------------------------ silence


def test_lost_jobs_end_when_a_silent_node_was_fenced(tmp_path: Path) -> None:
    # What it does to the machine is to kill the only runner there.
    scripts = {"fence_cmd": "echo $1 >> $W/fenced; test -e $W/go && kill -9 $(cat $W/runner)"}
    with site(tmp_path, scripts=scripts, touch_s="0.2s", lost_after="1s", heal_every="1s") as queue:
        once = queue.put(queue.waits_for("never"), retries=0)
        again = queue.put(f"echo x >> ran; {queue.waits_for('end')}", retries=1, backoff="0s")
        queue.until("running", once, again)
        (pid,) = queue.runner_pids()
        (queue.work / "runner").write_text(str(pid))
        os.kill(pid, signal.SIGSTOP)
        queue.until("lost", once, again)
        host = node(queue).host
        wait_until(lambda: queue.ran("fenced"), "it was tried")
        assert queue.states_of(once, again) == ["lost", "lost"]
        queue.open("go")
        queue.until("failed", once)
        assert queue.shown(once)["reason"]["code"] == "lost"
        assert "fenced" in queue.shown(once)["reason"]["message"]
        wait_until(lambda: queue.ran() == ["x", "x"], "its retries decided about the other")
        assert set(queue.ran("fenced")) == {host}
        wait_until(lambda: node(queue).state == "alive", "the node is alive since its agent joined")
        queue.open("end")
        queue.until("complete", again)


@pytest.mark.parametrize("name", ["fence_cmd", "heal_cmd"])
def test_a_command_that_cannot_be_read_is_refused_at_the_start(tmp_path: Path, name: str) -> None:
    queue = Queue(tmp_path, **{name: "'unclosed"})
    done = queue.rota("manager", "start")
    assert done.returncode == 2
    assert name in done.stderr
