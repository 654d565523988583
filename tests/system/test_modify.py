"""`rota modify` and the fields of jobs: what is changed is used, what cannot be is refused by name."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from rota.errors import RotaError
from tests.deployment import LEFT_ALONE, wait_until
from tests.system.queueing import Queue, queue_of

MB = 1 << 20


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queue]:
    with queue_of(tmp_path_factory.mktemp("modify")) as made:
        yield made


@pytest.fixture
def queue(shared: Queue) -> Iterator[Queue]:
    yield shared
    shared.clear()


# ------------------------------------------------------------------ modify


def test_a_waiting_job_takes_what_it_is_given_now(queue: Queue) -> None:
    blocker = queue.put(queue.waits_for("blocker"), cpus=7)
    queue.until("running", blocker)
    job = queue.put("echo $ROTA_CPUS $ROTA_MEM_MB $ROTA_JOB_NAME > modified", cpus=4, priority=1)
    assert queue.reason(job)["code"] == "resources"
    done = queue.json("modify", str(job), "--cpus", "1", "--mem", "200M", "-n", "new", "--override", "always")
    assert done["changed"] == [job]
    queue.until("complete", job)
    assert queue.ran("modified") == ["1", "200", "new"]
    seen = queue.shown(job)
    assert seen["name"] == "new"
    assert (seen["asked"]["mem_bytes"], seen["size"]["mem_bytes"]) == (200 * MB, 200 * MB)
    assert "modified" in [line["event"] for line in seen["story"]]


def test_a_higher_priority_takes_effect_in_the_queue(queue: Queue) -> None:
    queue.ok("manager", "pause")
    first = queue.put("echo first >> turns", cpus=8)
    second = queue.put("echo second >> turns", cpus=8)
    queue.ok("modify", str(second), "--priority", "9")
    queue.ok("manager", "resume")
    queue.until("complete", first, second)
    assert queue.ran("turns") == ["second", "first"]


def test_a_failed_job_is_retried_with_its_new_size(queue: Queue) -> None:
    job = queue.put("test $ROTA_MEM_MB = 300", mem="100M", retries=0, override="always")
    queue.until("failed", job)
    assert queue.json("modify", str(job), "--mem", "300M", "--retries", "2")["changed"] == [job]
    assert queue.state(job) == "failed"
    queue.ok("retry", str(job))
    queue.until("complete", job)
    first, second = queue.shown(job)["attempts"]
    assert (first["size"]["mem_bytes"], second["size"]["mem_bytes"]) == (100 * MB, 300 * MB)
    assert queue.look(job).retries == 2


def test_a_running_and_a_complete_job_stay_as_they_are(queue: Queue) -> None:
    runs, done = queue.put(queue.waits_for("runs"), mem="100M", override="always"), queue.put("true")
    queue.until("running", runs)
    queue.until("complete", done)
    answer = queue.json("modify", str(runs), str(done), "--mem", "300M")
    assert (answer["changed"], sorted(answer["unchanged"])) == ([], [runs, done])
    assert queue.look(runs).size.mem_bytes == 100 * MB


def test_another_group_shows_in_status_and_in_selectors(queue: Queue) -> None:
    queue.set_limits("move:0")
    jobs = [queue.put("true", group="old", limits=["move"]) for _ in range(2)]
    failed = queue.put("false", group="old", retries=0)
    queue.until("failed", failed)
    assert queue.json("status")["groups"]["old"] == {"ready": 2, "failed": 1}
    assert sorted(queue.json("modify", str(jobs[0]), str(failed), "-g", "new")["changed"]) == [jobs[0], failed]
    groups = queue.json("status")["groups"]
    assert (groups["old"], groups["new"]) == ({"ready": 1}, {"ready": 1, "failed": 1})
    assert sorted(queue.states("@new")) == [jobs[0], failed]
    queue.kill_manager()
    queue.start()
    groups = queue.json("status")["groups"]
    assert (groups["old"], groups["new"]) == ({"ready": 1}, {"ready": 1, "failed": 1})


def test_limits_are_replaced_and_taken_away(queue: Queue) -> None:
    queue.set_limits("first:0", "second:0")
    job = queue.put("true", limits=["first"])
    queue.ok("modify", str(job), "--limit", "second")
    assert queue.look(job).limits == ["second"]
    assert "second" in queue.reason(job)["message"]
    assert (queue.limit("first")["waiting"], queue.limit("second")["waiting"]) == (0, 1)
    done = queue.rota("modify", str(job), "--limit", "undeclared")
    assert (done.returncode, "not declared" in done.stderr) == (2, True)
    queue.ok("modify", str(job), "--limit", "none")
    queue.until("complete", job)


def test_what_waits_for_others_and_what_is_delayed_can_be_changed(queue: Queue) -> None:
    parent = queue.put(queue.waits_for("parent"))
    child = queue.put("test $ROTA_MEM_MB = 150", after=[parent], override="always", retries=0)
    delayed = queue.put("test $ROTA_ATTEMPT = 9", retries=3, backoff="10m")
    queue.until("delayed", delayed)
    queue.ok("hold", str(child))
    assert queue.json("modify", str(child), str(delayed), "--mem", "150M")["changed"] == [child, delayed]
    queue.ok("release", str(child))
    assert queue.state(child) == "dependent"
    queue.open("parent")
    queue.until("complete", child)


def test_a_size_that_never_fits_is_refused_and_changes_nothing(queue: Queue) -> None:
    queue.set_limits("fits:0")
    job = queue.put("true", limits=["fits"])
    done = queue.rota("modify", str(job), "--cpus", "99", "--priority", "3")
    assert (done.returncode, "never fits: asked 99 cpus" in done.stderr) == (2, True)
    assert (queue.look(job).size.cpus, queue.look(job).priority) == (1, 0)


# ------------------------------------------------------------------ what a job is


def test_a_job_that_was_never_started_becomes_another(queue: Queue) -> None:
    (queue.work / "moved").mkdir()
    queue.ok("manager", "pause")
    (job,) = queue.add_lines({"cmd": "echo old > became", "env": {"KEPT": "kept", "GONE": "before"}})
    words = ["--cmd", "echo $KEPT $GONE $NEW > became", "--cwd", "moved", "--env", "NEW=new", "--env", "GONE=over"]
    assert queue.json("modify", str(job), *words, "--priority", "3")["changed"] == [job]
    queue.kill_manager()
    queue.start()
    again = {"cmd": "echo $KEPT $GONE $NEW > became", "cwd": "moved"}
    assert queue.json("add", "-", input=json.dumps(again) + "\n")["existing"] == [job]
    (old,) = queue.add_lines({"cmd": "echo old > became"})
    assert old != job, "nobody has the old command any more"
    queue.ok("manager", "resume")
    queue.until("complete", job, old)
    assert queue.ran("moved/became") == ["kept", "over", "new"]
    seen = queue.shown(job)
    assert (seen["cmd"], seen["cwd"], seen["priority"]) == (again["cmd"], str(queue.work / "moved"), 3)
    story = {line["event"]: line["text"] for line in seen["story"]}
    assert story["command"] == "was echo old > became"
    assert all(name in story["modified"] for name in ("cmd", "cwd", "env", "priority"))
    stays = queue.json("modify", str(job), "--cmd", "other")
    assert (stays["changed"], stays["unchanged"]) == ([], [job])


def test_other_parents_are_waited_for_and_cycles_and_doubles_are_refused(queue: Queue) -> None:
    first = queue.put(queue.waits_for("first"), dep_groups=["members"])
    queue.until("running", first)
    queue.set_limits("stop:0")
    second, third = (queue.put(f": {name}", limits=["stop"]) for name in ("second", "third"))
    with queue.client() as client:
        by_command = {"cmd": ": third", "cwd": str(queue.work)}
        assert client.modify(second, after=[first, "@members", by_command], cmd=["true", "second"]).changed == [
            second
        ]
        assert client.job(second).after == [str(first), "@members", str(third)]
        with pytest.raises(RotaError, match=f"cycle: job {third} → job {second} → job {third}"):
            client.modify(third, after=[second])
        with pytest.raises(RotaError, match=f"job {third} would be the same as job {second}"):
            client.modify(third, cmd=["true", "second"])
        with pytest.raises(RotaError, match="there is no job 99999"):
            client.modify(third, after=[99999])
        with pytest.raises(RotaError, match="array 99999 has no such element"):
            client.modify(third, after=["99999_1"])
    queue.kill_manager()
    queue.start()
    assert queue.states_of(second, third) == ["dependent", "ready"]
    queue.ok("modify", str(second), "--after", "none", "--limit", "none")
    queue.until("complete", second)
    done = queue.rota("modify", str(third), "--after", str(second), "--cmd", ": new third", "--limit", "none")
    assert done.returncode == 0, done.stderr
    queue.until("complete", third)
    queue.open("first")
    queue.until("complete", first)


# ------------------------------------------------------------------ fields


def test_one_object_may_have_every_field_of_this_version(queue: Queue) -> None:
    member = queue.put("true", dep_groups=["before"])
    queue.until("complete", member)
    (queue.work / "lines").write_text("a\nb\nc\n")
    (queue.work / "elsewhere").mkdir()
    fields = {
        "cmd": "echo $ROTA_ARRAY_INDEX $MINE $ROTA_JOB_NAME $PWD",
        "cwd": "elsewhere", "scratch": False, "env": {"MINE": "yes"}, "name": "label", "group": "everything",
        "cpus": 0.5, "mem": "100M", "disk": "10M", "time": "2m", "gpus": 0, "walltime": "1m", "queue": "default",
        "project": "p", "priority": 7, "array": "1-2%1", "array_file": "lines", "after": [member, "@before"],
        "dep_groups": ["joined"], "live": True, "allow_empty_group": False, "limits": ["every:2"],
        "learn": "everything", "override": "always", "input_bytes": 1000, "retries": 1, "backoff": "1s",
        "no_retry_over": "1h", "pipefail": True, "on_success": ["run: echo ok >> behaved"],
        "on_failure": ["run: echo bad >> behaved"], "on_exit": ["run: echo end >> behaved"],
        "stdout": "out.%a", "stderr": "err.%a", "rerun": True, "once": False, "allow_unsatisfiable": False,
        "request": None, "where": None, "type": ["idempotent"], "at": None,
    }  # fmt: skip
    one, two = queue.add_lines(fields)
    assert queue.rota("wait", "@everything").returncode == 0
    seen = queue.shown(two)
    expected = {
        "name": "label", "group": "everything", "project": "p", "priority": 7, "queue": "default",
        "walltime_s": 60,
        "limits": seen["limits"], "dep_groups": ["joined"], "learn": "everything", "override": "always",
        "input_bytes": 1000, "retries": 1, "pipefail": True, "array_id": one, "array_index": 2, "live": True,
        "on_success": ["run: echo ok >> behaved"], "on_exit": ["run: echo end >> behaved"], "stdout": "out.%a",
        "request": None, "where": None, "type": ["idempotent"], "at": None,
    }  # fmt: skip
    assert {name: seen[name] for name in expected} == expected
    assert "every" in " ".join(seen["limits"])
    assert seen["after"] == [str(member), "@before"]
    assert seen["size"] == {"cpus": 0.5, "mem_bytes": 100 * MB, "disk_bytes": 10 * MB, "time_s": 120, "gpus": 0}
    where = queue.work / "elsewhere"
    assert [(where / f"out.{n}").read_text().split() for n in (1, 2)] == [
        ["1", "yes", "label", str(where), "a"],
        ["2", "yes", "label", str(where), "b"],
    ]
    assert (where / "behaved").read_text().split() == ["ok", "end", "ok", "end"]


@pytest.mark.parametrize(
    "name",
    [
        "notify",
        "stage_in",
    ],
)
def test_a_field_of_a_later_version_is_refused_by_name(queue: Queue, name: str) -> None:
    with (
        queue.client() as client,
        pytest.raises(RotaError, match=f"field '{name}': not supported by this version"),
    ):
        client.add([{"cmd": "true", name: "x"}])


def test_a_bad_line_adds_nothing_and_is_named_with_its_field(queue: Queue) -> None:
    before = queue.json("jobs", "--limit", "1")["total"]
    for bad, words in (
        ({"cmd": "x", "gang": "a/b"}, ("line 2", "field 'gang'")),
        ({"cmd": "x", "memm": "1G"}, ("line 2", "did you mean 'mem'")),
        ({"cmd": "x", "mem": 5}, ("line 2", "field 'mem'")),
        ({"cmd": "x", "cpus": 99}, ("line 2", "never fits")),
        ({"cmd": "x", "after": [999999]}, ("line 2", "999999")),
        ({"cmd": "x", "limits": ["undeclared"]}, ("undeclared",)),
        ({"cmd": "x", "array": "5-1"}, ("line 2", "field 'array'")),
        ({"cmd": "x", "on_exit": ["cleanup"]}, ("line 2", "field 'on_exit'")),
        ({}, ("line 2", "cmd")),
    ):
        done = queue.rota("add", "-", input=f": first\n{json.dumps(bad)}\n: last\n")
        assert (done.returncode, done.stderr.count("\n")) in ((2, 1), (3, 1)), done.stderr
        assert all(word in done.stderr for word in words), done.stderr
    assert queue.json("jobs", "--limit", "1")["total"] == before


def test_what_a_refused_input_brought_is_stored_with_the_job_that_uses_it(queue: Queue) -> None:
    good, bad = {"cmd": ": good", "name": "unseen", "env": {"OWN": "1"}}, {"cmd": ": bad", "queue": "nowhere"}
    refused = queue.rota("add", "-", input=f"{json.dumps(good)}\n{json.dumps(bad)}\n")
    assert (refused.returncode, "no queue 'nowhere'" in refused.stderr) == (2, True)
    (job,) = queue.add_lines(good)
    queue.until("complete", job)
    queue.kill_manager()
    queue.start()
    assert queue.shown(job)["name"] == "unseen"
    (again,) = queue.add_lines({"cmd": "test $OWN = 1", "env": {"OWN": "1"}})
    queue.until("complete", again)


def test_a_line_of_text_may_carry_fields_behind_a_tab_and_flags_are_the_defaults(queue: Queue) -> None:
    jobs = queue.add_all("--priority", "3", "-n", "flag", "-", input=': tab a\t{"name": "own"}\n: tab b\n')
    assert [(queue.look(job).name, queue.look(job).priority) for job in jobs] == [("own", 3), ("flag", 3)]


def test_a_live_job_added_again_with_other_fields_keeps_its_own_and_says_so(queue: Queue) -> None:
    queue.set_limits("again:0")
    (job,) = queue.add_lines({"cmd": ": again", "priority": 1, "limits": ["again"]})
    done = queue.rota("add", "--limit", "again", "--priority", "9", "-", input=": again\n")
    assert done.returncode == 0
    assert f"job {job} keeps its own priority" in done.stderr
    assert queue.look(job).priority == 1


def test_killed_and_failed_jobs_are_retried_when_they_are_added_again(queue: Queue) -> None:
    (job,) = queue.add_lines({"cmd": "echo x >> added-again; " + queue.waits_for("added")})
    wait_until(lambda: queue.ran("added-again"), "it runs")
    queue.ok("kill", str(job))
    queue.until("cancelled", job)
    queue.open("added")
    again = queue.json("add", "-", input="echo x >> added-again; " + queue.waits_for("added"))
    assert again == {"added": [], "existing": [], "retried": [job], **LEFT_ALONE}
    queue.until("complete", job)
    assert queue.ran("added-again") == ["x", "x"]


def test_jobs_of_other_directories_are_other_jobs_unless_they_have_their_own(queue: Queue) -> None:
    (queue.work / "sub").mkdir()
    here, there = (queue.add_lines({"cmd": ": where", "cwd": where}) for where in (".", "sub"))
    assert here != there
    first = queue.json("add", "--scratch", "-", input=": scratch\n")["added"]
    assert queue.json("add", "--scratch", "--cwd", "sub", "-", input=": scratch\n")["existing"] == first
