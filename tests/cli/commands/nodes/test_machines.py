"""`rota node set --condition`, `reserve`, `return` and `rota machine-group`, with a real manager."""

from __future__ import annotations

import socket

from tests.deployment import Deployment, wait_until

HOST = socket.gethostname()


def state(made: Deployment, job: int) -> str:
    return made.states(str(job))[job]


def add(made: Deployment, *command: str) -> int:
    return made.json("add", "--cpus", "0.1", "--", *command)["added"][0]


def joined(made: Deployment) -> None:
    wait_until(lambda: made.json("node", "list")["nodes"], "the runner is connected")


def test_a_broken_machine_gets_no_job_until_it_is_repaired(shared: Deployment) -> None:
    joined(shared)
    said = shared.ok("node", "set", HOST, "--condition", "broken", "--reason", "no fan", "--owner", "ann")
    assert said == f"{HOST}: broken\n"
    job = add(shared, "true", "mended")
    (reason,) = shared.json("why", str(job))["reasons"]
    assert reason["code"] == "condition"
    assert f"{HOST} is broken (no fan)" in reason["message"]
    assert f"machine {HOST} (owner: ann) is broken: no fan" in shared.ok("manager", "status")
    assert f"{HOST} (owner: ann) is broken: no fan" in shared.rota("doctor").stdout
    assert state(shared, job) == "ready"
    shared.ok("node", "set", HOST, "--condition", "automated", "--owner", "none")
    wait_until(lambda: state(shared, job) == "complete", "the repaired machine runs it")
    shared.ok("remove", str(job))


def test_a_machine_is_reserved_for_use_by_hand_and_returned(shared: Deployment) -> None:
    joined(shared)
    long = add(shared, "sleep", "100.1")
    wait_until(lambda: state(shared, long) == "running", "it runs")
    busy = shared.rota("node", "reserve", HOST, "--for", "2h")
    assert busy.returncode == 2
    assert "--when-free" in busy.stderr
    assert shared.json("node", "reserve", HOST, "--for", "2h", "--when-free")["until"] is None
    waits = add(shared, "true", "later")
    shared.ok("kill", str(long))
    wait_until(lambda: "manual" in shared.ok("why", str(waits)), "the user has it")
    assert state(shared, waits) == "ready"
    assert shared.ok("node", "return", HOST) == f"{HOST}: returned\n"
    wait_until(lambda: state(shared, waits) == "complete", "jobs have it again")
    assert shared.rota("node", "return", HOST).returncode == 2
    shared.ok("remove", str(long), str(waits))


def test_now_aborts_what_runs(shared: Deployment) -> None:
    joined(shared)
    job = add(shared, "sleep", "100.2")
    wait_until(lambda: state(shared, job) == "running", "it runs")
    shared.ok("node", "set", HOST, "--condition", "manual")
    assert state(shared, job) == "running"
    shared.ok("node", "set", HOST, "--condition", "manual", "--now")
    wait_until(lambda: state(shared, job) == "cancelled", "it was aborted")
    shared.ok("node", "set", HOST, "--condition", "automated")
    shared.ok("remove", str(job))


def test_machine_groups_are_set_listed_and_removed(shared: Deployment) -> None:
    joined(shared)
    shared.ok("machine-group", "set", "lab1", "--cap", "10", "--user", "ann", "--user", "bob")
    refused = shared.rota("node", "set", HOST, "--machine-group", "lab1", "--machine-group", "lab2")
    assert refused.returncode == 3
    assert "there is no machine group 'lab2'; make it first: rota machine-group set lab2" in refused.stderr
    shared.ok("machine-group", "set", "lab2")
    shared.ok("node", "set", HOST, "--machine-group", "lab1", "--machine-group", "lab2")
    assert shared.json("machine-group", "list")["groups"] == [
        {"group": "lab1", "cap": 10, "users": ["ann", "bob"], "machines": [HOST]},
        {"group": "lab2", "cap": None, "users": [], "machines": [HOST]},
    ]
    shared.ok("machine-group", "set", "lab1", "--cap", "none")
    assert shared.json("machine-group", "list")["groups"][0]["cap"] is None
    for group in ("lab1", "lab2"):
        shared.ok("machine-group", "remove", group)
    assert shared.json("machine-group", "list")["groups"] == []
    assert shared.rota("machine-group", "remove", "lab1").returncode == 3
    assert shared.rota("machine-group", "set", "la b").returncode == 2
    assert shared.rota("machine-group", "set", "lab1", "--cap", "high").returncode == 2


def test_unknown_machines_and_conditions_are_refused(shared: Deployment) -> None:
    joined(shared)
    assert shared.rota("node", "set", "nowhere", "--condition", "broken").returncode == 3
    assert shared.rota("node", "set", HOST, "--condition", "odd").returncode == 2
    assert shared.rota("node", "reserve", "nowhere", "--for", "1h").returncode == 3
    assert shared.rota("node", "reserve", HOST, "--for", "soon").returncode == 2
