"""`rota why`: every reason that this version can give, with the jobs behind it and what would change it."""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.deployment import wait_until
from tests.system.queueing import Queue, queue_of


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queue]:
    with queue_of(tmp_path_factory.mktemp("why"), touch_s="0.2s", lost_after="5s") as made:
        yield made


@pytest.fixture
def queue(shared: Queue) -> Iterator[Queue]:
    yield shared
    shared.clear()


def test_a_job_that_runs_or_is_complete_has_no_reason(queue: Queue) -> None:
    job = queue.put(queue.waits_for("plain"))
    queue.until("running", job)
    found = queue.why(job)
    assert (found["id"], found["state"], found["reasons"], found["expected_start"]) == (job, "running", [], None)
    queue.open("plain")
    queue.until("complete", job)
    assert queue.why(job)["reasons"] == []


def test_a_job_that_is_not_there(queue: Queue) -> None:
    done = queue.rota("why", "999999")
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    two = [queue.put("true"), queue.put("true")]
    done = queue.rota("why", f"{two[0]}-{two[1]}")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_dependency(queue: Queue) -> None:
    parent = queue.put(queue.waits_for("parent"))
    done = queue.put("true")
    queue.until("complete", done)
    child = queue.put("true", after=[done, parent])
    (reason,) = queue.why(child)["reasons"]
    assert (reason["code"], reason["blockers"]) == ("dependency", [parent])
    assert str(parent) in reason["message"]
    said = queue.ok("why", str(child))
    assert f"job {child} is dependent" in said
    assert f"rota why {parent}" in said


def test_dependency_never(queue: Queue) -> None:
    parent = queue.put("exit 3", retries=0)
    child = queue.put("true", after=[parent])
    queue.until("blocked", child)
    found = queue.why(child)
    assert found["state"] == "blocked"
    (reason,) = found["reasons"]
    assert (reason["code"], reason["blockers"]) == ("dependency_never", [parent])
    assert "failed" in reason["message"]
    assert f"rota retry {parent}" in queue.ok("why", str(child))


def test_held_says_also_what_it_would_wait_for_then(queue: Queue) -> None:
    parent = queue.put(queue.waits_for("never"))
    plain, child = queue.put("true", after=[parent]), queue.put("true", after=[parent])
    queue.ok("hold", str(plain), str(child))
    found = queue.why(child)
    assert found["state"] == "held"
    assert [each["code"] for each in found["reasons"]] == ["held", "dependency"]
    assert found["reasons"][0]["blockers"] == []
    assert f"rota release {child}" in queue.ok("why", str(child))


def test_delayed_says_when_it_starts(queue: Queue) -> None:
    job = queue.put("exit 5", retries=1, backoff="10m")
    queue.until("delayed", job)
    found = queue.why(job)
    (reason,) = found["reasons"]
    assert reason["code"] == "delayed"
    assert "exit 5" in reason["message"]
    due = datetime.fromisoformat(found["expected_start"])
    assert due > datetime.now(UTC)
    stored = queue.shown(job)["reason"]["message"]
    assert f"exit 5; tried again at {due.astimezone():%H:%M:%S}" in stored or "tried again at 20" in stored
    assert "exit 5; tried again in 1" in reason["message"]  # minutes: it is told anew each time
    assert " s " not in reason["message"]


def test_people_read_sentences_and_programs_codes(queue: Queue) -> None:
    parent = queue.put("exit 3", retries=0)
    child = queue.put("true", after=[parent])
    queue.until("blocked", child)
    assert queue.why(child)["reasons"][0]["code"] == "dependency_never"
    for said in (queue.ok("why", str(child)), queue.ok("show", str(child)), queue.ok("jobs", str(child))):
        assert "dependency_never" not in said


def test_a_group_that_can_never_fail_names_who_completed(queue: Queue) -> None:
    member = queue.put("true", dep_groups=["good"])
    queue.until("complete", member)
    child = queue.put("true", after=["afternotok:@good"])
    queue.until("blocked", child)
    (reason,) = queue.why(child)["reasons"]
    assert (reason["blockers"], f"(job {member})" in reason["message"]) == ([member], True)
    assert f"has job {member}, which completed" in queue.ok("show", str(child))


def test_resources_name_who_has_them(queue: Queue) -> None:
    big = queue.put(queue.waits_for("never"), cpus=7)
    small = queue.put(queue.waits_for("never"), cpus=1)
    queue.until("running", big, small)
    waits = queue.put("true", cpus=4)
    (reason,) = queue.why(waits)["reasons"]
    assert (reason["code"], reason["blockers"]) == ("resources", [big, small])
    assert queue.shown(waits)["reason"]["code"] == "resources"


def test_limit_names_its_holders_only(queue: Queue) -> None:
    queue.set_limits("held:1")
    other = queue.put(queue.waits_for("never"))
    holder = queue.put(queue.waits_for("never"), limits=["held"])
    queue.until("running", holder, other)
    waits = queue.put("true", limits=["held"])
    (reason,) = queue.why(waits)["reasons"]
    assert (reason["code"], reason["blockers"]) == ("limit", [holder])
    assert "'held'" in reason["message"]


def test_no_resources_while_no_runner_is_connected(queue: Queue) -> None:
    lock = queue.home / "runners" / "other" / "lock"
    lock.parent.mkdir()
    # Whoever holds such a lock is taken for a runner, so that no other is started.
    handle = os.open(lock, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        queue.kill_runners()
        wait_until(
            lambda: not any(each["connected"] for each in queue.json("manager", "status")["runners"]), "gone"
        )
        job = queue.put("true")
        (reason,) = queue.why(job)["reasons"]
        assert (reason["code"], reason["blockers"]) == ("no_resources", [])
    finally:
        os.close(handle)
        lock.unlink()
        lock.parent.rmdir()
    queue.until("complete", job)


def test_unsatisfiable(queue: Queue) -> None:
    done = queue.rota("add", "--cpus", "64", "--", "true")
    assert done.returncode == 2
    assert "never fits: asked 64 cpus, largest host has 8" in done.stderr
    job = queue.add("--cpus", "64", "--allow-unsatisfiable", "--", "true")
    (reason,) = queue.why(job)["reasons"]
    assert (reason["code"], reason["blockers"]) == ("unsatisfiable", [])
    assert "64 cpus" in reason["message"]
    queue.ok("modify", str(job), "--cpus", "1")
    queue.until("complete", job)


def test_paused(queue: Queue) -> None:
    queue.ok("manager", "pause")
    job = queue.put("true")
    (reason,) = queue.why(job)["reasons"]
    assert (reason["code"], reason["blockers"]) == ("paused", [])
    assert "rota manager resume" in queue.ok("why", str(job))
    queue.ok("manager", "resume")
    queue.until("complete", job)


def test_draining(queue: Queue) -> None:
    runs = queue.put(queue.waits_for("never"))
    queue.until("running", runs)
    queue.ok("manager", "drain", "--no-wait")
    job = queue.put("true")
    assert queue.why(job)["reasons"][0]["code"] == "draining"
    queue.ok("manager", "resume")
    queue.until("complete", job)


def test_kill_requested_while_it_ends_and_when_it_has(queue: Queue) -> None:
    job = queue.put(["sh", "-c", "trap 'echo TERM >> trapped' TERM; echo x >> traps; while :; do sleep 0.1; done"])
    wait_until(lambda: queue.ran("traps"), "it has its trap")
    queue.ok("kill", str(job))
    found = queue.why(job)
    assert [each["code"] for each in found["reasons"]] == ["kill_requested"]
    queue.until("cancelled", job)
    assert queue.why(job)["reasons"][0]["code"] == "kill_requested"
    assert queue.ran("trapped")[:1] == ["TERM"]


def test_lost_until_its_runner_is_heard_again(queue: Queue) -> None:
    job = queue.put(queue.waits_for("lost"))
    queue.until("running", job)
    (runner,) = queue.runner_pids()
    os.kill(runner, signal.SIGSTOP)
    try:
        queue.until("lost", job)
        (reason,) = queue.why(job)["reasons"]
        assert (reason["code"], reason["blockers"]) == ("lost", [])
        assert f"rota confirm-dead {job}" in queue.ok("why", str(job))
    finally:
        os.kill(runner, signal.SIGCONT)
    queue.until("running", job)
    queue.open("lost")
    queue.until("complete", job)
    assert len(queue.shown(job)["attempts"]) == 1


@pytest.mark.parametrize(
    ("command", "fields", "code", "message"),
    [
        ("exit 3", {}, "exit", "exit 3"),
        ("kill -KILL $$", {}, "signal", "signal KILL"),
        ("kill -SEGV $$", {}, "signal", "signal SEGV"),
        ("sleep 100", {"walltime": "0.3s"}, "walltime", "walltime"),
        ("nosuchcommand-at-all", {}, "not_found", "not found"),
        (["nosuchcommand-at-all"], {}, "not_found", "not"),
        ("true", {"cwd": "/nonexistent"}, "not_found", "/nonexistent"),
        (["/etc/passwd"], {}, "not_found", "/etc/passwd"),
    ],
)
def test_a_failed_job_says_why_it_failed(
    queue: Queue, command: str | list[str], fields: dict[str, str], code: str, message: str
) -> None:
    job = queue.put(command, **{"retries": 0, **fields})
    queue.until("failed", job)
    found = queue.why(job)
    assert found["state"] == "failed"
    (reason,) = found["reasons"]
    assert (reason["code"], reason["blockers"]) == (code, [])
    assert message in reason["message"]
    shown = queue.shown(job)
    assert shown["reason"] == {"code": code, "message": reason["message"]}
    assert f"rota retry {job}" in queue.ok("why", str(job))


def test_the_python_client_says_the_same(queue: Queue) -> None:
    parent = queue.put(queue.waits_for("never"))
    child = queue.put("true", after=[parent])
    with queue.client() as client:
        found = client.why(child)
    assert (found.id, found.state) == (child, "dependent")
    assert [(each.code, each.blockers) for each in found.reasons] == [("dependency", [parent])]


def test_memory_when_the_kernel_keeps_a_job_to_its_request(tmp_path: Path) -> None:
    from tests.runner.end.test_enforcement import limits_possible

    if not limits_possible():
        pytest.skip("memory control groups cannot be made here")
    with queue_of(tmp_path, enforce_memory="cgroup") as queue:
        eats = "x = bytearray(600 << 20); x[::4096] = b'x' * len(x[::4096])"
        job = queue.put(["python3", "-c", eats], mem="50M", retries=1, backoff="0s", learn="eater")
        wait_until(lambda: len(queue.shown(job)["attempts"]) > 1, "it is tried again")
        queue.until("complete", job)
        first, second = queue.shown(job)["attempts"]
        assert first["reason"]["code"] == "memory"
        assert second["size"]["mem_bytes"] > first["size"]["mem_bytes"] + (1 << 30) - 1
        once = queue.put(["python3", "-c", eats], mem="50M", retries=0, learn="eater2")
        queue.until("failed", once)
        assert queue.why(once)["reasons"][0]["code"] == "memory"
