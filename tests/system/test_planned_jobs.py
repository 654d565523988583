"""Jobs that ask for more than a size, with real processes on two cores: requests, types, queues, reservations,
quotas and hosts as users meet them, and what is left of it after a crash."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from rota.errors import RotaError
from tests.deployment import wait_until
from tests.system.queueing import Queue, queue_of


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queue]:
    with queue_of(tmp_path_factory.mktemp("planned"), cores="2") as made:
        yield made


@pytest.fixture
def queue(shared: Queue) -> Iterator[Queue]:
    yield shared
    shared.clear()
    with contextlib.suppress(RotaError):
        undo(shared)


def undo(queue: Queue) -> None:
    """Take back every record of the site."""
    for quota in queue.json("quota", "list")["quotas"]:
        queue.ok("quota", "remove", quota["rule"])
    queue.ok("resource", "set", "--hosts", host(queue), "--no-drain", "--state", "alive")


def host(queue: Queue) -> str:
    (runner,) = queue.json("manager", "status")["runners"]
    return str(runner["host"])


def moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def cores(queue: Queue, job: int) -> str:
    return str(queue.look(job).resources)


def runs(queue: Queue, gate: str, **fields: Any) -> int:
    return queue.put(queue.waits_for(gate), **fields)


# ------------------------------------------------------------------ requests


def test_a_request_of_a_core_runs_and_knows_its_core(queue: Queue) -> None:
    job = queue.add("-l", "core=1", "--", "sh", "-c", "nproc; echo $ROTA_CPU_LIST; cat $ROTA_NODEFILE | wc -l")
    queue.until("complete", job)
    count, listed, lines = queue.ok("logs", str(job)).split()
    assert (count, lines) == ("1", "1")
    assert listed in ("0", "1")


def test_two_requests_of_a_core_run_side_by_side_on_different_ones_and_a_third_waits(queue: Queue) -> None:
    first, second, third = (runs(queue, "side", request=["core=1"]) for _ in range(3))
    queue.until("running", first, second)
    assert queue.state(third) == "ready"
    assert {cores(queue, first), cores(queue, second)} == {"1", "2"}
    (reason,) = queue.why(third)["reasons"]
    assert reason["code"] == "resources"
    queue.open("side")
    queue.until("complete", first, second, third)


def test_plain_jobs_and_requests_share_the_cores(queue: Queue) -> None:
    plain = [runs(queue, "mixed") for _ in range(2)]
    queue.until("running", *plain)
    planned = runs(queue, "mixed", request=["core=2"])
    later = runs(queue, "mixed")
    assert queue.states_of(planned, later) == ["ready", "ready"]
    queue.open("mixed")
    queue.until("complete", *plain, planned, later)


def test_of_alternatives_the_one_that_ends_first_is_taken(queue: Queue) -> None:
    blocker = runs(queue, "mould", request=["core=1,walltime=1h"])
    queue.until("running", blocker)
    job = runs(queue, "mould", request=["core=2,walltime=10m", "core=1,walltime=20m"])
    queue.until("running", job)
    queue.open("mould")
    queue.until("complete", blocker, job)


def test_a_property_chooses_the_host(queue: Queue) -> None:
    job = queue.add("-p", f"host='{host(queue)}'", "--", "true")
    queue.until("complete", job)
    done = queue.rota("add", "-p", "host='elsewhere'", "--", "true")
    assert done.returncode == 2
    assert "never fits" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-l", "hots=1"), ("hots", "column 1")),
        (("-l", "{colour='red'}/core=1"), ("colour",)),
        (("-p", "colour='red'"), ("colour",)),
        (("-l", "core=three"), ("three",)),
        (("-t", "nonsense"), ("nonsense",)),
        (("-q", "nowhere"), ("nowhere",)),
    ],
)
def test_unknown_words_are_refused_by_name(queue: Queue, words: tuple[str, ...], said: tuple[str, ...]) -> None:
    done = queue.rota("add", *words, "--", "true")
    assert done.returncode == 2
    assert all(word in done.stderr for word in said)
    assert "\n" not in done.stderr.strip()


def test_a_bad_line_of_a_file_is_named_with_its_field_and_column(queue: Queue) -> None:
    done = queue.rota("add", "-", input='true\n{"cmd": "true", "request": "core=1+hots=2"}\n')
    assert done.returncode == 2
    for word in ("line 2", "request", "column 8", "hots"):
        assert word in done.stderr


def test_what_never_fits_is_refused_unless_it_is_wanted_anyway(queue: Queue) -> None:
    done = queue.rota("add", "-l", "core=3", "--", "true")
    assert done.returncode == 2
    assert "never fits" in done.stderr
    job = queue.add("-l", "core=3", "--allow-unsatisfiable", "--", "true")
    other = queue.add("-l", "core=1", "--", "true")
    queue.until("complete", other)
    assert queue.state(job) == "ready"
    assert [each["code"] for each in queue.why(job)["reasons"]] == ["unsatisfiable"]


def test_the_walltime_of_a_request_ends_the_job(queue: Queue) -> None:
    job = queue.add("--retries", "0", "-l", "core=1,walltime=0:0:1", "--", "sleep", "1000")
    queue.until("failed", job)
    assert queue.shown(job)["reason"]["code"] == "walltime"


# ------------------------------------------------------------------ types


def test_besteffort_is_ended_for_a_normal_job(queue: Queue) -> None:
    low = queue.put("sleep 1000", type=["besteffort"], request=["core=2"], retries=3)
    queue.until("running", low)
    job = queue.put("true", request=["core=1"])
    queue.until("complete", job)
    queue.until("failed", low)
    assert queue.shown(low)["reason"]["code"] == "preempted"


def test_idempotent_besteffort_is_queued_again_and_no_retry_is_used(queue: Queue) -> None:
    low = queue.put("sleep 1000", type=["besteffort", "idempotent"], request=["core=2"], retries=0)
    queue.until("running", low)
    job = runs(queue, "again", request=["core=1"])
    queue.until("running", job)
    queue.until("ready", low)
    queue.open("again")
    queue.until("complete", job)
    queue.until("running", low)
    assert queue.look(low).attempt == 2


def test_an_inner_job_runs_in_its_container_and_not_outside(queue: Queue) -> None:
    box = runs(queue, "box", type=["container"], request=["core=1,walltime=1h"])
    queue.until("running", box)
    inner = runs(queue, "inner", type=[f"inner={box}"], request=["core=1,walltime=10m"])
    queue.until("running", inner)
    assert cores(queue, inner) == cores(queue, box)
    large = queue.put("true", type=[f"inner={box}"], request=["core=2,walltime=10m"])
    assert [each["code"] for each in queue.why(large)["reasons"]] == ["container"]
    queue.open("inner")
    queue.until("complete", inner)
    queue.open("box")
    queue.until("complete", box)


def test_a_noop_holds_its_cores_until_it_is_killed_or_its_time_is_over(queue: Queue) -> None:
    short = queue.put("touch never", type=["noop"], request=["core=1,walltime=0:0:1"], retries=0)
    long = queue.put("touch never", type=["noop"], request=["core=1"])
    queue.until("running", long)
    queue.until("complete", short)
    assert queue.state(long) == "running"
    queue.ok("kill", str(long))
    queue.until("cancelled", long)
    assert not (queue.work / "never").exists()


@pytest.mark.parametrize("kind", ["deploy", "cosystem"])
def test_deploy_and_cosystem_jobs_run_their_command(queue: Queue, kind: str) -> None:
    job = queue.add("-t", kind, "-l", "core=1", "--", "echo", kind)
    queue.until("complete", job)
    assert queue.ok("logs", str(job)).strip() == kind


def test_timesharing_jobs_have_the_same_cores_at_once(queue: Queue) -> None:
    first, second = (runs(queue, "share", type=["timesharing=*,*"], request=["core=2"]) for _ in range(2))
    queue.until("running", first, second)
    assert cores(queue, first) == cores(queue, second) == "1-2"
    queue.open("share")
    queue.until("complete", first, second)


def test_a_placeholder_keeps_everybody_out_but_those_that_are_allowed(queue: Queue) -> None:
    keeper = runs(queue, "place", type=["placeholder=yop"], request=["core=2,walltime=1h"])
    queue.until("running", keeper)
    plain = queue.put("true", request=["core=1"])
    allowed = queue.put("true", type=["allowed=yop"], request=["core=1"])
    queue.until("complete", allowed)
    assert queue.state(plain) == "ready"
    queue.open("place")
    queue.until("complete", plain, keeper)


def test_who_may_not_begin_yet_waits_and_who_is_too_late_gives_up(queue: Queue) -> None:
    postponed = queue.add("-t", "postpone=now+2s", "--", "true")
    assert queue.state(postponed) == "ready"
    blocker = runs(queue, "late", request=["core=2"])
    queue.until("running", blocker)
    expired = queue.add("-t", "expire=now+1s", "-l", "core=1", "--", "true")
    past = queue.add("-t", "deadline=now+1s", "-l", "core=1,walltime=0:0:1", "--", "true")
    queue.until("failed", expired, past)
    queue.open("late")
    queue.until("complete", postponed)
    shown = queue.shown(postponed)
    assert moment(shown["started_at"]) >= moment(shown["submitted_at"]) + 1.5


# ------------------------------------------------------------------ reservations


def test_a_reservation_begins_at_its_time_and_not_before(queue: Queue) -> None:
    at = int(time.time()) + 4
    job = queue.add("-r", f"@{at}", "-l", "core=2,walltime=0:1:0", "--", "true")
    shown = queue.shown(job)
    assert shown["state"] == "ready"
    (reason,) = queue.why(job)["reasons"]
    assert reason["code"] == "reservation"
    filler = queue.add("-l", "core=2,walltime=0:10:0", "--", "true")
    queue.until("complete", job, filler)
    begun = {id: moment(queue.shown(id)["started_at"]) for id in (job, filler)}
    assert begun[job] >= at
    assert begun[filler] >= begun[job]


def test_a_reservation_that_cannot_be_granted_is_refused_at_once(queue: Queue) -> None:
    first = queue.add("-r", "now+1h", "-l", "core=2,walltime=1h", "--", "true")
    done = queue.rota("add", "-r", "now+1h", "-l", "core=1,walltime=1h", "--", "true")
    assert done.returncode == 2
    assert "reservation" in done.stderr
    past = queue.rota("add", "-r", "@1000000000", "-l", "core=1,walltime=1h", "--", "true")
    assert past.returncode == 2
    assert "past" in past.stderr
    later = queue.add("-r", "now+3h", "-l", "core=2,walltime=1h", "--", "true")
    assert queue.states_of(first, later) == ["ready", "ready"]


def test_of_several_reservations_in_one_input_those_are_kept_that_can_be_granted(queue: Queue) -> None:
    at = int(time.time()) + 3600
    one = {"cmd": "true", "at": f"@{at}", "request": "core=2,walltime=1h"}
    jobs = queue.add_lines(one, one, words=("--rerun",))
    wait_until(lambda: queue.count("failed", *jobs) == 1, "one is rejected")
    assert queue.states_of(*jobs) == ["ready", "failed"]
    assert queue.shown(jobs[1])["reason"]["code"] == "reservation"


def test_a_granted_reservation_is_kept_over_a_crash_and_so_are_the_cores(queue: Queue) -> None:
    running = [runs(queue, "crash", request=["core=1,walltime=1h"]) for _ in range(2)]
    queue.until("running", *running)
    waiting = queue.put("true", request=["core=1,walltime=10m"])
    first = queue.add("-r", "now+2h", "-l", "core=2,walltime=1h", "--", "true")
    held = [cores(queue, job) for job in running]
    queue.kill_manager()
    queue.start()
    wait_until(lambda: any(each["connected"] for each in queue.json("manager", "status")["runners"]), "it is back")
    queue.until("running", *running)
    assert [cores(queue, job) for job in running] == held
    assert queue.states_of(waiting, first) == ["ready", "ready"]
    done = queue.rota("add", "-r", "now+2h", "-l", "core=1,walltime=1h", "--", "true")
    assert done.returncode == 2
    queue.open("crash")
    queue.until("complete", *running, waiting)
    assert queue.state(first) == "ready"


# ------------------------------------------------------------------ queues, quotas, hosts, limits


def test_a_quota_keeps_the_second_job_waiting(queue: Queue) -> None:
    queue.ok("quota", "set", "*,*,*,/", "1")
    first, second = (runs(queue, "quota") for _ in range(2))
    queue.until("running", first)
    assert queue.state(second) == "ready"
    assert "quota" in [each["code"] for each in queue.why(second)["reasons"]]
    queue.ok("quota", "remove", "*,*,*,/")
    queue.until("running", second)
    queue.open("quota")
    queue.until("complete", first, second)


def test_the_admin_queue_goes_before_the_default_one(queue: Queue) -> None:
    blocker = runs(queue, "queues", request=["core=2"])
    queue.until("running", blocker)
    low = queue.put("echo low >> order", request=["core=2"])
    high = queue.put("echo high >> order", request=["core=2"], queue="admin")
    queue.open("queues")
    queue.until("complete", blocker, low, high)
    assert queue.ran("order") == ["high", "low"]


def test_nothing_starts_on_a_host_that_is_drained(queue: Queue) -> None:
    name = host(queue)
    queue.ok("resource", "set", "--hosts", name, "--drain")
    job, plain = queue.put("true", request=["core=1"]), queue.put("true")
    assert [each["code"] for each in queue.why(plain)["reasons"]]
    assert queue.states_of(job, plain) == ["ready", "ready"]
    queue.ok("resource", "set", "--hosts", name, "--no-drain")
    queue.until("complete", job, plain)


@pytest.mark.parametrize("state", ["absent", "dead"])
def test_a_host_that_is_said_to_be_gone_ends_its_jobs(queue: Queue, state: str) -> None:
    name = host(queue)
    job = queue.put("sleep 1000", request=["core=1"], retries=0)
    plain = queue.put("sleep 1000", retries=0)
    queue.until("running", job, plain)
    queue.ok("resource", "set", "--hosts", name, "--state", state)
    queue.until("cancelled", job, plain)
    later = queue.put("true")
    assert queue.state(later) == "ready"
    queue.ok("resource", "set", "--hosts", name, "--state", "alive")
    queue.until("complete", later)


def test_limits_hold_for_planned_jobs_as_well(queue: Queue) -> None:
    queue.set_limits("licence:1")
    first, second = (runs(queue, "limit", request=["core=1"], limits=["licence"]) for _ in range(2))
    queue.until("running", first)
    assert queue.state(second) == "ready"
    other = queue.put("true", request=["core=1"])
    queue.until("complete", other)
    queue.open("limit")
    queue.until("complete", first, second)


# ------------------------------------------------------------------ changes and crashes


def test_a_waiting_planned_job_is_modified_held_and_released(queue: Queue) -> None:
    blocker = runs(queue, "modify", request=["core=2"])
    queue.until("running", blocker)
    first = queue.put("echo first >> changed", request=["core=2"])
    second = queue.put("echo second >> changed", request=["core=2"])
    held = queue.put("echo held >> changed", request=["core=2"])
    queue.ok("hold", str(held))
    queue.ok("modify", str(second), "--priority", "9", "-l", "core=1")
    done = queue.rota("modify", str(first), "-l", "hots=1")
    assert done.returncode == 2
    queue.open("modify")
    queue.until("complete", first, second)
    assert queue.ran("changed") == ["second", "first"]
    assert queue.state(held) == "held"
    queue.ok("release", str(held))
    queue.until("complete", held)


def test_a_planned_job_that_fails_is_tried_again(queue: Queue) -> None:
    job = queue.add("--retries", "1", "--backoff", "1s", "-l", "core=2", "--", "false")
    queue.until("failed", job)
    assert queue.look(job).attempt == 2
    after = queue.add("-l", "core=1", "--after", f"afternotok:{job}", "--", "true")
    queue.until("complete", after)


def test_planned_jobs_survive_the_death_of_the_runner(queue: Queue) -> None:
    job = queue.add(
        "--retries", "3", "--backoff", "0s", "-l", "core=1", "--", f"sh -c '{queue.waits_for('dead')}'"
    )
    waiting = queue.put("true", request=["core=2"])
    queue.until("running", job)
    queue.kill_runners()
    wait_until(lambda: queue.look(job).attempt == 2 and queue.state(job) == "running", "it runs again")
    queue.open("dead")
    queue.until("complete", job, waiting)


def test_jobs_that_end_while_the_manager_is_paused_make_room_when_it_goes_on(queue: Queue) -> None:
    first = runs(queue, "paused", request=["core=2"])
    queue.until("running", first)
    second = queue.put("true", request=["core=2"])
    queue.ok("manager", "pause")
    queue.open("paused")
    queue.until("complete", first)
    assert queue.state(second) == "ready"
    queue.ok("manager", "resume")
    queue.until("complete", second)


def test_a_preemption_that_a_crash_interrupts_is_completed(queue: Queue) -> None:
    low = queue.put("trap '' TERM; sleep 1000", type=["besteffort"], request=["core=2"], retries=0)
    queue.until("running", low)
    job = queue.put("true", request=["core=2"])
    os.kill(queue.manager_pid(), signal.SIGKILL)
    queue.start()
    queue.until("complete", job)
    queue.until("failed", low)
    assert queue.shown(low)["reason"]["code"] == "preempted"


def test_jobs_without_a_core_and_with_a_part_of_one_run_beside_a_plan(queue: Queue) -> None:
    blocker = runs(queue, "parts", request=["core=1"])
    queue.until("running", blocker)
    none = [runs(queue, "parts", cpus=0) for _ in range(3)]
    part = runs(queue, "parts", cpus=0.5)
    queue.until("running", *none, part)
    queue.open("parts")
    queue.until("complete", blocker, part, *none)


def test_many_plain_jobs_complete_while_a_planned_job_waits(queue: Queue) -> None:
    blocker = runs(queue, "many", request=["core=1,walltime=2h"])
    queue.until("running", blocker)
    waiting = queue.put("true", request=["core=2,walltime=1h"])
    jobs = queue.add_all("--rerun", "-g", "many", "--time", "1s", "-", input=": many\n" * 800)
    wait_until(
        lambda: queue.json("status", "@many")["counts"].get("complete") == 800, "all are complete", seconds=150
    )
    assert len(jobs) == 800
    assert queue.state(waiting) == "ready"
    queue.open("many")
    queue.until("complete", blocker, waiting)
