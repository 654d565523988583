"""The walltime of running jobs changes: as far as no promise is broken, the rest when it can be."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deployment import wait_until
from tests.system.queueing import Queue, queue_of


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    with queue_of(tmp_path, cores="2") as made:
        yield made


def runs(queue: Queue, gate: str, **fields: Any) -> int:
    job = queue.put(queue.waits_for(gate), retries=0, **fields)
    queue.until("running", job)
    return job


def test_a_job_with_more_walltime_is_not_ended_when_the_old_one_is_over(queue: Queue) -> None:
    job = runs(queue, "gate", walltime="6s")
    assert queue.ok("walltime", str(job), "+1h") == f"job {job} has a walltime of 1h6s\n"
    time.sleep(6.0)
    shown = queue.look(job)
    assert (shown.state, shown.given_walltime_s) == ("running", 3606.0)
    assert "walltime" in {line.event for line in shown.story or []}
    assert queue.json("walltime", str(job), "-59m") == {
        "id": job,
        "walltime_s": 66.0,
        "pending_s": 0.0,
        "before_s": 3606.0,
    }
    queue.open("gate")
    queue.until("complete", job)


def test_a_job_with_less_walltime_is_ended_by_it(queue: Queue) -> None:
    job = runs(queue, "never", walltime="1h")
    with queue.client() as client:
        client.walltime(job, "5s")
    queue.until("failed", job)
    shown = queue.look(job)
    assert shown.reason is not None
    assert (shown.reason.code, shown.reason.message) == ("walltime", "over its walltime of 5 s")


def test_a_promise_to_another_is_kept_and_the_rest_granted_when_it_is_gone(queue: Queue) -> None:
    job = runs(queue, "gate", request=["core=2,walltime=10m"])
    other = queue.put("true", request=["core=2,walltime=10m"])
    wait_until(lambda: queue.look(other).expected_start is not None, "it has a planned start")
    done = queue.json("walltime", str(job), "+1h")
    assert done["walltime_s"] < 660
    assert done["pending_s"] > 3500
    assert queue.look(job).pending_walltime_s == done["pending_s"]
    assert "more pending" in queue.ok("show", str(job))
    queue.kill_manager()
    queue.start()
    wait_until(lambda: queue.look(job).state == "running", "it goes on")
    assert queue.look(job).pending_walltime_s == done["pending_s"], "a restart forgets nothing"
    queue.ok("kill", str(other))
    wait_until(lambda: queue.look(job).given_walltime_s == 4200.0, "the rest is granted")
    assert queue.look(job).pending_walltime_s is None


def test_an_administrator_may_force_it(queue: Queue) -> None:
    job = runs(queue, "gate", request=["core=2,walltime=10m"])
    other = queue.put("true", request=["core=2,walltime=10m"])
    wait_until(lambda: queue.look(other).expected_start is not None, "it has a planned start")
    before = queue.look(other).expected_start
    assert queue.json("walltime", "--force", str(job), "+1h")["walltime_s"] == 4200.0
    after = queue.look(other).expected_start
    assert before is not None
    assert after is not None
    assert (after - before).total_seconds() > 3500


def test_what_cannot_be_changed_is_refused_with_the_reason(queue: Queue) -> None:
    job = runs(queue, "gate")
    waiting = queue.put("true", cpus=2)
    for words, expected in (
        ((str(job), "+1h"), "has no walltime"),
        ((str(waiting), "+1h"), "is ready, not running"),
        ((str(job), "5"), "5s"),
        ((str(job), "0s"), "changes nothing"),
        (("999", "+1h"), "no job 999"),
    ):
        done = queue.rota("walltime", *words)
        assert done.returncode in (2, 3), done.stderr
        assert expected in done.stderr
    time.sleep(1.1)
    refused = queue.rota("walltime", str(job), "1s")
    assert refused.returncode == 2
    assert "has run for" in refused.stderr
    assert queue.json("walltime", str(job), "2h")["walltime_s"] == 7200.0


def test_an_inner_job_has_no_more_than_its_container(queue: Queue) -> None:
    runs(queue, "gate", request=["core=2,walltime=10m"], type=["container"], name="box")
    inner = runs(queue, "gate", request=["core=1,walltime=1m"], type=["inner=box"])
    done = queue.json("walltime", "--force", str(inner), "+1h")
    assert 540 <= done["walltime_s"] <= 600
