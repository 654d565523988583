"""Dependencies on jobs and on live groups: waiting, re-opening, blocking, refusing, removing."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from rota.errors import RotaError
from tests.deployment import wait_until
from tests.system.queueing import Queue, queue_of


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queue]:
    with queue_of(tmp_path_factory.mktemp("after")) as made:
        yield made


@pytest.fixture
def queue(shared: Queue) -> Iterator[Queue]:
    yield shared
    shared.clear()


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Queue]:
    with queue_of(tmp_path) as made:
        yield made


def outcomes(queue: Queue, job: int) -> list[str]:
    return [each["state"] for each in queue.shown(job)["attempts"]]


# ------------------------------------------------------------------ live groups


def test_a_waiting_dependent_waits_for_whoever_joins_its_group(queue: Queue) -> None:
    first = queue.put(queue.waits_for("w1"), dep_groups=["w"])
    report = queue.add("--after", "@w", "--", "true")
    second = queue.put(queue.waits_for("w2"), dep_groups=["w"])
    assert queue.shown(report)["after"] == ["@w"]
    assert queue.shown(second)["dep_groups"] == ["w"]
    assert sorted(queue.reason(report)["blockers"]) == [first, second]
    queue.open("w1")
    queue.until("complete", first)
    assert queue.state(report) == "dependent"
    assert queue.reason(report)["blockers"] == [second]
    queue.open("w2")
    queue.until("complete", report)


def test_a_ready_dependent_of_a_group_that_grows_waits_again(queue: Queue) -> None:
    queue.set_limits("later:0")
    first = queue.put("true", dep_groups=["r"])
    queue.until("complete", first)
    report = queue.put("true", after=["@r"], limits=["later"])
    assert queue.state(report) == "ready"
    member = queue.put(queue.waits_for("r"), dep_groups=["r"])
    assert queue.state(report) == "dependent"
    queue.set_limits("later:unlimited")
    assert queue.reason(report)["blockers"] == [member]
    queue.open("r")
    queue.until("complete", report)


def test_a_running_dependent_of_a_group_that_grows_ends_and_runs_once_more(queue: Queue) -> None:
    queue.until("complete", queue.put("true", dep_groups=["run"]))
    report = queue.put("echo x >> rerun; " + queue.waits_for("run1"), after=["@run"])
    queue.until("running", report)
    late = queue.put(queue.waits_for("run2"), dep_groups=["run"])
    assert queue.state(report) == "running"
    queue.open("run1")
    queue.until("dependent", report)
    assert outcomes(queue, report) == ["complete"]
    assert queue.reason(report)["blockers"] == [late]
    queue.open("run2")
    queue.until("complete", report)
    assert outcomes(queue, report) == ["complete", "complete"]
    assert queue.ran("rerun") == ["x", "x"]


def test_a_leased_dependent_that_has_not_begun_runs_only_when_the_group_is_done(alone: Queue) -> None:
    alone.until("complete", alone.put("true", dep_groups=["leased"]))
    runs = alone.put(alone.waits_for("never"))
    alone.until("running", runs)
    (runner,) = alone.runner_pids()
    os.kill(runner, signal.SIGSTOP)
    report = alone.put("cat member >> seen; echo x >> seen", after=["@leased"], retries=0)
    alone.until("scheduled", report)
    member = alone.put("echo member > member", dep_groups=["leased"])
    os.kill(runner, signal.SIGCONT)
    alone.until("complete", member, report)
    assert alone.ran("seen")[-2:] == ["member", "x"]


def test_complete_dependents_two_levels_deep_run_again_also_after_a_restart(alone: Queue) -> None:
    alone.put("echo one >> parts", dep_groups=["deep"])
    report = alone.put("wc -l < parts >> report", after=["@deep"], dep_groups=["reports"])
    second = alone.put("echo two >> levels", after=["@reports"])
    third = alone.put("echo three >> levels", after=[second])
    untouched = alone.put("echo no >> untouched", after=["@deep"], live=False)
    alone.until("complete", report, second, third, untouched)
    alone.ok("manager", "stop")
    alone.start()
    gate = alone.put(alone.waits_for("deep") + "; echo two >> parts", dep_groups=["deep"])
    assert alone.states_of(report, second, third, untouched) == ["dependent"] * 3 + ["complete"]
    assert [alone.reason(job)["blockers"] for job in (report, second, third)] == [[gate], [report], [second]]
    alone.kill_manager()
    alone.start()
    assert alone.states_of(report, second, third) == ["dependent"] * 3
    alone.open("deep")
    alone.until("complete", report, second, third)
    assert alone.ran("report") == ["1", "2"]
    assert sorted(alone.ran("levels")) == ["three", "three", "two", "two"]
    assert alone.ran("untouched") == ["no"]
    for job in (report, second, third):
        assert outcomes(alone, job) == ["complete", "complete"]
        assert [line["event"] for line in alone.shown(job)["story"]].count("reopened") == 1


def test_adding_a_member_again_opens_nothing_and_running_it_again_does(queue: Queue) -> None:
    member = {"cmd": ": member of again", "dep_groups": ["again"]}
    queue.add_lines(member)
    report = queue.put("echo x >> again", after=["@again"])
    queue.until("complete", report)
    queue.add_lines(member)
    assert queue.state(report) == "complete"
    queue.add_lines(member, words=("--rerun",))
    wait_until(lambda: outcomes(queue, report) == ["complete", "complete"], "it ran again")
    assert queue.ran("again") == ["x", "x"]


def test_failed_and_cancelled_dependents_stay_what_they_are_when_the_group_grows(queue: Queue) -> None:
    queue.until("complete", queue.put("true", dep_groups=["stay"]))
    failed = queue.put("false", after=["@stay"], retries=0)
    cancelled = queue.put(queue.waits_for("never"), after=["@stay"])
    queue.until("running", cancelled)
    queue.ok("kill", str(cancelled))
    queue.until("cancelled", cancelled)
    queue.until("failed", failed)
    queue.until("complete", queue.put("true", dep_groups=["stay"]))
    assert queue.states_of(failed, cancelled) == ["failed", "cancelled"]


def test_without_live_a_dependent_waits_only_for_the_members_of_now(queue: Queue) -> None:
    first = queue.put(queue.waits_for("fixed1"), dep_groups=["fixed"])
    report = queue.add("--after", "@fixed", "--no-live", "--", "true")
    assert queue.shown(report)["live"] is False
    queue.put(queue.waits_for("fixed2"), dep_groups=["fixed"])
    queue.open("fixed1")
    queue.until("complete", first, report)


# ------------------------------------------------------------------ refusals


def test_a_group_that_never_had_a_member_is_refused_unless_it_may_be_empty(queue: Queue) -> None:
    done = queue.rota("add", "--after", "@nobody", "--", "true")
    assert (done.returncode, "'nobody'" in done.stderr) == (3, True)
    assert "--allow-empty-group" in done.stderr
    report = queue.add("--after", "@nobody", "--allow-empty-group", "--", "true")
    reason = queue.reason(report)
    assert (reason["code"], reason["blockers"]) == ("dependency", [])
    assert "no member yet" in reason["message"]
    member = queue.put(queue.waits_for("nobody"), dep_groups=["nobody"])
    assert queue.reason(report)["blockers"] == [member]
    queue.open("nobody")
    queue.until("complete", report)


def test_a_job_may_not_wait_for_its_own_group(queue: Queue) -> None:
    done = queue.rota("add", "--after", "@own", "--dep-group", "own", "--", "true")
    assert done.returncode == 2
    assert "its own group 'own'" in done.stderr


def test_a_job_whose_ancestor_waits_for_a_group_may_not_join_it(queue: Queue) -> None:
    queue.until("complete", queue.put("true", dep_groups=["circle"]))
    report = queue.put(queue.waits_for("circle"), after=["@circle"])
    child = queue.put("true", after=[report], dep_groups=["between"])
    for parent in (str(child), "@between"):
        done = queue.rota("add", "--after", parent, "--dep-group", "circle", "--", "true")
        assert done.returncode == 2, done.stderr
        assert "cycle" in done.stderr
        assert "circle" in done.stderr
        assert done.stderr.count("\n") == 1
    with queue.client() as client, pytest.raises(RotaError, match="circle"):
        client.add("true", after=[child], dep_groups=["circle"])


def test_a_cycle_is_refused_naming_it_and_adds_nothing(queue: Queue) -> None:
    before = queue.json("jobs", "--limit", "1")["total"]
    lines = [
        {"cmd": ": cycle 1", "after": ["line:3"]},
        {"cmd": ": cycle 2", "after": ["line:1"]},
        {"cmd": ": cycle 3", "after": ["line:2"]},
    ]
    done = queue.rota("add", "-", input="\n".join(map(json.dumps, lines)))
    assert done.returncode == 2
    assert "cycle" in done.stderr
    assert all(f"line {number}" in done.stderr for number in (1, 2, 3))
    groups = [
        {"cmd": ": ring 1", "after": ["@ring2"], "dep_groups": ["ring1"]},
        {"cmd": ": ring 2", "after": ["@ring1"], "dep_groups": ["ring2"]},
    ]
    done = queue.rota("add", "-", input="\n".join(map(json.dumps, groups)))
    assert done.returncode == 2
    assert "cycle" in done.stderr
    assert "ring1" in done.stderr
    assert queue.json("jobs", "--limit", "1")["total"] == before


def test_a_job_that_is_not_there_cannot_be_waited_for(queue: Queue) -> None:
    done = queue.rota("add", "--after", "999999", "--", "true")
    assert (done.returncode, "999999" in done.stderr) == (3, True)


# ------------------------------------------------------------------ conditions


def test_conditions_on_a_group(queue: Queue) -> None:
    good, bad = queue.put("true", dep_groups=["mixed"]), queue.put("false", dep_groups=["mixed"], retries=0)
    ok = queue.put("true", after=["@mixed"])
    any_ = queue.put("true", after=["afterany:@mixed"])
    not_ok = queue.put("true", after=["afternotok:@mixed"])
    queue.until("complete", good, any_)
    queue.until("failed", bad)
    queue.until("blocked", ok, not_ok)
    reason = queue.reason(ok)
    assert (reason["code"], reason["blockers"]) == ("dependency_never", [bad])
    reason = queue.reason(not_ok)
    assert reason["code"] == "dependency_never"
    queue.put("false", dep_groups=["bad"], retries=0)
    queue.until("complete", queue.put("true", after=["afternotok:@bad"]))


def test_conditions_on_a_job(queue: Queue) -> None:
    good, bad = queue.put("true"), queue.put("false", retries=0)
    runs = [
        queue.put("true", after=[word]) for word in (f"afterok:{good}", f"afterany:{bad}", f"afternotok:{bad}")
    ]
    never = [queue.put("true", after=[word]) for word in (f"afterok:{bad}", f"afternotok:{good}")]
    queue.until("complete", *runs)
    queue.until("blocked", *never)
    assert [queue.reason(job)["blockers"] for job in never] == [[bad], [good]]
    assert {queue.reason(job)["code"] for job in never} == {"dependency_never"}


def test_a_retry_of_the_parent_releases_what_it_blocked(queue: Queue) -> None:
    parent = queue.put(f"test -e {queue.work}/mended", retries=0)
    child = queue.put("true", after=[parent])
    grandchild = queue.put("true", after=[child])
    queue.until("blocked", child, grandchild)
    assert queue.reason(child)["blockers"] == [parent]
    assert queue.reason(grandchild)["blockers"] == [child]
    queue.open("mended")
    queue.ok("retry", str(parent))
    queue.until("complete", parent, child, grandchild)


def test_a_cancelled_parent_blocks_too(queue: Queue) -> None:
    parent = queue.put(queue.waits_for("never"))
    child = queue.put("true", after=[parent])
    queue.ok("kill", str(parent))
    queue.until("blocked", child)
    assert "cancelled" in queue.reason(child)["message"]


def test_run_wait_and_sync_end_with_1_when_the_rest_is_blocked(queue: Queue) -> None:
    lines = '{"cmd": "false"}\n{"cmd": "true", "after": ["line:1"]}\n{"cmd": "true", "after": ["line:2"]}\n'
    done = queue.rota("run", "--rerun", "-", input=lines)
    assert done.returncode == 1
    done = queue.rota("add", "--sync", "--json", "--rerun", "--retries", "0", "-", input=lines)
    assert done.returncode == 1
    states = queue.states("last")
    assert sorted(states.values()) == ["blocked", "blocked", "failed"]
    blocked = [job for job, state in states.items() if state == "blocked"]
    done = queue.rota("wait", "--json", str(max(blocked)))
    assert done.returncode == 1
    assert json.loads(done.stdout)["counts"] == {"blocked": 1}
    assert queue.rota("wait", "last").returncode == 1


def test_a_child_whose_parent_is_blocked_through_a_group_is_settled_for_wait(queue: Queue) -> None:
    queue.put("false", dep_groups=["broken"], retries=0)
    middle = queue.put("true", after=["@broken"], dep_groups=["after-broken"])
    last = queue.put("true", after=["@after-broken"])
    assert queue.rota("wait", str(last), timeout=60).returncode == 1
    assert queue.states_of(middle, last) == ["blocked", "blocked"]
    assert queue.reason(last)["blockers"] == [middle]


# ------------------------------------------------------------------ removing


def test_a_parent_is_removed_only_with_its_dependents(queue: Queue) -> None:
    parent = queue.put("false", retries=0)
    child = queue.put("true", after=[parent])
    grandchild = queue.put("true", after=[child])
    queue.until("blocked", child, grandchild)
    done = queue.rota("remove", str(parent))
    assert done.returncode == 2
    assert str(child) in done.stderr
    assert queue.state(parent) == "failed"
    assert queue.rota("remove", "--waiting", str(parent), str(child)).returncode == 2
    assert queue.json("remove", "--cascade", str(parent))["changed"] == [parent, child, grandchild]
    assert queue.rota("show", str(grandchild)).returncode == 3
    one, two = queue.put("false", retries=0), queue.put("true")
    both = queue.put("true", after=[one, two])
    queue.until("blocked", both)
    assert sorted(queue.json("remove", "--waiting", str(one), str(both))["changed"]) == [one, both]


def test_a_member_of_a_group_is_removed_only_with_those_who_wait_for_the_group(queue: Queue) -> None:
    fine = queue.put("true", dep_groups=["shrinks"])
    bad = queue.put("false", dep_groups=["shrinks"], retries=0)
    report = queue.put("true", after=["@shrinks"])
    queue.until("blocked", report)
    done = queue.rota("remove", str(bad))
    assert (done.returncode, f"job {report} waits for job {bad}" in done.stderr) == (2, True)
    assert sorted(queue.json("remove", "--cascade", str(bad))["changed"]) == [bad, report]
    assert queue.state(fine) == "complete"


def test_an_attempt_that_fails_while_the_group_grows_counts_and_the_next_waits_for_the_group(queue: Queue) -> None:
    queue.until("complete", queue.put("true", dep_groups=["grows"]))
    command = queue.waits_for("grows1") + "; test $ROTA_ATTEMPT = 2"
    report = queue.put(command, after=["@grows"], retries=1, backoff="0s")
    queue.until("running", report)
    member = queue.put(queue.waits_for("grows2"), dep_groups=["grows"])
    queue.open("grows1")
    queue.until("dependent", report)
    assert queue.reason(report)["blockers"] == [member]
    queue.open("grows2")
    queue.until("complete", report)
    assert outcomes(queue, report) == ["failed", "complete"]


def test_a_running_dependent_that_is_killed_stays_cancelled_though_the_group_grew(queue: Queue) -> None:
    queue.until("complete", queue.put("true", dep_groups=["cut"]))
    report = queue.put(queue.waits_for("never"), after=["@cut"])
    queue.until("running", report)
    queue.until("complete", queue.put("true", dep_groups=["cut"]))
    queue.ok("kill", str(report))
    queue.until("cancelled", report)


def test_dependents_survive_a_crash_of_the_manager(alone: Queue) -> None:
    parent = alone.put(alone.waits_for("parent"))
    member = alone.put(alone.waits_for("member"), dep_groups=["crash"])
    child, report = alone.put("true", after=[parent]), alone.put("true", after=["@crash"])
    never = alone.put("true", after=[f"afternotok:{parent}"])
    alone.until("running", parent, member)
    alone.kill_manager()
    alone.open("parent")
    alone.start()
    alone.until("complete", parent, child)
    alone.until("blocked", never)
    assert alone.state(report) == "dependent"
    alone.open("member")
    alone.until("complete", report)
    wait_until(lambda: alone.rota("wait", "all").returncode == 1, "all are settled")
