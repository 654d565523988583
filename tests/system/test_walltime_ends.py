"""Jobs that reach their walltime, with real processes, scripts of the site and behaviours; and `retry_on` as
people give it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.deployment import wait_until
from tests.system.queueing import Queue
from tests.system.test_hooks import site


@pytest.fixture(scope="module")
def queue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queue]:
    scripts = {
        "epilogue": "echo epilogue $ROTA_OUTCOME >> $W/x$ROTA_JOB_NAME",
        "server_epilogue": "echo server $ROTA_OUTCOME >> $W/x$ROTA_JOB_NAME",
    }
    with site(tmp_path_factory.mktemp("walltimes"), scripts=scripts) as made:
        yield made


def hears(queue: Queue, name: str, wanted: list[str]) -> None:
    """Scripts and behaviours say this of a job, in lines, and no more; the manager's script runs after its end."""
    path = queue.work / f"x{name}"
    wait_until(lambda: path.exists() and len(path.read_text().splitlines()) >= len(wanted), "all is said")
    assert sorted(path.read_text().splitlines()) == wanted


def test_the_normal_end_is_one_for_scripts_and_behaviours_too(queue: Queue) -> None:
    says = {
        "on_success": ["run: echo success >> x$ROTA_JOB_NAME"],
        "on_failure": ["run: echo failure >> x$ROTA_JOB_NAME"],
    }
    short = {"request": ["core=1,walltime=0:0:1"], "retries": 3, "backoff": "0s", **says}
    kinds = ("container", "deploy", "cosystem")
    jobs = {kind: queue.put("sleep 1000", name=kind, type=[kind], **short) for kind in kinds}
    plain = queue.put("sleep 1000", name="plain", **short)
    twice = queue.put("sleep 1000", name="twice", **{**short, "retries": 1}, retry_on=["walltime"])
    child = queue.put("true", name="child", after=[jobs["container"]])
    queue.until("complete", *jobs.values(), child)
    queue.until("failed", plain, twice)
    for kind, job in jobs.items():
        shown = queue.look(job)
        assert (shown.attempt, shown.reason, shown.exit_code, shown.signal) == (1, None, None, None)
        hears(queue, kind, ["epilogue complete", "server complete", "success"])
    hears(queue, "plain", ["epilogue failed", "failure", "server failed"])
    hears(queue, "twice", 2 * ["epilogue failed"] + 2 * ["failure"] + 2 * ["server failed"])


def test_run_exits_with_0_when_what_only_holds_resources_is_over(queue: Queue) -> None:
    done = queue.rota("run", "-t", "container", "-l", "core=1,walltime=0:0:1", "--", "sleep", "1000", timeout=60)
    assert done.returncode == 0, done.stderr


def test_retry_on_is_given_shown_changed_and_checked(queue: Queue) -> None:
    assert "retried on exit, lost" in queue.ok("add", "--dry-run", "--retry-on", "lost,exit", "--", "true")
    job = queue.add(
        "--retry-on", "walltime", "--retry-on", "exit", "--after", "@never", "--allow-empty-group", "--", "true"
    )
    assert queue.look(job).retry_on == ["exit", "walltime"]
    assert "on exit, walltime" in queue.ok("show", str(job))
    queue.ok("modify", str(job), "--retry-on", "default")
    assert queue.look(job).retry_on is None
    with queue.client() as client:
        client.modify(job, retry_on=["memory"])
    assert queue.look(job).retry_on == ["memory"]
    for words in (("add", "--dry-run"), ("modify", str(job))):
        done = queue.rota(*words, "--retry-on", "wall", *(("--", "true") if words[0] == "add" else ()))
        assert done.returncode == 2
        assert "'wall'" in done.stderr
        assert "exit, signal, memory, time, walltime, disk, lost" in done.stderr
    (other,) = queue.add_lines({"cmd": "false", "retry_on": [], "retries": 3})
    queue.until("failed", other)
    assert queue.look(other).attempt == 1
