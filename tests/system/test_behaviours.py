"""What is done after a job: `run`, `cleanup` and `remove`, on success, on failure and at every end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.deployment import wait_until
from tests.system.queueing import Queue, queue_of


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queue]:
    with queue_of(tmp_path_factory.mktemp("behaviours")) as made:
        yield made


@pytest.fixture
def queue(shared: Queue) -> Iterator[Queue]:
    yield shared
    shared.clear()


def gone(queue: Queue, job: int) -> bool:
    return queue.rota("show", str(job)).returncode == 3


def test_success_then_exit_in_the_directory_of_the_job_with_its_variables(queue: Queue) -> None:
    (queue.work / "place").mkdir()
    say = 'run: echo {} "$ROTA_OUTCOME" "$ROTA_JOB_ID" "$PWD" >> said'
    words = [word for name in ("success", "failure", "exit") for word in (f"--on-{name}", say.format(name))]
    job = queue.add("--cwd", "place", *words, "--", "true")
    queue.until("complete", job)
    where = str(queue.work / "place")
    said = (queue.work / "place" / "said").read_text().splitlines()
    assert said == [f"success complete {job} {where}", f"exit complete {job} {where}"]
    seen = queue.shown(job)
    (attempt,) = seen["attempts"]
    assert [each["ok"] for each in attempt["behaviours"]] == [True, True]


def test_every_failed_attempt_does_what_is_to_be_done_on_failure(queue: Queue) -> None:
    job = queue.put(
        "test $ROTA_ATTEMPT = 2",
        retries=1,
        backoff="0s",
        on_success=["run: echo success $ROTA_OUTCOME >> tries"],
        on_failure=["run: echo failure $ROTA_OUTCOME $ROTA_EXIT_CODE >> tries"],
        on_exit=["run: echo exit >> tries"],
    )
    queue.until("complete", job)
    assert queue.ran("tries") == ["failure", "failed", "1", "exit", "success", "complete", "exit"]


def test_a_behaviour_that_fails_is_recorded_and_shown_and_changes_nothing_else(queue: Queue) -> None:
    job = queue.put("true", on_success=["run: echo oops >&2; exit 4", "run: echo next >> next"])
    queue.until("complete", job)
    seen = queue.shown(job)
    assert (seen["state"], seen["exit_code"]) == ("complete", 0)
    first, second = seen["attempts"][0]["behaviours"]
    assert (first["ok"], second["ok"]) == (False, True)
    assert "4" in first["message"]
    assert "oops" in first["message"]
    assert queue.ran("next") == ["next"]
    assert "failed" in queue.ok("show", str(job))


def test_a_killed_job_does_what_is_to_be_done_on_failure_and_exit(queue: Queue) -> None:
    job = queue.put(
        queue.waits_for("never"),
        on_failure=["run: echo failure $ROTA_OUTCOME >> killed"],
        on_exit=["run: echo exit >> killed"],
    )
    queue.until("running", job)
    queue.ok("kill", str(job))
    queue.until("cancelled", job)
    assert queue.ran("killed") == ["failure", "cancelled", "exit"]


def test_remove_on_success_forgets_the_job_and_on_failure_keeps_it(queue: Queue) -> None:
    fine = queue.put("echo x >> removed", on_success=["remove"])
    wait_until(lambda: gone(queue, fine), "it is forgotten")
    assert queue.ran("removed") == ["x"]
    kept = queue.put("false", retries=0, on_success=["remove"])
    queue.until("failed", kept)
    away = queue.put("false", retries=0, on_exit=["remove"])
    wait_until(lambda: gone(queue, away), "it is forgotten")


def test_a_removed_parent_lets_its_dependents_run(queue: Queue) -> None:
    parent = queue.put(queue.waits_for("removes"), on_success=["remove"])
    child = queue.put("true", after=[parent])
    queue.open("removes")
    queue.until("complete", child)
    wait_until(lambda: gone(queue, parent), "it is forgotten")


def test_a_failed_parent_that_others_wait_for_is_not_removed_and_blocks_them(queue: Queue) -> None:
    command = queue.waits_for("fails") + "; false"
    parent = queue.put(command, retries=0, on_exit=["remove"], dep_groups=["fails"])
    children = [queue.put("echo x >> never", after=after) for after in ([parent], ["@fails"])]
    queue.open("fails")
    queue.until("blocked", *children)
    assert queue.state(parent) == "failed"
    assert queue.ran("never") == []


def test_wait_and_run_hear_of_a_job_that_is_removed_when_it_ends(queue: Queue) -> None:
    done = queue.rota("run", "--on-exit", "remove", "--", "echo", "hello", timeout=60)
    assert (done.returncode, done.stdout) == (0, "hello\n")
    done = queue.rota("run", "--on-exit", "remove", "--", "sh", "-c", "exit 6", timeout=60)
    assert done.returncode == 6


def test_cleanup_empties_the_scratch_directory_and_nothing_else(queue: Queue) -> None:
    job = queue.add("--scratch", "--on-exit", "cleanup", "--", f"pwd > {queue.work}/scratch; echo x > file")
    queue.until("complete", job)
    (where,) = queue.ran("scratch")
    assert where != str(queue.work)
    wait_until(lambda: not (queue.work / where).exists(), "it is gone")
    done = queue.rota("add", "--on-exit", "cleanup", "--", "true")
    assert (done.returncode, "--on-exit" in done.stderr, "scratch" in done.stderr) == (2, True, True)


@pytest.mark.parametrize("what", ["", "run:", "delete", "run", "cleanupp"])
def test_what_is_not_a_behaviour_is_refused(queue: Queue, what: str) -> None:
    done = queue.rota("add", "--dry-run", "--on-success", what, "--", "true")
    assert done.returncode == 2
    assert "--on-success" in done.stderr
    assert done.stderr.count("\n") == 1


def test_behaviours_run_when_the_manager_is_away(queue: Queue) -> None:
    job = queue.put(queue.waits_for("away"), on_success=["run: echo x >> away-behaved"])
    queue.until("running", job)
    queue.kill_manager()
    queue.open("away")
    wait_until(lambda: queue.ran("away-behaved"), "the runner does it alone")
    queue.start()
    queue.until("complete", job)
    assert queue.ran("away-behaved") == ["x"]
    assert [each["ok"] for each in queue.shown(job)["attempts"][0]["behaviours"]] == [True]


def test_a_seat_is_taken_until_the_last_behaviour_has_ended(queue: Queue) -> None:
    line = "run: echo + >> seats; sleep 0.1; echo - >> seats"
    jobs = [queue.put("true", cpus=8, on_exit=[line]) for _ in range(3)]
    queue.until("complete", *jobs)
    assert queue.ran("seats") == ["+", "-"] * 3
