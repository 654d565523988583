"""`rota node`: hosts and the limits that each of them has."""

from __future__ import annotations

import json
import socket
from typing import Any

from tests.deployment import Deployment, wait_until


def nodes(made: Deployment) -> Any:
    return json.loads(made.ok("node", "list", "--json"))["nodes"]


def test_a_host_s_own_limit_keeps_jobs_apart_there(shared: Deployment) -> None:
    host = socket.gethostname()
    wait_until(lambda: nodes(shared), "the runner is connected")
    assert shared.ok("node", "set", host, "--limit", "bigmem:1") == f"{host}: bigmem:1\n"
    first, second = (
        shared.json("add", "--limit", "bigmem", "--cpus", "0.1", "--", "sleep", "100")["added"][0]
        for _ in range(2)
    )
    wait_until(lambda: shared.states(str(first)) == {first: "running"}, "the first one runs")
    (node,) = nodes(shared)
    assert node["limits"] == {"bigmem": {"capacity": 1, "used": 1}}
    assert shared.ok("node", "list").splitlines()[1].split()[:2] == [host, "alive"]
    assert [each["code"] for each in shared.json("why", str(second))["reasons"]] == ["limit"]
    shared.ok("node", "set", host, "--limit", "bigmem:2")
    wait_until(lambda: shared.states(str(second)) == {second: "running"}, "the second one runs")
    shared.ok("kill", str(first), str(second))


def test_a_host_that_is_not_there_cannot_be_set(shared: Deployment) -> None:
    done = shared.rota("node", "set", "nowhere", "--limit", "x:1")
    assert (done.returncode, done.stderr) == (3, "rota: there is no host 'nowhere'; see 'rota manager status'\n")


def test_a_host_s_limit_needs_a_number(shared: Deployment) -> None:
    done = shared.rota("node", "set", socket.gethostname(), "--limit", "x@22:00-06:00")
    assert done.returncode == 2
    assert "needs a number of units" in done.stderr
