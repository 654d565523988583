"""Limits as users meet them: declared, taken in units or alone, within hours, per host, never leaked."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import rota as rota_package
from rota.errors import BadInput
from tests.deployment import deployment, wait_until
from tests.system.queueing import Queue, most_at_once, queue_of


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queue]:
    with queue_of(tmp_path_factory.mktemp("limits")) as made:
        yield made


@pytest.fixture
def queue(shared: Queue) -> Iterator[Queue]:
    yield shared
    shared.clear()


def many(queue: Queue, number: int, gate: str, **fields: Any) -> list[int]:
    """So many jobs that run until the gate opens."""
    return [queue.put(queue.waits_for(gate), **fields) for _ in range(number)]


def running(queue: Queue, number: int, jobs: list[int]) -> None:
    """Exactly so many of these run, and no other is on its way."""
    wait_until(lambda: queue.count("running", *jobs) == number, f"{number} of {jobs} run")
    assert queue.count("ready", *jobs) + queue.count("complete", *jobs) == len(jobs) - number


# ------------------------------------------------------------------ declarations


def test_a_limit_that_nobody_declared_is_refused_with_a_hint(queue: Queue) -> None:
    done = queue.rota("add", "--limit", "unheard", "--", "true")
    assert done.returncode == 2
    assert "limit 'unheard' is not declared" in done.stderr
    assert "rota limit unheard:N" in done.stderr
    with queue.client() as client, pytest.raises(BadInput, match="unheard"):
        client.add("true", limits=["unheard"])
    assert queue.rota("limit", "unheard").returncode == 3
    assert queue.rota("limit", "unheard:unlimited").returncode == 3


@pytest.mark.parametrize("text", ["a b:3", ":3", "x:-1", "x:1.5", "x:many", "x@25:00-26:00", "x@22:00", "x:1@"])
def test_what_is_not_a_limit_is_refused(queue: Queue, text: str) -> None:
    with queue.client() as client, pytest.raises(BadInput):
        client.set_limit(text)
    assert text.partition("@")[0].partition(":")[0] not in [each["name"] for each in queue.json("limit")["limits"]]


def test_a_mistake_in_one_of_several_limits_changes_none(queue: Queue) -> None:
    for words, status in ((["good:3", "bad:x"], 2), (["good:3", "unheard"], 3), (["good", "--host", "x"], 2)):
        assert queue.rota("limit", *words).returncode == status
        assert "good" not in queue.ok("limit", "--quiet").split()


def test_a_limit_that_a_waiting_job_declares_is_listed_at_once(queue: Queue) -> None:
    queue.ok("add", "--limit", "early:4", "--after", "@nobody", "--allow-empty-group", "--", "true")
    assert (queue.limit("early")["capacity"], queue.limit("early")["by_jobs"]) == (4, True)
    queue.ok("add", "--limit", "early:5", "--after", "@nobody", "--allow-empty-group", "--", "true")
    assert queue.limit("early")["capacity"] == 5, "the last to say so decides"
    queue.ok("add", "--limit", "early:any", "--limit", "open:any", "--", "true")
    assert (queue.limit("early")["capacity"], queue.limit("open")["capacity"]) == (5, None)
    queue.ok("limit", "early:any")
    assert (queue.limit("early")["capacity"], queue.limit("early")["by_jobs"]) == (None, False)


def test_a_job_may_declare_its_limit_by_a_number(queue: Queue) -> None:
    jobs = many(queue, 3, "own", limits=["own:2"])
    running(queue, 2, jobs)
    assert queue.limit("own")["capacity"] == 2
    more = queue.put(queue.waits_for("own"), limits=["own:3"])  # it says so anew
    wait_until(lambda: queue.count("running", *jobs, more) == 3, "three run")
    assert queue.limit("own")["capacity"] == 3
    queue.open("own")
    queue.until("complete", *jobs, more)


def test_a_number_takes_units_of_a_limit_that_was_declared(queue: Queue) -> None:
    queue.ok("limit", "units:5")
    double = queue.add("--limit", "units:2", "--", queue.waits_for("units"))
    jobs = [double, *many(queue, 1, "units", limits=["units:2"]), *many(queue, 1, "units", limits=["units"])]
    queue.until("running", *jobs)
    late = queue.put(queue.waits_for("units"), limits=["units:2"])
    (found,) = queue.json("limit", "units")["limits"]
    assert (found["capacity"], found["used"], found["waiting"]) == (5, 5, 1)
    reason = queue.reason(late)
    assert (reason["code"], sorted(reason["blockers"])) == ("limit", jobs)
    assert queue.shown(double)["limits"] == ["units:2"]
    queue.open("units")
    queue.until("complete", *jobs, late)
    found = queue.limit("units")
    assert (found["used"], found["waiting"]) == (0, 0)
    assert "units" in queue.ok("limit")


def test_a_job_takes_units_from_all_its_limits_or_from_none(queue: Queue) -> None:
    queue.ok("limit", "here:1", "there:1")
    holder = queue.put(queue.waits_for("there"), limits=["there"])
    queue.until("running", holder)
    both = queue.put("true", limits=["here", "there"])
    assert queue.reason(both)["code"] == "limit"
    assert queue.limit("here")["used"] == 0
    other = queue.put("true", limits=["here"])
    queue.until("complete", other)
    queue.open("there")
    queue.until("complete", both)


# ------------------------------------------------------------------ changes


def test_lowering_and_raising_hold_at_once(queue: Queue) -> None:
    queue.ok("limit", "change:3")
    jobs = many(queue, 5, "change", limits=["change"])
    running(queue, 3, jobs)
    queue.ok("limit", "change:1")
    assert (queue.limit("change")["capacity"], queue.limit("change")["used"]) == (1, 3)
    late = queue.put("true", limits=["change"])
    assert queue.reason(late)["code"] == "limit"
    queue.ok("limit", "change:5")
    queue.until("running", *jobs)
    queue.ok("limit", "change:0")
    queue.open("change")
    queue.until("complete", *jobs)
    assert queue.state(late) == "ready"
    reason = queue.reason(late)
    assert (reason["code"], reason["blockers"]) == ("limit", [])
    queue.ok("limit", "change:unlimited")
    queue.until("complete", late)
    assert queue.rota("limit", "change").returncode == 3


def test_a_limit_that_is_removed_and_declared_again_still_counts_who_uses_it(queue: Queue) -> None:
    queue.ok("limit", "back:2")
    jobs = many(queue, 3, "back", limits=["back"])
    running(queue, 2, jobs)
    queue.ok("limit", "back:unlimited")
    queue.until("running", *jobs)
    queue.ok("limit", "back:3")
    late = queue.put("true", limits=["back"])
    assert queue.limit("back")["used"] == 3
    reason = queue.reason(late)
    assert (reason["code"], sorted(reason["blockers"])) == ("limit", jobs)
    queue.open("back")
    queue.until("complete", late)


def test_a_limit_of_zero_stops_its_jobs_and_no_others(queue: Queue) -> None:
    queue.ok("limit", "stopped:0")
    stopped = queue.put("true", limits=["stopped"], priority=255)
    queue.until("complete", queue.put("true"))
    assert queue.state(stopped) == "ready"
    assert queue.limit("stopped")["waiting"] == 1
    queue.ok("limit", "stopped:1")
    queue.until("complete", stopped)


def test_jobs_in_a_limit_of_three_are_never_more_than_three(queue: Queue) -> None:
    queue.ok("limit", "three:3")
    line = "echo + >> three; sleep 0.03; echo - >> three"
    queue.add_lines(*(f"{line}; : {n}" for n in range(40)), words=("--limit", "three", "-g", "three"))
    assert queue.rota("wait", "@three").returncode == 0
    marks = queue.ran("three")
    assert len(marks) == 80
    assert most_at_once(marks) <= 3


# ------------------------------------------------------------------ alone


def test_exclusive_use_waits_for_the_present_users_stops_new_ones_and_runs_alone(queue: Queue) -> None:
    queue.ok("limit", "alone:4")
    present = many(queue, 2, "present", limits=["alone"])
    queue.until("running", *present)
    exclusive = queue.add("--limit", "alone!", "--", queue.waits_for("exclusive"))
    assert queue.reason(exclusive)["blockers"] == present
    late = queue.put(queue.waits_for("late"), limits=["alone"])
    wait_until(lambda: queue.state(exclusive) == "ready", "it is known")
    queue.open("present")
    queue.until("running", exclusive)
    assert queue.state(late) == "ready"
    found = queue.limit("alone")
    assert found["exclusive"] is True
    reason = queue.reason(late)
    assert (reason["code"], reason["blockers"]) == ("limit", [exclusive])
    queue.open("exclusive")
    queue.until("running", late)
    assert queue.limit("alone")["exclusive"] is False
    queue.open("late")
    queue.until("complete", late)


def test_an_exclusive_user_that_lacks_something_else_stops_nobody(queue: Queue) -> None:
    queue.ok("limit", "patient:4")
    takes_a_core = queue.put(queue.waits_for("core"), time="1h")
    queue.until("running", takes_a_core)
    exclusive = queue.put("true", cpus=8, limits=["patient!"])
    assert queue.reason(exclusive)["code"] == "resources"
    user = queue.put(queue.waits_for("user"), limits=["patient"], time="1m")
    queue.until("running", user)
    queue.open("core")
    queue.open("user")
    queue.until("complete", exclusive)


def test_exclusive_users_run_one_after_the_other(queue: Queue) -> None:
    queue.ok("limit", "single:9")
    line = "echo + >> single; sleep 0.05; echo - >> single"
    queue.add_lines(*(f"{line}; : {n}" for n in range(6)), words=("--limit", "single!", "-g", "single"))
    assert queue.rota("wait", "@single").returncode == 0
    assert most_at_once(queue.ran("single")) == 1


# ------------------------------------------------------------------ hours


def zone_where_it_is(hour: int) -> str:
    """A time zone, as TZ names it, in which it is this hour of the day now."""
    ahead = (hour - datetime.now(UTC).hour + 12) % 24 - 12
    return f"Etc/GMT{-ahead:+d}" if ahead else "Etc/GMT"


def test_a_window_across_midnight_is_open_before_and_after_it_and_closed_at_noon(tmp_path: Path) -> None:
    for hour, is_open in ((23, True), (4, True), (12, False)):
        top = tmp_path / str(hour)
        made = Queue(top)
        made.env["TZ"] = zone_where_it_is(hour)
        try:
            made.start()
            made.ok("limit", "night@22:00-06:59")
            found = made.limit("night")
            assert (found["window"], found["open"], found["capacity"]) == ("22:00-06:59", is_open, None)
            job = made.add("--limit", "night", "--", "true")
            if is_open:
                made.until("complete", job)
                continue
            said = made.why(job)
            assert [(each["code"], each["blockers"]) for each in said["reasons"]] == [("window", [])]
            opens = datetime.fromisoformat(said["expected_start"])
            ahead = -int(made.env["TZ"].removeprefix("Etc/GMT") or "0")
            local = opens.astimezone(timezone(timedelta(hours=ahead)))
            assert (local.hour, local.minute) == (22, 0)
            assert timedelta() < opens - datetime.now(UTC) <= timedelta(days=1)
            made.ok("limit", "night:unlimited")
            made.until("complete", job)
        finally:
            made.close()


def test_a_window_bounds_the_start_only_and_may_have_units(queue: Queue) -> None:
    queue.ok("limit", "hours:2")
    jobs = many(queue, 3, "hours", limits=["hours"])
    running(queue, 2, jobs)
    hour = datetime.now().astimezone().hour
    closed = f"{(hour + 3) % 24:02}:00-{(hour + 5) % 24:02}:00"
    queue.ok("limit", f"hours@{closed}")
    found = queue.limit("hours")
    assert (found["capacity"], found["used"], found["open"], found["window"]) == (2, 2, False, closed)
    queue.open("hours")
    queue.until("complete", *jobs[:2])
    assert queue.state(jobs[2]) == "ready"
    assert queue.reason(jobs[2])["code"] == "window"
    queue.ok("limit", f"hours@{(hour - 2) % 24:02}:00-{(hour + 3) % 24:02}:00")
    queue.until("complete", jobs[2])


# ------------------------------------------------------------------ per host


def test_units_of_a_host_count_there(queue: Queue) -> None:
    queue.until("complete", queue.put("true"))
    host = wait_until(lambda: queue.json("show", "last")["host"], "its host is known")
    queue.ok("limit", "bigmem:2", "--host", host)
    assert queue.rota("limit", "bigmem:7", "--host", "elsewhere").returncode == 3
    jobs = many(queue, 3, "bigmem", limits=["bigmem"])
    running(queue, 2, jobs)
    found = queue.limit("bigmem")
    assert (found["scope"], found["hosts"][host]) == ("host", {"capacity": 2, "used": 2})
    assert queue.reason(jobs[2])["code"] == "limit"
    queue.ok("limit", "bigmem:3", "--host", host)
    queue.until("running", *jobs)
    assert queue.limit("bigmem")["hosts"][host] == {"capacity": 3, "used": 3}
    refused = queue.rota("limit", "bigmem:9")
    assert (refused.returncode, "in use" in refused.stderr) == (2, True)
    queue.open("bigmem")
    queue.until("complete", *jobs)
    assert queue.limit("bigmem")["hosts"][host]["used"] == 0
    queue.ok("limit", "bigmem:unlimited", "--host", host)
    assert queue.rota("limit", "bigmem").returncode == 3


def test_removing_the_units_of_a_host_leaves_a_global_limit_alone(queue: Queue) -> None:
    queue.until("complete", queue.put("true"))
    host = queue.json("show", "last")["host"]
    queue.ok("limit", "global:3")
    refused = queue.rota("limit", "global:unlimited", "--host", host)
    assert (refused.returncode, "has no units of host" in refused.stderr) == (3, True)
    assert queue.limit("global")["capacity"] == 3


# ------------------------------------------------------------------ crashes


def test_killing_manager_and_runner_leaks_no_unit(tmp_path: Path) -> None:
    with queue_of(tmp_path) as queue:
        queue.ok("limit", "keep:2")
        jobs = many(queue, 3, "keep", limits=["keep"], retries=0)
        running(queue, 2, jobs)
        queue.kill_manager()
        queue.start()
        running(queue, 2, jobs)
        found = queue.limit("keep")
        assert (found["capacity"], found["used"], found["waiting"]) == (2, 2, 1)
        queue.kill_runners()
        queue.until("failed", *jobs[:2])
        queue.until("running", jobs[2])
        assert queue.limit("keep")["used"] == 1
        manager = queue.manager_pid()
        queue.kill_runners()
        os.kill(manager, signal.SIGKILL)
        queue.start()
        queue.until("failed", *jobs)
        found = queue.limit("keep")
        assert (found["capacity"], found["used"], found["waiting"]) == (2, 0, 0)
        again = many(queue, 3, "again", limits=["keep"])
        running(queue, 2, again)
        queue.ok("kill", "all")
        wait_until(lambda: queue.limit("keep")["used"] == 0, "all units are free")


def test_exclusive_use_is_kept_by_a_restart(tmp_path: Path) -> None:
    with queue_of(tmp_path) as queue:
        queue.ok("limit", "alone:4")
        exclusive = queue.put(queue.waits_for("alone"), limits=["alone!"])
        queue.until("running", exclusive)
        late = queue.put("true", limits=["alone"])
        queue.kill_manager()
        queue.start()
        assert queue.limit("alone")["exclusive"] is True
        assert queue.states_of(exclusive, late) == ["running", "ready"]
        with queue.client() as client:
            assert client.why(late).reasons[0].blockers == [exclusive]
        queue.open("alone")
        queue.until("complete", exclusive, late)


def test_the_python_client_lists_and_sets_limits(queue: Queue) -> None:
    with rota_package.connect(home=queue.home) as client:
        client.set_limit("python:4")
        (found,) = [each for each in client.limits() if each.name == "python"]
        assert (found.capacity, found.used, found.waiting, found.scope) == (4, 0, 0, "global")
        client.set_limit("python:unlimited")
        assert "python" not in [each.name for each in client.limits()]


def test_hours_can_be_taken_away_alone_and_units_stay(queue: Queue) -> None:
    def found() -> tuple[int | None, str | None]:
        (limit,) = queue.json("limit", "day")["limits"]
        return limit["capacity"], limit["window"]

    queue.ok("limit", "day:3@08:00-18:00")
    queue.ok("limit", "day@always")
    assert found() == (3, None)
    queue.ok("limit", "day@08:00-18:00")
    queue.ok("limit", "day:4@always")
    assert found() == (4, None)
    queue.ok("limit", "day:unlimited@08:00-18:00")
    queue.ok("limit", "day@always")
    assert found() == (None, None)
    queue.ok("limit", "day:unlimited@always")
    assert queue.rota("limit", "day").returncode == 3


def test_a_limit_that_only_jobs_declared_is_there_after_a_restart(tmp_path: Path) -> None:
    with deployment(tmp_path, grace="1s") as made:
        made.start()
        made.ok("run", "--limit", "licence:5", "--", "true")
        made.ok("run", "--array", "1-2%1", "--", "true")
        before = made.json("limit")["limits"]
        assert [(each["name"], each["capacity"], each["by_jobs"]) for each in before] == [("licence", 5, True)]
        made.ok("manager", "stop")
        made.start()
        assert made.json("limit")["limits"] == before
        made.ok("add", "--limit", "licence", "--", "true")
        made.ok("limit", "licence:unlimited")
        assert made.json("limit")["limits"] == []
