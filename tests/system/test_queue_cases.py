"""The cases that say what the queue means, one test each, with real processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.deployment import LEFT_ALONE, is_alive, wait_until
from tests.system.queueing import LEASED, Queue, queue_of


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queue]:
    with queue_of(tmp_path_factory.mktemp("cases")) as made:
        yield made


@pytest.fixture
def queue(shared: Queue) -> Iterator[Queue]:
    """The deployment of this module, idle."""
    yield shared
    shared.clear()


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Queue]:
    """A deployment for a test that kills its processes."""
    with queue_of(tmp_path) as made:
        yield made


def test_the_same_command_in_two_adds_is_one_job_until_it_is_to_run_again(queue: Queue) -> None:
    first = queue.json("add", "-", input="echo x >> once\n")
    assert (len(first["added"]), first["existing"], first["retried"]) == (1, [], [])
    existing = {"added": [], "existing": first["added"], "retried": [], **LEFT_ALONE}
    assert queue.json("add", "-", input="echo x >> once\n") == existing
    assert queue.rota("wait", str(first["added"][0])).returncode == 0
    assert queue.json("add", "-", input="echo x >> once\n") == existing
    assert queue.ran("once") == ["x"]
    again = queue.json("add", "--rerun", "-", input="echo x >> once\n")
    assert (len(again["added"]), again["existing"]) == (1, [])
    assert queue.rota("wait", str(again["added"][0])).returncode == 0
    assert queue.ran("once") == ["x", "x"]
    # The command names the newest job now.
    assert queue.json("add", "-", input="echo x >> once\n")["existing"] == again["added"]


def test_equal_priorities_run_in_order_of_submission_and_priority_255_first(queue: Queue) -> None:
    queue.ok("manager", "pause")
    jobs = queue.add_lines(*({"cmd": f"echo {n} >> order", "cpus": 8} for n in (1, 2, 3)))
    jobs += queue.add_lines({"cmd": "echo first >> order", "cpus": 8, "priority": 255})
    jobs += queue.add_lines({"cmd": "echo 4 >> order", "cpus": 8})
    jobs += queue.add_lines({"cmd": "echo second >> order", "cpus": 8, "priority": 1})
    queue.ok("manager", "resume")
    queue.until("complete", *jobs)
    assert queue.ran("order") == ["first", "second", "1", "2", "3", "4"]


def test_a_job_that_fails_is_delayed_longer_each_time_and_fails_for_good_after_its_retries(queue: Queue) -> None:
    job = queue.add("--retries", "2", "--", "false")
    queue.until("delayed", job)
    seen = queue.shown(job)
    due = datetime.fromisoformat(seen["expected_start"])
    ended = datetime.fromisoformat(seen["attempts"][0]["ended_at"])
    assert due >= ended + timedelta(seconds=30)
    assert due <= datetime.now(UTC) + timedelta(seconds=60)
    assert seen["retries_left"] == 1  # besides the one that it waits for

    quick = queue.add("--retries", "2", "--backoff", "0.2s", "--", "false")
    queue.until("failed", quick)
    seen = queue.shown(quick)
    first, second, third = seen["attempts"]
    assert [each["state"] for each in (first, second, third)] == ["failed"] * 3
    waits = [
        datetime.fromisoformat(later["started_at"]) - datetime.fromisoformat(sooner["ended_at"])
        for sooner, later in ((first, second), (second, third))
    ]
    assert waits[0] >= timedelta(seconds=0.2)
    assert waits[1] >= timedelta(seconds=0.4)
    assert seen["reason"] == {"code": "exit", "message": "exit 1"}
    assert seen["retries_left"] == 0

    queue.ok("manager", "pause")
    queue.ok("retry", str(quick))
    seen = queue.shown(quick)
    assert (seen["state"], seen["retries_left"], len(seen["attempts"])) == ("ready", 2, 3)


def test_a_lease_that_was_never_executed_goes_back_and_one_that_was_is_never_run_again(alone: Queue) -> None:
    alone.set_limits("unit:2")
    runs = alone.add("--limit", "unit", "--retries", "0", "--", "sh", "-c", "echo $$ >> ran; exec sleep 600")
    pid = int(wait_until(alone.ran, "it runs")[0])
    (runner,) = alone.runner_pids()
    os.kill(runner, signal.SIGSTOP)
    sent = alone.add("--limit", "unit", "--retries", "0", "--", "sh", "-c", "echo x >> later")
    alone.until("scheduled", sent)
    assert alone.limit("unit")["used"] == 2
    os.kill(runner, signal.SIGKILL)
    alone.until("complete", sent)
    alone.until("failed", runs)
    seen = alone.shown(sent)
    assert seen["retries_left"] == 0
    assert seen["attempts"][-1]["state"] == "complete"
    assert {each["state"] for each in seen["attempts"][:-1]} <= {"void"}
    assert alone.ran("later") == ["x"]
    assert alone.shown(runs)["reason"]["code"] == "lost"
    assert alone.ran() == [str(pid)]
    assert not is_alive(pid)
    assert alone.limit("unit")["used"] == 0


def test_a_job_that_kills_its_runner_as_it_begins_is_lost_and_never_run_again(alone: Queue) -> None:
    job = alone.add("--retries", "0", "--", "sh", "-c", "echo x >> ran; kill -9 $PPID; exec sleep 600")
    alone.until("failed", job)
    seen = alone.shown(job)
    assert (seen["reason"]["code"], len(seen["attempts"])) == ("lost", 1)
    assert alone.ok("run", "--", "echo", "well") == "well\n"
    assert alone.ran() == ["x"]


def test_an_attempt_that_ran_for_longer_than_is_worth_repeating_is_not_retried(queue: Queue) -> None:
    words = ["--retries", "3", "--backoff", "0s", "--no-retry-over", "0.2s"]
    long = queue.add(*words, "--", "sleep 0.4; exit 4")
    queue.until("failed", long)
    assert len(queue.shown(long)["attempts"]) == 1
    short = queue.add(*words[:4], "--no-retry-over", "1h", "--", "exit 4")
    queue.until("failed", short)
    assert len(queue.shown(short)["attempts"]) == 4


def test_a_command_that_is_not_there_fails_on_its_first_attempt(queue: Queue) -> None:
    done = queue.rota("add", "--sync", "--retries", "3", "-", input="nosuchcmd\n")
    assert done.returncode == 127
    seen = queue.json("show", "last")
    assert (seen["state"], seen["exit_code"], len(seen["attempts"])) == ("failed", 127, 1)
    assert seen["reason"]["code"] == "not_found"
    direct = queue.rota("add", "--sync", "--retries", "3", "--", "nosuchcmd", "with words")
    assert direct.returncode == 127
    assert len(queue.json("show", "last")["attempts"]) == 1


def test_a_pipeline_succeeds_as_a_shell_says_and_fails_with_pipefail(queue: Queue) -> None:
    assert queue.rota("run", "--", "false | true").returncode == 0
    assert queue.rota("run", "--pipefail", "--", "false | true").returncode == 1
    assert queue.rota("run", "--pipefail", "--", "true | true").returncode == 0


def test_five_jobs_in_two_limits_run_as_the_smaller_allows_until_it_is_raised(queue: Queue) -> None:
    queue.set_limits("a:3", "b:2")
    words = ("--limit", "a", "--limit", "b")
    jobs = queue.add_lines(*(queue.waits_for("five") + f"; : {n}" for n in range(5)), words=words)
    wait_until(lambda: queue.count("running", *jobs) == 2, "two run")
    assert queue.states_of(*jobs) == ["running"] * 2 + ["ready"] * 3
    queue.set_limits("b:4")
    wait_until(lambda: queue.count("running", *jobs) == 3, "three run")
    assert queue.count("ready", *jobs) == 2
    assert [queue.limit(name)["used"] for name in "ab"] == [3, 3]
    queue.open("five")
    queue.until("complete", *jobs)


def test_the_last_of_a_diamond_waits_for_both_sides(queue: Queue) -> None:
    top, left, right, bottom = queue.add_lines(
        {"cmd": "echo top >> diamond"},
        {"cmd": f"{queue.waits_for('left')}; echo left >> diamond", "after": ["line:1"]},
        {"cmd": "echo right >> diamond", "after": ["line:1"]},
        {"cmd": "echo bottom >> diamond", "after": ["line:2", "line:3"]},
    )
    queue.until("complete", top, right)
    assert queue.state(bottom) == "dependent"
    assert queue.reason(bottom)["blockers"] == [left]
    queue.open("left")
    queue.until("complete", bottom)
    assert queue.ran("diamond") == ["top", "right", "left", "bottom"]
    late = queue.add("--after", f"{top},{bottom}", "--", "true")
    assert queue.state(late) != "dependent"
    queue.until("complete", late)


def test_a_report_on_a_group_runs_again_with_its_own_dependents_when_the_group_grows(queue: Queue) -> None:
    queue.add("--dep-group", "final", "--", "sh", "-c", "echo one >> parts")
    report = queue.add("--after", "@final", "--", "sh", "-c", "cat parts | wc -l >> report")
    mailed = queue.add("--after", str(report), "--", "sh", "-c", "echo mailed >> mail")
    queue.until("complete", report, mailed)
    late = queue.add("--dep-group", "final", "--", queue.waits_for("final") + "; echo two >> parts")
    assert queue.states_of(report, mailed) == ["dependent", "dependent"]
    assert queue.reason(report)["blockers"] == [late]
    assert queue.reason(mailed)["blockers"] == [report]
    queue.open("final")
    queue.until("complete", report, mailed)
    assert (queue.ran("report"), queue.ran("mail")) == (["1", "2"], ["mailed", "mailed"])
    seen = queue.shown(report)
    assert [each["state"] for each in seen["attempts"]] == ["complete", "complete"]
    assert "reopened" in [line["event"] for line in seen["story"]]


def test_the_end_of_a_job_that_ran_while_the_manager_was_killed_is_recorded_once(alone: Queue) -> None:
    job = alone.add("--", "sh", "-c", "echo x >> ran; " + alone.waits_for("end"))
    wait_until(alone.ran, "it runs")
    alone.kill_manager()
    alone.open("end")
    alone.start()
    alone.until("complete", job)
    seen = alone.shown(job)
    assert [each["state"] for each in seen["attempts"]] == ["complete"]
    assert [line["event"] for line in seen["story"]].count("complete") == 1
    assert alone.ran() == ["x"]


def test_after_a_crash_delays_keep_their_time_failed_stays_failed_and_no_core_is_given_twice(alone: Queue) -> None:
    failed, delayed = alone.put("exit 1", retries=0), alone.put("exit 1", retries=1, backoff="10m")
    # Once it is seen to run, only a job whose end is known lets the delayed one be expected after it.
    runs = alone.put(alone.waits_for("crash"), cpus=8, time="5m")
    held = alone.put("true", after=[runs])
    alone.ok("hold", str(held))
    alone.until("failed", failed)
    alone.until("delayed", delayed)
    alone.until("running", runs)
    due = wait_until(lambda: alone.look(delayed).expected_start, "it is expected")
    assert due > alone.look(delayed).submitted_at + timedelta(minutes=10)
    alone.kill_manager()
    alone.start()
    assert alone.states_of(failed, delayed, runs, held) == ["failed", "delayed", "running", "held"]
    wait_until(lambda: alone.look(delayed).expected_start == due, "it is expected at the same time as before")
    waits = alone.put("echo x >> ran")
    assert alone.reason(waits)["blockers"] == [runs]
    alone.open("crash")
    alone.until("complete", runs, waits)
    assert alone.ran() == ["x"]


def test_a_small_job_fills_the_gap_beside_a_big_one_and_nothing_delays_the_next_big_one(queue: Queue) -> None:
    first = queue.add("--cpus", "7", "--time", "1h", "--", queue.waits_for("first"))
    queue.until("running", first)
    second = queue.add("--cpus", "7", "--time", "1h", "--", queue.waits_for("second"))
    small = queue.add("--cpus", "1", "--time", "10h", "--", queue.waits_for("small"))
    queue.until("running", small)
    assert queue.state(second) == "ready"
    queue.open("first")
    queue.until("running", second)
    assert queue.state(small) == "running"


def test_a_long_job_does_not_take_the_room_that_a_big_one_waits_for_but_a_short_one_does(queue: Queue) -> None:
    first = queue.add("--cpus", "6", "--time", "1h", "--", queue.waits_for("wide"))
    queue.until("running", first)
    big = queue.add("--cpus", "7", "--time", "1h", "--", queue.waits_for("big"))
    fits = queue.add("--cpus", "1", "--time", "10h", "--", queue.waits_for("fits"))
    long = queue.add("--cpus", "1", "--time", "10h", "--", queue.waits_for("long"))
    short = queue.add("--cpus", "1", "--time", "1m", "--", queue.waits_for("short"))
    queue.until("running", fits, short)
    assert queue.states_of(big, long) == ["ready", "ready"]
    queue.open("short")
    queue.open("wide")
    queue.until("running", big)
    assert queue.state(long) == "ready"


def test_a_drained_manager_accepts_jobs_that_run_after_the_restart(alone: Queue) -> None:
    runs = alone.add("--", alone.waits_for("drained"))
    alone.until("running", runs)
    alone.ok("manager", "drain", "--no-wait")
    late = alone.add("--", "sh", "-c", "echo x >> ran")
    assert alone.reason(late)["code"] == "draining"
    assert alone.state(late) == "ready"
    alone.open("drained")
    wait_until(lambda: not (alone.home / "manager.json").exists(), "it has stopped")
    assert alone.ran() == []
    alone.start()
    alone.until("complete", runs, late)
    assert not LEASED & set(alone.states().values())
