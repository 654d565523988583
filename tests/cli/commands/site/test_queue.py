"""`rota queue`, and that a job needs a queue that there is."""

from __future__ import annotations

import pytest

from tests.cli.commands.manager.test_completion import completed
from tests.deployment import Deployment, wait_until


def queues(made: Deployment) -> dict[str, dict[str, object]]:
    return {each["name"]: each for each in made.json("queue", "list")["queues"]}


def test_the_built_in_queues_are_always_there(shared: Deployment) -> None:
    found = queues(shared)
    assert {name: found[name]["priority"] for name in ("admin", "default", "besteffort")} == {
        "admin": 10, "default": 2, "besteffort": 0,
    }  # fmt: skip
    lines = shared.ok("queue", "list").splitlines()
    assert lines[0].split()[:2] == ["QUEUE", "PRIORITY"]
    assert lines[1].split()[0] == "admin"
    assert "default" in shared.ok("queue", "list", "--quiet").split()
    done = shared.rota("queue", "remove", "default")
    assert (done.returncode, done.stderr) == (
        2, "rota: queue 'default' is built in; change it with 'rota queue set default'\n",
    )  # fmt: skip


def test_a_queue_is_added_changed_and_removed(shared: Deployment) -> None:
    made = shared.json("queue", "add", "night", "--priority", "1", "--walltime", "8h", "--share", "alice=0.5")
    assert made["queue"]["shares"] == {"alice": 0.5}
    shared.ok("queue", "set", "night", "--order", "fairshare", "--backfill", "easy", "--max-wait", "3d")
    shared.ok("queue", "set", "night", "--share", "project:x=0.2", "--share", "alice=none", "--walltime", "none")
    assert queues(shared)["night"] == {
        "name": "night", "priority": 1, "order": "fairshare", "backfill": "easy", "walltime_s": None,
        "max_wait_s": 3 * 86400.0, "shares": {"project:x": 0.2}, "max_priority": None, "admins_only": False,
        "built_in": False, "closed": False, "closed_reason": "",
    }  # fmt: skip
    assert shared.rota("queue", "add", "night").returncode == 2
    assert shared.ok("queue", "remove", "night") == "removed: night\n"
    done = shared.rota("queue", "set", "nihgt", "--priority", "1")
    assert (done.returncode, done.stderr.startswith("rota: there is no queue 'nihgt'")) == (3, True)


def test_a_queue_with_jobs_stays_until_they_are_gone(shared: Deployment) -> None:
    shared.ok("queue", "add", "busy")
    shared.ok("limit", "never:0")
    (job,) = shared.json("add", "-q", "busy", "--limit", "never", "--", "true")["added"]
    done = shared.rota("queue", "remove", "busy")
    assert (done.returncode, done.stderr) == (
        2, "rota: queue 'busy' has 1 job; let them end, or move them with 'rota modify --queue'\n",
    )  # fmt: skip
    assert "there is no queue 'fast'" in shared.rota("modify", str(job), "--queue", "fast").stderr
    shared.ok("modify", str(job), "--queue", "default")
    assert shared.ok("queue", "remove", "busy") == "removed: busy\n"
    shared.ok("kill", str(job))


def test_a_job_for_an_unknown_queue_is_refused_with_those_there_are(shared: Deployment) -> None:
    done = shared.rota("add", "-", input='true\nfalse\t{"queue": "fast"}\n')
    assert (done.returncode, done.stderr) == (
        2,
        "rota: stdin line 2: field 'queue': there is no queue 'fast'; use one of admin, default, besteffort\n",
    )


def test_jobs_get_the_walltime_of_their_queue(shared: Deployment) -> None:
    shared.ok("queue", "add", "short", "--walltime", "1s")
    (job,) = shared.json("add", "-q", "short", "--retries", "0", "--", "sleep", "100")["added"]
    wait_until(lambda: shared.states(str(job)) == {job: "failed"}, "its time is over")
    assert shared.json("show", str(job))["reason"]["code"] == "walltime"


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("rota add -q bes", "rota add -q besteffort "),
        ("rota queue set adm", "rota queue set admin "),
        ("rota queue set default --order fa", "rota queue set default --order fairshare "),
        ("rota rule show nod", "rota rule show nodes-walltime "),
    ],
)
def test_names_are_completed(shared: Deployment, typed: str, expected: str) -> None:
    assert completed(shared, typed) == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["set", "default"], "say what to change"),
        (["set", "default", "--priority", "high"], "--priority: 'high' is not a whole number"),
        (["set", "default", "--priority", "2000"], "priority"),
        (["set", "default", "--order", "lifo"], "there is no order 'lifo'; use fifo, fairshare, multifactor"),
        (["set", "default", "--backfill", "x"], "there is no backfill 'x'"),
        (["set", "default", "--walltime", "2"], "--walltime: '2' has no unit"),
        (["set", "default", "--max-wait", "soon"], "--max-wait: 'soon' is not a time"),
        (["set", "default", "--share", "alice"], "--share: 'alice' is not WHO=SHARE"),
        (["set", "default", "--share", "alice=2"], "--share: 'alice=2' is not WHO=SHARE"),
        (["add", "a b"], "'a b' cannot be a queue"),
        (["add", ""], "cannot be a queue"),
    ],
)
def test_mistakes_are_named_in_one_line(shared: Deployment, words: list[str], message: str) -> None:
    done = shared.rota("queue", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_jobs_are_named_by_their_queue_and_project_waiting_or_ended(shared: Deployment) -> None:
    shared.ok("queue", "add", "evening")
    (ended,) = shared.json("add", "-q", "evening", "--project", "moon", "--", "true")["added"]
    shared.ok("wait", str(ended))
    (other,) = shared.json("add", "-q", "evening", "--", "sleep 60")["added"]
    assert set(shared.states("queue=evening")) == {ended, other}
    assert set(shared.states("queue=evening,project=moon")) == {ended}
    assert set(shared.states("queue=default,project=moon", f"{other}")) == {other}
    assert shared.states("queue=nobody") == {}
    shared.ok("kill", "queue=evening")
    wait_until(lambda: shared.state(other) == "cancelled", "its end")
    assert shared.json("status", "queue=evening")["counts"] == {"complete": 1, "cancelled": 1}


# ------------------------------------------------------------------ closed and opened


def test_a_closed_queue_refuses_new_jobs_with_its_reason_and_those_in_it_go_on(shared: Deployment) -> None:
    shared.ok("queue", "add", "door", "--priority", "3")
    shared.ok("limit", "shut:0")
    (waits,) = shared.json("add", "-q", "door", "--limit", "shut", "--", "true")["added"]
    assert shared.ok("queue", "close", "door", "--reason", "new disks \u2013 soon") == (
        "door: closed: new disks \u2013 soon\n"
    )
    done = shared.rota("add", "-q", "door", "--", "echo", "late")
    assert (done.returncode, done.stderr) == (
        2,
        "rota: field 'queue': queue 'door' is closed: new disks \u2013 soon; "
        "give another one, or wait until it is open; see 'rota queue list'\n",
    )
    done = shared.rota("plan", "-q", "door")
    assert "queue 'door' is closed" in done.stderr
    shared.ok("modify", str(waits), "--priority", "9")  # it is in already
    (other,) = shared.json("add", "--limit", "shut", "--", "true")["added"]
    assert "queue 'door' is closed" in shared.rota("modify", str(other), "--queue", "door").stderr
    shared.ok("limit", "shut:1")
    wait_until(lambda: shared.states(str(waits)) == {waits: "complete"}, "what waited goes on")
    found = queues(shared)["door"]
    assert (found["closed"], found["closed_reason"], found["priority"]) == (True, "new disks \u2013 soon", 3)
    assert shared.ok("queue", "open", "door") == "door: open\n"
    assert shared.ok("queue", "open", "door") == "door was open already\n"
    (late,) = shared.json("add", "-q", "door", "--", "echo", "late")["added"]
    wait_until(lambda: shared.states(str(late)) == {late: "complete"}, "it is taken again")
    shared.ok("queue", "remove", "door")


def test_the_default_queue_is_closed_over_a_restart_and_needs_no_plan_for_it(shared: Deployment) -> None:
    assert shared.ok("queue", "close", "default") == "default: closed\n"
    assert shared.ok("queue", "close", "default") == "default was closed already\n"
    shared.ok("manager", "stop")
    shared.ok("manager", "start")
    done = shared.rota("add", "--", "true")
    assert done.stderr.startswith("rota: field 'queue': queue 'default' is closed; give another one")
    assert any(
        line.split()[0] == "default" and "closed" in line for line in shared.ok("queue", "list").splitlines()
    )
    shared.ok("queue", "open", "default")
    assert shared.json("queue", "open", "default")["queue"]["closed"] is False
    (job,) = shared.json("add", "--", "true")["added"]
    wait_until(lambda: shared.states(str(job)) == {job: "complete"}, "jobs are taken again")


def test_only_a_queue_that_there_is_can_be_closed(shared: Deployment) -> None:
    done = shared.rota("queue", "close", "defualt")
    assert (done.returncode, done.stderr) == (
        3, "rota: there is no queue 'defualt'; did you mean 'default'?\n",
    )  # fmt: skip
    done = shared.rota("queue", "close", "default", "--reason", "a\nb")
    assert (done.returncode, "cannot be printed" in done.stderr) == (2, True)
    assert completed(shared, "rota queue close defa") == "rota queue close default "
