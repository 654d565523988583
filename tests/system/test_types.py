"""Types of jobs at work, with real processes on four cores: what runs elsewhere or nowhere, what is ended for
others, what lies in a container, what shares its cores, and reservations that begin with fewer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rota.wire.views import PromisedView
from tests.deployment import is_alive, wait_until
from tests.system.queueing import Queue, queue_of


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queue]:
    with queue_of(tmp_path_factory.mktemp("types"), cores="4", reservation_patience="1s", grace="8s") as made:
        yield made


@pytest.fixture
def queue(shared: Queue) -> Iterator[Queue]:
    yield shared
    shared.clear()
    shared.ok("resource", "set", "--hosts", host(shared), "--state", "alive")
    for path in shared.work.iterdir():
        path.unlink()


def host(queue: Queue) -> str:
    (runner,) = queue.json("manager", "status")["runners"]
    return str(runner["host"])


def holds(queue: Queue, gate: str, **fields: Any) -> int:
    """A job that runs until `queue.open(gate)`."""
    return queue.put(queue.waits_for(gate), **fields)


def resources(queue: Queue, job: int) -> str:
    return str(queue.look(job).resources)


def pid_of(queue: Queue, name: str) -> int:
    path = queue.work / name
    return int(wait_until(lambda: path.exists() and path.read_text().strip(), f"{name} says its number"))


# ------------------------------------------------------------------ nowhere


def test_a_noop_has_no_process_and_holds_its_cores_to_the_end_of_its_time(queue: Queue) -> None:
    job = queue.put("touch never", type=["noop"], request=["core=4,walltime=0:0:3"], retries=0)
    queue.until("running", job)
    (runner,) = queue.json("manager", "status")["runners"]
    assert (runner["seats"], runner["running"]) == (0, 0)
    waiting = queue.put("true", request=["core=1"])
    assert queue.state(waiting) == "ready"
    queue.until("complete", job, waiting)
    shown = queue.look(job)
    assert shown.started_at is not None
    assert shown.ended_at is not None
    assert (shown.ended_at - shown.started_at).total_seconds() >= 3
    assert not (queue.work / "never").exists()


def test_a_noop_is_killed_at_once(queue: Queue) -> None:
    job = queue.put("true", type=["noop"], request=["core=4"])
    queue.until("running", job)
    waiting = queue.put("true", request=["core=4"])
    queue.ok("kill", str(job))
    queue.until("cancelled", job)
    queue.until("complete", waiting)


def test_a_noop_needs_no_runner_and_survives_a_crash_of_the_manager(queue: Queue) -> None:
    job = queue.put("true", type=["noop"], request=["core=3,walltime=1h"])
    queue.until("running", job)
    held = resources(queue, job)
    queue.kill_manager()
    queue.kill_runners()
    queue.start()
    assert queue.state(job) == "running"
    assert resources(queue, job) == held
    other = holds(queue, "other", request=["core=1"])
    queue.until("running", other)
    assert queue.state(queue.put("true", request=["core=1"])) == "ready"
    assert queue.look(job).attempt == 1
    queue.open("other")
    queue.ok("kill", str(job))
    queue.until("cancelled", job)


def test_who_says_that_a_host_is_gone_ends_its_jobs_but_not_what_only_holds_it(queue: Queue) -> None:
    noop = queue.put("true", type=["noop"], request=["core=1"])
    cosystem = holds(queue, "co", type=["cosystem"], request=["core=1"])
    deploy = holds(queue, "de", type=["deploy"], request=["core=1"])
    plain = holds(queue, "plain", request=["core=1"])
    queue.until("running", noop, cosystem, deploy, plain)
    queue.ok("resource", "set", "--hosts", host(queue), "--state", "absent")
    queue.until("cancelled", deploy, plain)
    assert queue.states_of(noop, cosystem) == ["running", "running"]


# ------------------------------------------------------------------ elsewhere


@pytest.mark.parametrize("kind", ["deploy", "cosystem"])
def test_its_command_runs_on_its_host_without_taking_a_core_there(queue: Queue, kind: str) -> None:
    word = "nproc; echo $ROTA_CPUS; wc -l < $ROTA_NODEFILE; sort -u $ROTA_NODEFILE"
    job = queue.put(f"{word}; {queue.waits_for('go')}", type=[kind], request=["core=3"])
    queue.until("running", job)
    assert resources(queue, job).count(",") or "-" in resources(queue, job)
    waiting = queue.put("true", request=["core=2"])
    beside = queue.put("true", request=["core=1"])
    queue.until("complete", beside)
    assert queue.state(waiting) == "ready"
    queue.open("go")
    queue.until("complete", job, waiting)
    _count, cpus, lines, node = queue.ok("logs", str(job)).split()
    assert (cpus, lines, node) == ("0", "3", host(queue))


@pytest.mark.parametrize("kind", ["deploy", "cosystem"])
def test_it_ends_by_its_walltime_or_a_kill(queue: Queue, kind: str) -> None:
    short = queue.put("sleep 1000", type=[kind], request=["core=1,walltime=0:0:1"], retries=3)
    long = queue.put("sleep 1000", type=[kind], request=["core=1"], retries=0)
    queue.until("complete", short)
    assert queue.look(short).attempt == 1
    queue.until("running", long)
    queue.ok("kill", str(long))
    queue.until("cancelled", long)


def test_jobs_wait_for_a_deploy_host_that_is_not_there_and_say_so(tmp_path: Path) -> None:
    with queue_of(tmp_path, cores="2", deploy_host="frontend") as queue:
        job = queue.put("true", type=["deploy"], request=["core=1"])
        plain = queue.put("true", request=["core=1"])
        queue.until("complete", plain)
        assert queue.state(job) == "ready"
        (reason,) = queue.why(job)["reasons"]
        assert reason["code"] == "no_resources"
        assert "frontend" in reason["message"]
        queue.ok("kill", str(job))
        queue.until("cancelled", job)
        later = queue.put("true", request=["core=2"])
        queue.until("complete", later)


def test_hooks_of_a_deploy_job_run_once_on_its_host(tmp_path: Path) -> None:
    script = tmp_path / "hook"
    script.write_text(f"#!/bin/sh\necho $ROTA_HOOK $(wc -l < $ROTA_NODEFILE) >> {tmp_path}/work/said\n")
    script.chmod(0o755)
    with queue_of(tmp_path, cores="2", prologue=str(script), epilogue=str(script)) as queue:
        job = queue.put("echo job >> said", type=["deploy"], request=["core=2"])
        queue.until("complete", job)
        assert queue.ran("said") == ["prologue", "2", "job", "epilogue", "2"]


# ------------------------------------------------------------------ besteffort, idempotent


def test_only_as_many_besteffort_jobs_end_as_must(queue: Queue) -> None:
    low = [queue.put("sleep 1000", type=["besteffort"], request=["core=1"], retries=0) for _ in range(4)]
    queue.until("running", *low)
    job = holds(queue, "high", request=["core=2"])
    queue.until("running", job)
    wait_until(lambda: queue.count("failed", *low) == 2, "two were ended")
    assert queue.count("running", *low) == 2
    for each in low:
        if queue.state(each) == "failed":
            assert queue.shown(each)["reason"]["code"] == "preempted"
    queue.open("high")
    queue.until("complete", job)


def test_besteffort_is_really_gone_before_the_other_begins(queue: Queue) -> None:
    # It ends only when it is told to, and not at once.
    stubborn = "echo $$ > low.pid; trap 'sleep 1; echo low ended >> order; exit' TERM; while :; do sleep 0.1; done"
    low = queue.put(stubborn, type=["besteffort"], request=["core=4"], retries=0)
    pid = pid_of(queue, "low.pid")
    job = queue.put("echo high began >> order", request=["core=4"])
    queue.until("complete", job)
    assert queue.ran("order") == ["low", "ended", "high", "began"]
    assert not is_alive(pid)
    queue.until("failed", low)


def test_others_begin_while_besteffort_is_being_ended_for_somebody(queue: Queue) -> None:
    low = queue.put("trap '' TERM; sleep 1000", type=["besteffort"], request=["core=3"], retries=0)
    queue.until("running", low)
    job = queue.put("true", request=["core=3"])
    queue.until("finishing", low)
    beside = queue.put("true", request=["core=1,walltime=0:0:1"])
    queue.until("complete", beside)
    assert queue.state(low) == "finishing"
    queue.until("complete", job)


def test_an_idempotent_besteffort_job_goes_on_after_the_one_it_was_ended_for(queue: Queue) -> None:
    low = queue.put(
        "echo x >> ran; until test -e stop; do sleep 0.1; done", type=["besteffort", "idempotent"],
        request=["core=4"], retries=0,
    )  # fmt: skip
    queue.until("running", low)
    for _ in range(2):
        job = queue.put("true", request=["core=4"])
        queue.until("complete", job)
        queue.until("running", low)
    queue.open("stop")
    queue.until("complete", low)
    assert len(queue.ran()) == queue.look(low).attempt == 3


# ------------------------------------------------------------------ containers


def test_inner_jobs_run_on_the_cores_of_their_container_and_end_with_it(queue: Queue) -> None:
    box = holds(queue, "box", type=["container"], request=["core=2,walltime=1h"])
    queue.until("running", box)
    inner = queue.put(
        "echo $$ > inner.pid; nproc; sleep 1000", type=[f"inner={box}"], request=["core=1,walltime=10m"], retries=0
    )
    pid = pid_of(queue, "inner.pid")
    nested = queue.put("true", type=[f"inner={box}"], request=["core=1,walltime=10m"])
    queue.until("complete", nested)
    outside = holds(queue, "outside", request=["core=2"])
    queue.until("running", outside)
    assert set(resources(queue, inner)) & set(resources(queue, box))
    queue.open("box")
    queue.until("complete", box)
    queue.until("failed", inner)
    assert queue.shown(inner)["reason"]["code"] == "container"
    assert not is_alive(pid)
    late = queue.put("true", type=[f"inner={box}"], request=["core=1,walltime=1m"])
    assert [each["code"] for each in queue.why(late)["reasons"]] == ["container"]


def test_jobs_that_name_a_container_run_in_any_of_that_name(queue: Queue) -> None:
    boxes = [
        holds(queue, f"box{n}", name="box", type=["container"], request=["core=2,walltime=1h"]) for n in (1, 2)
    ]
    queue.until("running", *boxes)
    inner = [holds(queue, "in", type=["inner=box"], request=["core=2,walltime=10m"]) for _ in range(2)]
    queue.until("running", *inner)
    of = {resources(queue, box): box for box in boxes}
    other = next(job for job in inner if of[resources(queue, job)] == boxes[1])
    queue.open("box1")
    queue.until("complete", boxes[0])
    queue.until("failed", next(job for job in inner if job != other))
    assert queue.state(other) == "running", "it runs in the other one"
    queue.open("in")
    queue.until("complete", other)
    queue.open("box2")


def test_a_noop_container_keeps_room_for_others(queue: Queue) -> None:
    box = queue.put("true", type=["container", "noop"], request=["core=4,walltime=1h"])
    queue.until("running", box)
    plain = queue.put("true", request=["core=1"])
    inner = queue.put("true", type=[f"inner={box}"], request=["core=4,walltime=1m"])
    queue.until("complete", inner)
    assert queue.state(plain) == "ready"
    queue.ok("kill", str(box))
    queue.until("complete", plain)


def test_an_inner_job_that_is_longer_than_its_container_says_why_it_waits(queue: Queue) -> None:
    box = holds(queue, "box", type=["container"], request=["core=2,walltime=10m"])
    queue.until("running", box)
    long = queue.put("true", type=[f"inner={box}"], request=["core=1,walltime=1h"])
    assert [each["code"] for each in queue.why(long)["reasons"]] == ["container"]


# ------------------------------------------------------------------ timesharing


def test_timesharing_jobs_really_run_on_the_same_cores(queue: Queue) -> None:
    word = "echo $ROTA_CPU_LIST >> cpus; nproc >> counts"
    jobs = [
        queue.put(f"{word}; {queue.waits_for('share')}", type=["timesharing=*,*"], request=["core=2"])
        for _ in range(3)
    ]
    queue.until("running", *jobs)
    wait_until(lambda: len(queue.ran("counts")) == 3, "all have said where they are")
    assert len(set(queue.ran("cpus"))) == len(set(queue.ran("counts"))) == 1
    alone = queue.put("true", request=["core=3"])
    assert queue.state(alone) == "ready"
    queue.open("share")
    queue.until("complete", *jobs, alone)


def test_timesharing_by_name_is_for_jobs_of_that_name(queue: Queue) -> None:
    fields: dict[str, Any] = {"type": ["timesharing=*,name"], "request": ["core=4"]}
    first = holds(queue, "named", name="a", **fields)
    queue.until("running", first)
    same = queue.put("true", name="a", **fields)
    other = queue.put("true", name="b", **fields)
    queue.until("complete", same)
    assert queue.state(other) == "ready"
    queue.open("named")
    queue.until("complete", first, other)


# ------------------------------------------------------------------ reservations


def test_a_reservation_begins_on_fewer_when_some_do_not_come_and_still_ends_on_time(queue: Queue) -> None:
    at = int(time.time()) + 8
    word = "echo $(wc -l < $ROTA_NODEFILE) >> cores; sleep 1000"
    job = queue.put(word, request=["core=4,walltime=0:0:6"], at=f"@{at}", retries=0)
    # This one holds one of the cores for its whole grace, far beyond its walltime.
    stubborn = queue.put("trap '' TERM; sleep 1000", request=["core=1,walltime=0:0:4"], retries=0)
    queue.until("running", stubborn)
    queue.until("running", job)
    wait_until(lambda: queue.ran("cores"), "it has begun")
    shown = queue.look(job)
    said = f"began with 3 of 4 cores: job {stubborn} still has 1 core of {host(queue)}"
    assert shown.promised == PromisedView(4, [host(queue)], 3, said)
    assert [reason["message"] for reason in queue.why(job)["reasons"]] == [said]
    assert f"  promised     {said}\n" in queue.ok("show", str(job))
    assert ("fewer", said) in [(line["event"], line["text"]) for line in queue.shown(job)["story"]]
    assert shown.started_at is not None
    assert shown.started_at.timestamp() >= at + 1  # it was patient
    queue.until("failed", job)
    assert queue.ran("cores") == ["3"]
    ended = queue.look(job)
    assert ended.reason is not None
    assert ended.reason.code == "walltime"
    assert ended.started_at is not None
    assert ended.ended_at is not None
    # With what was left of its time, not with all of it.
    assert (ended.ended_at - ended.started_at).total_seconds() < 6


def test_a_reservation_whose_resources_never_come_fails_at_its_end(queue: Queue) -> None:
    name = host(queue)
    job = queue.add("-r", f"@{int(time.time()) + 8}", "-l", "core=2,walltime=0:0:2", "--", "true")
    queue.ok("resource", "set", "--hosts", name, "--drain")
    try:
        assert queue.state(job) == "ready"
        queue.until("failed", job)
        assert queue.shown(job)["reason"]["code"] == "reservation"
        assert queue.look(job).attempt == 0
    finally:
        queue.ok("resource", "set", "--hosts", name, "--no-drain")


def test_a_besteffort_job_writes_its_checkpoint_before_a_reservation_begins(queue: Queue) -> None:
    saves = "trap 'echo saved >> checkpoint; exit 1' USR2; touch up; while :; do sleep 0.1; done"
    low = queue.put(
        ["bash", "-c", saves], type=["besteffort"], request=["core=4,walltime=1:0:0"], checkpoint="30s", retries=0
    )
    queue.until("running", low)
    wait_until((queue.work / "up").exists, "it knows the signal")
    at = int(time.time()) + 5
    job = queue.put("cat checkpoint", request=["core=4,walltime=0:1:0"], at=f"@{at}", retries=0)
    queue.until("failed", low)
    shown = queue.look(low)
    assert shown.reason is not None
    assert shown.reason.message == f"ended to make room for job {job}"
    assert shown.ended_at is not None
    assert shown.ended_at.timestamp() < at, "it was told in time, and not only when the reservation begins"
    queue.until("complete", job)
    assert queue.ok("logs", str(job)) == "saved\n"
